package check

import (
	"context"
	"database/sql"
	"fmt"
	"strings"

	"github.com/copydb/copydb/internal/table"
)

// checkForeign looks at the foreign keys of the selected tables: those whose
// cascades are in no log, and those whose parent is not copied.
func checkForeign(ctx context.Context, r *runner) error {
	selected := map[table.Name]bool{}
	for _, t := range r.in.Facts.Tables {
		selected[r.folded(t.FullName())] = true
	}
	unlogged := r.source.cascadesUnlogged()
	var outside []orphan
	for _, t := range r.in.Facts.Tables {
		for i := range t.Foreign {
			fk := &t.Foreign[i]
			parent := fk.Parent()
			if unlogged && fk.Cascades() {
				r.fail("unlogged_cascade", t.String(), fmt.Sprintf(
					"table %s changes with its parent %s by ON DELETE/UPDATE of foreign key %s, which this source does not log; such tables are not supported yet", t, parent, fk.Name),
					"exclude the table, or make the foreign key RESTRICT on the source")
			}
			if !selected[r.folded(parent)] {
				outside = append(outside, orphan{t, fk, parent})
			}
		}
	}
	return r.outsideParents(ctx, outside)
}

// orphan is a foreign key whose parent is not selected.
type orphan struct {
	table  *table.Table
	key    *table.ForeignKey
	parent table.Name
}

// outsideParents refuses foreign keys whose parent the target will not have.
func (r *runner) outsideParents(ctx context.Context, all []orphan) error {
	if len(all) == 0 || r.have&needTarget == 0 {
		return nil
	}
	var databases []string
	for _, o := range all {
		databases = append(databases, o.parent.Database)
	}
	there, err := r.targetTables(ctx, databases)
	if err != nil {
		return err
	}
	for _, o := range all {
		if _, ok := there[r.targetFolded(o.parent)]; ok {
			r.warn("foreign_parent", o.table.String(), fmt.Sprintf("foreign key %s of table %s points at %s, which is not selected: the target's own table is taken", o.key.Name, o.table, o.parent),
				"make sure that the target's "+o.parent.String()+" has the rows and the target account SELECT and REFERENCES on it, or include it")
			continue
		}
		r.fail("foreign_parent", o.table.String(), fmt.Sprintf("foreign key %s of table %s points at %s, which is neither selected nor on the target", o.key.Name, o.table, o.parent),
			"include the parent table, or exclude "+o.table.String())
	}
	return nil
}

// folded is a name as the source compares it.
func (r *runner) folded(n table.Name) table.Name { return fold(n, r.in.Facts.FoldCase) }

// targetFolded is a name as the target compares it.
func (r *runner) targetFolded(n table.Name) table.Name {
	return fold(n, r.target.value("lower_case_table_names") != "0")
}

func fold(n table.Name, on bool) table.Name {
	if on {
		return table.Name{Database: strings.ToLower(n.Database), Table: strings.ToLower(n.Table)}
	}
	return n
}

// targetTables lists what the target has in databases: the type by name.
func (r *runner) targetTables(ctx context.Context, databases []string) (map[table.Name]string, error) {
	var in []string
	for _, d := range databases {
		in = append(in, literal(d))
	}
	out := map[table.Name]string{}
	err := r.target.conn.Query(ctx, func(rows *sql.Rows) error {
		var n table.Name
		var kind string
		if err := rows.Scan(&n.Database, &n.Table, &kind); err != nil {
			return err
		}
		out[r.targetFolded(n)] = kind
		return nil
	}, "SELECT TABLE_SCHEMA, TABLE_NAME, TABLE_TYPE FROM information_schema.TABLES WHERE TABLE_SCHEMA IN ("+strings.Join(in, ", ")+")")
	if err != nil {
		return nil, fmt.Errorf("list tables of the target: %w", err)
	}
	return out, nil
}
