package streamer

import (
	"fmt"
	"slices"
	"strings"

	"github.com/copydb/copydb/internal/position"
	"github.com/copydb/copydb/internal/table"
)

// tables is what the run wants of the log, prepared for many questions.
type tables struct {
	cfg    *Config
	byName map[table.Name]*tracked
	folded map[table.Name]*tracked // by lower-case name, where the source folds
	listAt position.Start
}

// tracked is one table of the run.
type tracked struct {
	*TableSpec
	name    table.Name
	start   position.Start
	inKey   []bool // by column: part of a unique key
	finds   []bool // by column: part of the key that rows are found by
	before  []bool // by column: looked at in before images
	cascade []bool // by column: a foreign key with a cascading ON UPDATE points at it
	rowEnd  int    // see table.Table.RowEnd
	layout  *layout
}

func newTables(cfg *Config) (*tables, error) {
	t := &tables{cfg: cfg, byName: map[table.Name]*tracked{}, folded: map[table.Name]*tracked{}}
	var err error
	if t.listAt, err = position.NewStart(cfg.Version.Flavor, cfg.TableListAt); err != nil {
		return nil, fmt.Errorf("position of the list of tables: %w", err)
	}
	for name, spec := range cfg.Tables {
		tr := &tracked{TableSpec: spec, name: name}
		if tr.start, err = position.NewStart(cfg.Version.Flavor, spec.Start); err != nil {
			return nil, fmt.Errorf("start position of table %s: %w", name, err)
		}
		tr.markColumns()
		t.byName[name] = tr
		if cfg.FoldNames {
			t.folded[name.Folded(true)] = tr
		}
	}
	return t, nil
}

func (tr *tracked) markColumns() {
	columns := tr.Structure.Columns
	tr.rowEnd = tr.Structure.RowEnd()
	tr.inKey, tr.cascade, tr.finds = make([]bool, len(columns)), make([]bool, len(columns)), make([]bool, len(columns))
	tr.before = make([]bool, len(columns))
	key := tr.Structure.UsableKey()
	if key != nil {
		for i := range columns {
			tr.finds[i] = slices.ContainsFunc(key.Columns, func(kc table.KeyColumn) bool { return kc.Name == columns[i].Name })
		}
	}
	for i := range columns {
		for _, k := range tr.Structure.Keys {
			tr.inKey[i] = tr.inKey[i] || slices.ContainsFunc(k.Columns, func(kc table.KeyColumn) bool {
				return strings.EqualFold(kc.Name, columns[i].Name)
			})
		}
		tr.cascade[i] = slices.ContainsFunc(tr.CascadesUpdate, func(c string) bool {
			return strings.EqualFold(c, columns[i].Name)
		})
		tr.before[i] = key == nil || tr.finds[i] || tr.cascade[i]
	}
}

func (t *tables) find(n table.Name) *tracked {
	if tr := t.byName[n]; tr != nil {
		return tr
	}
	if t.cfg.FoldNames {
		return t.folded[n.Folded(true)]
	}
	return nil
}

// selected reports whether the run has or may want the table.
func (t *tables) selected(n table.Name) bool {
	if t.find(n) != nil {
		return true
	}
	if t.cfg.Ignore != nil && t.cfg.Ignore(n) {
		return false
	}
	return t.cfg.Selected != nil && t.cfg.Selected(n.Database, n.Table)
}

// inDatabase returns the tables of the run in a database.
func (t *tables) inDatabase(database string) []table.Name {
	var out []table.Name
	for n := range t.byName {
		if n.Database == database || t.cfg.FoldNames && strings.EqualFold(n.Database, database) {
			out = append(out, n)
		}
	}
	slices.SortFunc(out, table.Name.Compare)
	return out
}

// covered reports whether everything that the group could do to the table is
// in its copy, or in the list of tables, already.
func (t *tables) covered(n table.Name, g *group) bool {
	if tr := t.find(n); tr != nil {
		return tr.start.Covers(g.gtid, g.inside)
	}
	return t.listAt.Covers(g.gtid, g.inside)
}

// allCovered is covered for every table there is.
func (t *tables) allCovered(g *group) bool {
	if !t.listAt.Covers(g.gtid, g.inside) {
		return false
	}
	for _, tr := range t.byName {
		if !tr.start.Covers(g.gtid, g.inside) {
			return false
		}
	}
	return true
}

// wanted returns those of names that are selected and not covered.
func (t *tables) wanted(names []table.Name, g *group) []table.Name {
	var out []table.Name
	for _, n := range names {
		if t.selected(n) && !t.covered(n, g) && !slices.Contains(out, n) {
			out = append(out, n)
		}
	}
	return out
}
