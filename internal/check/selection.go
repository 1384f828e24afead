package check

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/copydb/copydb/internal/mysqlconn"
	"github.com/copydb/copydb/internal/table"
)

// maxReload is how often the list is read again when a table vanishes between
// the list and its structure.
const maxReload = 5

// checkSelection lists what is selected, tries to read each table, and loads the
// structures of those that can be read.
func checkSelection(ctx context.Context, r *runner) error {
	f := &r.in.Facts
	f.FoldCase = r.source.value("lower_case_table_names") != "0"
	selection, err := r.in.Select(f.FoldCase)
	if err != nil {
		return fmt.Errorf("compile the selection: %w", err)
	}
	f.Selection = selection
	for try := 1; ; try++ {
		done := len(r.found)
		err := r.loadSelection(ctx)
		if err == nil || !mysqlconn.IsTableGone(err) || try == maxReload {
			return err
		}
		r.found = r.found[:done]
	}
}

func (r *runner) loadSelection(ctx context.Context) error {
	f := &r.in.Facts
	f.Databases, f.Tables, f.LeftOut, f.Rows, f.Bytes = nil, nil, nil, 0, 0
	entries, err := table.List(ctx, r.raw)
	if err != nil {
		return err
	}
	var names []table.Name
	for _, e := range entries {
		switch {
		case !f.Selection.Match(e.Database, e.Name.Table):
		case e.IsTable():
			names = append(names, e.Name)
		default:
			f.LeftOut = append(f.LeftOut, LeftOut{Type: kindOfEntry(e.Type), Database: e.Database, Name: e.Name.Table})
		}
	}
	r.literals(entries)
	if err := r.databases(ctx, names); err != nil {
		return err
	}
	r.binlogFilters(f.Databases)
	if len(names) == 0 {
		r.nothing()
		return nil
	}
	readable, err := r.tryTables(ctx, names)
	if err != nil {
		return err
	}
	if err := r.load(ctx, readable); err != nil {
		return err
	}
	r.have |= needTables
	return nil
}

// kindOfEntry turns TABLE_TYPE into a word for messages.
func kindOfEntry(t string) string {
	if strings.Contains(t, "VIEW") {
		return "view"
	}
	return strings.ToLower(t)
}

// nothing says that the selection is empty. The catalogue hides what the account
// has no right on, so a missing grant looks the same.
func (r *runner) nothing() {
	s := r.source
	fix := "check tables.include and tables.exclude"
	if !s.grantsKnown || !s.grants.everywhere("SELECT") {
		var grants []string
		for _, db := range r.in.databaseNames() {
			grants = append(grants, grant([]string{"SELECT"}, scopeOf(s.facts, db), s.facts.Account))
		}
		fix += "; tables without the SELECT privilege are not visible: " + strings.Join(grants, "; ")
	}
	r.fail("nothing_selected", "tables.include", "no table that the source account can see is selected", fix)
}

// literals looks for what is named without a wildcard and is not there.
func (r *runner) literals(entries []table.Entry) {
	f := &r.in.Facts
	fold := func(s string) string {
		if f.FoldCase {
			return strings.ToLower(s)
		}
		return s
	}
	seen := map[table.Name]bool{}
	for _, e := range entries {
		seen[table.Name{Database: fold(e.Database), Table: fold(e.Name.Table)}] = true
		seen[table.Name{Database: fold(e.Database)}] = true
	}
	for _, n := range r.in.Literal {
		if seen[table.Name{Database: fold(n.Database), Table: fold(n.Table)}] {
			continue
		}
		what, object := "database", n.Database
		if n.Table != "" {
			what, object = "table", n.String()
		}
		r.fail("not_visible", object, fmt.Sprintf("%s %s is not on the source, or the source account may not see it", what, object),
			"check the spelling in tables.include, or "+grant([]string{"SELECT"}, scopeOf(r.source.facts, n.Database), r.source.facts.Account))
	}
}

// databases reads the defaults of the databases that hold the tables.
func (r *runner) databases(ctx context.Context, names []table.Name) error {
	wanted := map[string]bool{}
	for _, n := range names {
		wanted[n.Database] = true
	}
	f := &r.in.Facts
	err := r.raw.Query(ctx, "SELECT SCHEMA_NAME, DEFAULT_CHARACTER_SET_NAME, DEFAULT_COLLATION_NAME FROM information_schema.SCHEMATA",
		func(row [][]byte) error {
			if wanted[string(row[0])] {
				f.Databases = append(f.Databases, Database{string(row[0]), string(row[1]), string(row[2])})
			}
			return nil
		})
	if err != nil {
		return fmt.Errorf("list databases of the source: %w", err)
	}
	slices.SortFunc(f.Databases, func(a, b Database) int { return strings.Compare(a.Name, b.Name) })
	return nil
}

// load reads the structures, one database after the other.
func (r *runner) load(ctx context.Context, names []table.Name) error {
	f := &r.in.Facts
	for len(names) > 0 {
		db := names[0].Database
		var tables []string
		for len(names) > 0 && names[0].Database == db {
			tables, names = append(tables, names[0].Table), names[1:]
		}
		loaded, err := table.Load(ctx, r.raw, r.source.version().Flavor, db, tables)
		if err != nil {
			return err
		}
		f.Tables = append(f.Tables, loaded...)
	}
	for _, t := range f.Tables {
		f.Rows += t.Rows
		f.Bytes += t.Bytes
	}
	return nil
}

// tryBatch is how many tables one try reads; a join takes at most 61.
const tryBatch = 50

// tryTables reads no row of each table and returns those that could be read.
func (r *runner) tryTables(ctx context.Context, names []table.Name) ([]table.Name, error) {
	var readable []table.Name
	for batch := range slices.Chunk(names, tryBatch) {
		err := r.try(ctx, batch)
		if err == nil {
			readable = append(readable, batch...)
			continue
		}
		if mysqlconn.ErrorNumber(err) == 0 {
			return nil, fmt.Errorf("try to read %s and others: %w", batch[0], err)
		}
		for _, n := range batch {
			err := r.try(ctx, []table.Name{n})
			switch {
			case err == nil:
				readable = append(readable, n)
			case mysqlconn.ErrorNumber(err) == 0 || mysqlconn.IsTableGone(err):
				return nil, fmt.Errorf("try to read %s: %w", n, err)
			default:
				r.unreadable(n, err)
			}
		}
	}
	return readable, nil
}

// try runs a query over all columns of the tables that returns no row. The
// server checks rights on all of them first.
func (r *runner) try(ctx context.Context, names []table.Name) error {
	var b strings.Builder
	b.WriteString("SELECT 1 FROM ")
	for i, n := range names {
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "(SELECT * FROM %s LIMIT 0) AS t%d", n.Quoted(), i)
	}
	b.WriteString(" LIMIT 0")
	return r.raw.Query(ctx, b.String(), func([][]byte) error { return nil })
}

func (r *runner) unreadable(n table.Name, err error) {
	switch {
	case mysqlconn.IsAccessDenied(err):
		r.fail("source_select", n.String(), "the source account lacks SELECT on table "+n.String(),
			grant([]string{"SELECT"}, scopeOf(r.source.facts, n.Database), r.source.facts.Account))
	case mysqlconn.IsLockConflict(err):
		r.fail("table_locked", n.String(), fmt.Sprintf("table %s is locked by a schema change or LOCK TABLES on the source", n),
			"try again when that has ended (SHOW PROCESSLIST names it)")
	default:
		r.fail("table_unreadable", n.String(), fmt.Sprintf("table %s cannot be read: %v", n, err), "repair the table on the source, or exclude it")
	}
}
