package check

import (
	"context"
	"database/sql"
	"fmt"
	"strings"

	"github.com/copydb/copydb/internal/table"
)

// checkCascades ties tables together that change by cascades of which the source
// logs nothing. Where the parent is not copied, its changes are not seen.
func checkCascades(_ context.Context, r *runner) error {
	if !r.source.cascadesUnlogged() {
		return nil
	}
	f := &r.in.Facts
	for _, o := range r.orphans() {
		if o.key.Cascades() {
			r.fail("unlogged_cascade", o.table.String(), fmt.Sprintf(
				"table %s changes with its parent %s by ON DELETE/UPDATE of foreign key %s, which this source does not log, and %s is not selected", o.table, o.key.Parent(), o.key.Name, o.key.Parent()),
				"include the parent table, exclude "+o.table.String()+", or make the foreign key RESTRICT on the source")
		}
	}
	f.Components = table.Components(f.Tables, f.FoldCase)
	for _, t := range f.Tables {
		t.Tie(f.Components, f.FoldCase)
	}
	return nil
}

// checkForeign looks for foreign keys of the selected tables whose parent is not
// copied.
func checkForeign(ctx context.Context, r *runner) error {
	return r.outsideParents(ctx, r.orphans())
}

// orphan is a foreign key whose parent is not selected.
type orphan struct {
	table *table.Table
	key   *table.ForeignKey
}

func (r *runner) orphans() []orphan {
	selected := map[table.Name]bool{}
	for _, t := range r.in.Facts.Tables {
		selected[r.folded(t.FullName())] = true
	}
	var out []orphan
	for _, t := range r.in.Facts.Tables {
		for i := range t.Foreign {
			if fk := &t.Foreign[i]; !selected[r.folded(fk.Parent())] {
				out = append(out, orphan{t, fk})
			}
		}
	}
	return out
}

// outsideParents refuses foreign keys whose parent the target will not have.
func (r *runner) outsideParents(ctx context.Context, all []orphan) error {
	if len(all) == 0 || r.have&needTarget == 0 {
		return nil
	}
	var databases []string
	for _, o := range all {
		databases = append(databases, o.key.ParentDatabase)
	}
	there, err := r.targetTables(ctx, databases)
	if err != nil {
		return err
	}
	for _, o := range all {
		parent := o.key.Parent()
		if _, ok := there[r.targetFolded(parent)]; ok {
			r.warn("foreign_parent", o.table.String(), fmt.Sprintf("foreign key %s of table %s points at %s, which is not selected: the target's own table is taken", o.key.Name, o.table, parent),
				"make sure that the target's "+parent.String()+" has the rows and the target account SELECT and REFERENCES on it, or include it")
			continue
		}
		r.fail("foreign_parent", o.table.String(), fmt.Sprintf("foreign key %s of table %s points at %s, which is neither selected nor on the target", o.key.Name, o.table, parent),
			"include the parent table, or exclude "+o.table.String())
	}
	return nil
}

// folded is a name as the source compares it.
func (r *runner) folded(n table.Name) table.Name { return n.Folded(r.in.Facts.FoldCase) }

// targetFolded is a name as the target compares it.
func (r *runner) targetFolded(n table.Name) table.Name {
	return n.Folded(r.target.value("lower_case_table_names") != "0")
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
