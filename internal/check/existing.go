package check

import (
	"context"
	"database/sql"
	"fmt"
	"strings"

	"github.com/copydb/copydb/internal/mysqlconn"
	"github.com/copydb/copydb/internal/table"
)

// The kinds of objects that runs list: tables that they made, and tables that
// were there and were taken over.
const (
	kindMade  = "table"
	kindTaken = "used_table"
)

// checkExisting looks at selected tables that the target has already.
func checkExisting(ctx context.Context, r *runner) error {
	f := &r.in.Facts
	f.Taken, f.Referenced = map[table.Name]string{}, map[table.Name]bool{}
	var databases []string
	for _, d := range f.Databases {
		databases = append(databases, d.Name)
	}
	if len(databases) == 0 {
		return nil
	}
	there, err := r.targetTables(ctx, databases)
	if err != nil {
		return err
	}
	rule := r.existingRule()
	var found []*table.Table
	for _, t := range f.Tables {
		kind, ok := there[r.targetFolded(t.FullName())]
		switch {
		case !ok || r.ours(t.FullName()):
		case !strings.Contains(kind, "TABLE") && kind != "SYSTEM VERSIONED":
			r.fail("existing_table", t.String(), fmt.Sprintf("%s %s exists on the target already", strings.ToLower(kind), t),
				"drop or rename it there, or exclude the table")
		case rule == RuleError:
			r.refuseExisting(t)
		default:
			f.Taken[t.FullName()] = rule
			found = append(found, t)
		}
	}
	if err := r.checkTaken(ctx, found, rule); err != nil {
		return err
	}
	return r.checkReferences(ctx)
}

// existingRule is the rule in force: a run that goes on takes no more tables
// over than the run before noted, unless that had noted nothing yet.
func (r *runner) existingRule() string {
	if r.in.ExistingTables == "" || r.in.Resume != nil && len(r.in.Resume.Created) > 0 {
		return RuleError
	}
	return r.in.ExistingTables
}

func (r *runner) refuseExisting(t *table.Table) {
	fix := "drop or rename it there, or exclude the table"
	if r.in.Resume == nil {
		fix += "; or set existing_tables to use_empty, truncate or recreate"
	}
	r.fail("existing_table", t.String(), fmt.Sprintf("table %s exists on the target already", t), fix)
}

// ours reports whether a run that is gone on from, or replaced, made the table.
// One that it took over is its own when it goes on, and nobody's when it is
// replaced.
func (r *runner) ours(n table.Name) bool {
	return r.created(kindMade, n) || r.in.Resume != nil && r.created(kindTaken, n)
}

// object is something that a run made, as the target calls it.
type object struct {
	kind string
	name table.Name
}

// created reports whether an earlier run of this migration made the object.
func (r *runner) created(kind string, n table.Name) bool {
	if r.made == nil {
		made := r.in.Replaced
		if r.in.Resume != nil {
			made = r.in.Resume.Created
		}
		r.made = make(map[object]bool, len(made))
		for _, o := range made {
			r.made[object{o.Type, r.targetFolded(table.Name{Database: string(o.Database), Table: string(o.Name)})}] = true
		}
	}
	return r.made[object{kind, r.targetFolded(n)}]
}

// sourceName is the selected table that the target calls n.
func (r *runner) sourceName(n table.Name) table.Name {
	n = r.targetFolded(n)
	for _, t := range r.in.Facts.Tables {
		if r.targetFolded(t.FullName()) == n {
			return t.FullName()
		}
	}
	return n
}

// checkTaken compares the tables that will be taken over with the source's.
func (r *runner) checkTaken(ctx context.Context, tables []*table.Table, rule string) error {
	if len(tables) == 0 {
		return nil
	}
	raw, err := r.target.server.OpenSession(ctx, sessionSetup)
	if err != nil {
		return fmt.Errorf("read structures of the target: %w", err)
	}
	defer raw.Close()
	for len(tables) > 0 {
		db := tables[0].Database
		var names []string
		n := 0
		for n < len(tables) && tables[n].Database == db {
			names = append(names, tables[n].Table)
			n++
		}
		have, err := table.Load(ctx, raw, r.target.version().Flavor, db, names)
		if err != nil {
			return fmt.Errorf("read structures of the target: %w", err)
		}
		for i, want := range tables[:n] {
			if err := r.taken(ctx, want, have[i], rule); err != nil {
				return err
			}
		}
		tables = tables[n:]
	}
	return nil
}

func (r *runner) taken(ctx context.Context, want, have *table.Table, rule string) error {
	lost, empty, err := r.rowsOf(ctx, have)
	if mysqlconn.IsLockConflict(err) {
		r.fail("existing_locked", want.String(), fmt.Sprintf("table %s is locked by another session on the target", want),
			"try again when that has ended (SHOW PROCESSLIST names it)")
		return nil
	}
	if err != nil {
		return err
	}
	if rule == RuleRecreate {
		r.tell(empty, "existing_recreated", want.String(), fmt.Sprintf("table %s exists on the target: it has %s, is dropped and made anew (existing_tables: recreate)", want, lost),
			"back it up if its rows are wanted, or exclude the table")
		return nil
	}
	if have.Versioned {
		r.fail("existing_versioned", want.String(), fmt.Sprintf("table %s of the target is system-versioned: its history cannot be emptied", want),
			"drop it there, or set existing_tables: recreate")
		return nil
	}
	r.differences(want, have)
	switch {
	case rule == RuleTruncate:
		r.tell(empty, "existing_truncated", want.String(), fmt.Sprintf("table %s exists on the target: it has %s and is emptied (existing_tables: truncate)", want, lost),
			"back it up if its rows are wanted, or exclude the table")
	case empty:
		r.info("existing_used", want.String(), fmt.Sprintf("table %s exists on the target and is empty: it is used as it is", want), "nothing to do")
	default:
		r.fail("existing_not_empty", want.String(), fmt.Sprintf("table %s of the target has %s, and existing_tables is use_empty", want, lost),
			"empty it there, or set existing_tables to truncate or recreate")
	}
	return nil
}

// tell warns of rows that are lost; where there are none it only informs.
func (r *runner) tell(harmless bool, id, object, message, fix string) {
	if harmless {
		r.info(id, object, message, fix)
		return
	}
	r.warn(id, object, message, fix)
}

// countLimit is up to how many rows a table is counted; the server's estimate
// has to do beyond.
const countLimit = 1000

// rowsOf says how many rows a table of the target has, and whether it is empty.
func (r *runner) rowsOf(ctx context.Context, t *table.Table) (text string, empty bool, err error) {
	all := ""
	if t.Versioned {
		all = " FOR SYSTEM_TIME ALL"
	}
	var n int64
	err = r.target.conn.QueryRow(ctx, []any{&n}, fmt.Sprintf("SELECT COUNT(*) FROM (SELECT 1 FROM %s%s LIMIT %d) AS t", t.Quoted(), all, countLimit))
	switch {
	case err != nil:
		return "", false, fmt.Errorf("count rows of table %s of the target: %w", t, err)
	case n == 1:
		return "1 row", false, nil
	case n < countLimit:
		return fmt.Sprintf("%d rows", n), n == 0, nil
	}
	return fmt.Sprintf("about %d rows", max(t.Rows, n)), false, nil
}

// differences says how a table of the target is not as the source's.
func (r *runner) differences(want, have *table.Table) {
	var major, minor []string
	all := table.Compare(want, have)
	for _, d := range all {
		if d.Minor {
			minor = append(minor, d.What)
		} else {
			major = append(major, d.What)
		}
	}
	if len(major) > 0 {
		r.fail("existing_differs", want.String(), fmt.Sprintf("table %s of the target is not as the source's: %s", want, list(major)), alterFix(want, all))
	}
	if len(minor) > 0 {
		r.warn("existing_options", want.String(), fmt.Sprintf("table %s of the target differs from the source's in what does not matter for the copy: %s", want, list(minor)),
			"nothing to do if that is intended")
	}
}

func alterFix(want *table.Table, all []table.Difference) string {
	if alter := table.AlterStatement(want.FullName(), all); alter != "" {
		return "on the target: " + alter
	}
	return "drop it there and make it anew as the source has it: " + strings.Join(strings.Fields(string(want.Create)), " ")
}

// checkReferences looks at foreign keys of the target's other tables that point
// at selected tables.
func (r *runner) checkReferences(ctx context.Context) error {
	f := &r.in.Facts
	selected := map[table.Name]table.Name{}
	for _, t := range f.Tables {
		selected[r.targetFolded(t.FullName())] = t.FullName()
	}
	err := r.target.conn.Query(ctx, func(rows *sql.Rows) error {
		var child, parent table.Name
		var key string
		if err := rows.Scan(&child.Database, &child.Table, &key, &parent.Database, &parent.Table); err != nil {
			return err
		}
		name, ok := selected[r.targetFolded(parent)]
		if !ok || r.targetFolded(child) == r.targetFolded(parent) {
			return nil
		}
		f.Referenced[name] = true
		if _, ok := selected[r.targetFolded(child)]; !ok {
			r.outsideChild(child, key, name)
		}
		return nil
	}, "SELECT CONSTRAINT_SCHEMA, TABLE_NAME, CONSTRAINT_NAME, UNIQUE_CONSTRAINT_SCHEMA, REFERENCED_TABLE_NAME"+
		" FROM information_schema.REFERENTIAL_CONSTRAINTS WHERE UNIQUE_CONSTRAINT_SCHEMA IN ("+r.databaseList()+")")
	if err != nil {
		return fmt.Errorf("list foreign keys of the target: %w", err)
	}
	return nil
}

// outsideChild tells of a table that is not copied and depends on one that is
// emptied or dropped.
func (r *runner) outsideChild(child table.Name, key string, parent table.Name) {
	const other = "drop that foreign key on the target, or include the table"
	switch r.in.Facts.Taken[parent] {
	case RuleRecreate:
		r.fail("foreign_child", child.String(), fmt.Sprintf("foreign key %s of the target's table %s, which is not selected, points at table %s, which would be dropped", key, child, parent),
			other+", or set existing_tables: truncate")
	case RuleTruncate:
		r.warn("foreign_child", child.String(), fmt.Sprintf("foreign key %s of the target's table %s, which is not selected, points at table %s, which is emptied: its rows have no parents until the copy is done, and after it perhaps", key, child, parent),
			other)
	}
}
