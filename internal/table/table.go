package table

import (
	"slices"
	"strings"

	"github.com/copydb/copydb/state"
)

// Kind says how values of a column are read and written.
type Kind string

// The kinds. All but Text carry no character set.
const (
	Integer  Kind = "integer"
	Decimal  Kind = "decimal"
	Float    Kind = "float"  // 4 bytes: its text form has 6 digits only
	Double   Kind = "double" // 8 bytes
	Bit      Kind = "bit"
	Temporal Kind = "temporal" // date, time, datetime, timestamp
	Year     Kind = "year"
	Text     Kind = "text"
	Binary   Kind = "binary" // binary, varbinary, blobs
	Enum     Kind = "enum"
	Set      Kind = "set"
	JSON     Kind = "json" // MySQL's own; MariaDB's JSON is Text
	Geometry Kind = "geometry"
	Vector   Kind = "vector"
	Address  Kind = "address" // MariaDB's uuid, inet4 and inet6
	Unknown  Kind = "unknown"
)

// Column is one column, also a generated or an invisible one.
type Column struct {
	Name       string `json:"name"`
	Type       string `json:"type"`      // the type's name in lower case: varchar
	FullType   string `json:"full_type"` // with length and attributes: varchar(20)
	Kind       Kind   `json:"kind"`
	Charset    string `json:"charset,omitempty"`
	Collation  string `json:"collation,omitempty"`
	Length     int    `json:"length,omitempty"` // bytes of BINARY(n), bits of BIT(n)
	Unsigned   bool   `json:"unsigned,omitempty"`
	Nullable   bool   `json:"nullable,omitempty"`
	Generated  bool   `json:"generated,omitempty"`
	Expression string `json:"expression,omitempty"` // of a generated column
	Invisible  bool   `json:"invisible,omitempty"`
	Compressed bool   `json:"compressed,omitempty"` // MariaDB's COMPRESSED
	AutoInc    bool   `json:"auto_increment,omitempty"`
}

// What stands for the expression of the columns that say from when until when a
// row of a system-versioned table holds.
const (
	rowStart = "ROW START"
	rowEnd   = "ROW END"
)

// RowTime reports whether the column says from when or until when a row of a
// system-versioned table holds.
func (c *Column) RowTime() bool { return c.Expression == rowStart || c.Expression == rowEnd }

// KeyColumn is one part of an index.
type KeyColumn struct {
	Name       string `json:"name"`             // "" for an expression
	Prefix     int    `json:"prefix,omitempty"` // indexed length where not whole
	Descending bool   `json:"descending,omitempty"`
}

// Key is one unique index.
type Key struct {
	Name    string      `json:"name"`
	Columns []KeyColumn `json:"columns"`
	Hash    bool        `json:"hash,omitempty"` // not ordered
}

// ForeignKey is one constraint of the table that has it.
type ForeignKey struct {
	Name           string   `json:"name"`
	Columns        []string `json:"columns"`
	ParentDatabase string   `json:"parent_database"`
	ParentTable    string   `json:"parent_table"`
	ParentColumns  []string `json:"parent_columns"`
	OnDelete       string   `json:"on_delete"`
	OnUpdate       string   `json:"on_update"`
	Tied           bool     `json:"tied,omitempty"` // see Table.Component
}

// Parent is the table that the constraint points at.
func (f ForeignKey) Parent() Name { return Name{f.ParentDatabase, f.ParentTable} }

// Cascades reports whether a change of the parent changes rows of the child.
func (f ForeignKey) Cascades() bool {
	return Cascades(f.OnDelete) || Cascades(f.OnUpdate)
}

// Cascades reports whether a rule of a foreign key changes rows of the child.
func Cascades(rule string) bool {
	return rule == "CASCADE" || rule == "SET NULL" || rule == "SET DEFAULT"
}

// Name is a table's full name.
type Name struct {
	Database, Table string
}

// String writes the name for messages: database.table.
func (n Name) String() string { return n.Database + "." + n.Table }

// Quoted writes the name for SQL.
func (n Name) Quoted() string { return Quote(n.Database) + "." + Quote(n.Table) }

// Folded is the name as a server compares it; fold says that it does so in lower
// case.
func (n Name) Folded(fold bool) Name {
	if fold {
		return Name{strings.ToLower(n.Database), strings.ToLower(n.Table)}
	}
	return n
}

// Table is the structure of one table at one position.
type Table struct {
	Database string       `json:"database"`
	Table    string       `json:"table"`
	Engine   string       `json:"engine"`
	Columns  []Column     `json:"columns"` // as row events order them
	Keys     []Key        `json:"keys"`    // all unique ones, the primary key first
	Foreign  []ForeignKey `json:"foreign_keys,omitempty"`
	// Hidden is how many columns row events have behind the listed ones:
	// MariaDB keeps a hash for each long unique key.
	Hidden    int  `json:"hidden,omitempty"`
	Versioned bool `json:"versioned,omitempty"` // system-versioned
	Overlaps  bool `json:"overlaps,omitempty"`  // a key WITHOUT OVERLAPS
	// Component numbers the tables that unlogged cascades tie to each other: they
	// are copied in one snapshot, and their changes are applied in log order. 0 is
	// none. See Components.
	Component int `json:"component,omitempty"`
	// Create is SHOW CREATE TABLE's text. MariaDB prints binary defaults raw, so
	// it may be no UTF-8.
	Create state.Text `json:"create"`

	Rows  int64 `json:"-"` // the server's estimate
	Bytes int64 `json:"-"` // data length, the server's estimate
}

// FullName returns the table's name.
func (t *Table) FullName() Name { return Name{t.Database, t.Table} }

// String returns the name for messages.
func (t *Table) String() string { return t.FullName().String() }

// Quoted returns the name for SQL.
func (t *Table) Quoted() string { return t.FullName().Quoted() }

// Column returns the column of that name, or nil.
func (t *Table) Column(name string) *Column {
	for i := range t.Columns {
		if t.Columns[i].Name == name {
			return &t.Columns[i]
		}
	}
	return nil
}

// ColumnFold finds a column whose name may differ in case: column names have none
// on any server.
func (t *Table) ColumnFold(name string) *Column {
	if c := t.Column(name); c != nil {
		return c
	}
	for i := range t.Columns {
		if strings.EqualFold(t.Columns[i].Name, name) {
			return &t.Columns[i]
		}
	}
	return nil
}

// AutoIncrement reports whether a column of the table has AUTO_INCREMENT.
func (t *Table) AutoIncrement() bool {
	for i := range t.Columns {
		if t.Columns[i].AutoInc {
			return true
		}
	}
	return false
}

// Stored returns the columns that are read and written: all but generated ones.
func (t *Table) Stored() []*Column {
	out := make([]*Column, 0, len(t.Columns))
	for i := range t.Columns {
		if !t.Columns[i].Generated {
			out = append(out, &t.Columns[i])
		}
	}
	return out
}

// Transactional reports whether the engine rolls back.
func (t *Table) Transactional() bool { return Transactional(t.Engine) }

// Transactional reports whether an engine rolls back.
func Transactional(engine string) bool {
	switch engine {
	case "InnoDB", "ROCKSDB", "RocksDB", "TokuDB", "ndbcluster":
		return true
	}
	return false
}

// TargetEngine returns the engine that the table gets on the target: its own, or
// InnoDB where that does not roll back and there is no usable key. The target's
// rows are then written together with the position, since a change that is made
// twice would stay twice.
func (t *Table) TargetEngine() string {
	if !t.Transactional() && t.UsableKey() == nil {
		return "InnoDB"
	}
	return t.Engine
}

// OtherEngine reports whether the target gets the table with another engine.
func (t *Table) OtherEngine() bool { return t.TargetEngine() != t.Engine }

// RowEnd returns the place of the column that says until when a row of a
// system-versioned table holds, or -1.
func (t *Table) RowEnd() int {
	return slices.IndexFunc(t.Columns, func(c Column) bool { return c.Expression == rowEnd })
}

// IsCurrent reports whether the literal of a row's end says that the row holds:
// the end of time, which MariaDB has moved with 11.5.
func IsCurrent(end []byte) bool {
	switch string(end) {
	case "'2038-01-19 03:14:07.999999'", "'2106-02-07 06:28:15.999999'":
		return true
	}
	return false
}

// UsableKey returns the key by which rows are found and chunks are cut: unique
// over whole NOT NULL columns without FLOAT or DOUBLE, the primary key first.
// It is nil where there is none, and for tables that must be exact whatever
// their keys are.
func (t *Table) UsableKey() *Key {
	if t.Versioned || t.Overlaps || t.Component != 0 {
		return nil
	}
	return t.uniqueKey()
}

// uniqueKey is UsableKey for a table that could be a converging one.
func (t *Table) uniqueKey() *Key {
	for i := range t.Keys {
		if t.usable(&t.Keys[i]) {
			return &t.Keys[i]
		}
	}
	return nil
}

// SetNull reports whether a foreign key sets columns of the table to NULL.
func (t *Table) SetNull() bool {
	return slices.ContainsFunc(t.Foreign, func(fk ForeignKey) bool { return fk.OnDelete == "SET NULL" })
}

// Places returns where the columns of a key stand in the table, which may write
// their names in another case; -1 for one that it does not have.
func (t *Table) Places(k *Key) []int {
	out := make([]int, len(k.Columns))
	for i, kc := range k.Columns {
		out[i] = slices.IndexFunc(t.Columns, func(c Column) bool { return strings.EqualFold(c.Name, kc.Name) })
	}
	return out
}

// InUniqueKey reports whether a column is in a key by which the server finds a
// row fast, whether or not the table's changes may be applied by it alone.
func (t *Table) InUniqueKey(column string) bool {
	k := t.uniqueKey()
	return k != nil && slices.ContainsFunc(k.Columns, func(kc KeyColumn) bool { return kc.Name == column })
}

func (t *Table) usable(k *Key) bool {
	if k.Hash && t.Engine == "InnoDB" {
		return false // a long unique key: a hash finds no range
	}
	for _, kc := range k.Columns {
		c := t.Column(kc.Name)
		if c == nil || kc.Prefix > 0 || c.Nullable {
			return false
		}
		switch c.Kind {
		case Float, Double, JSON, Geometry, Vector, Unknown:
			return false
		}
	}
	return len(k.Columns) > 0
}

// WhyExact says why a table has no usable key, or "": each change of such a table
// is applied exactly once, instead of being replayed.
func (t *Table) WhyExact() string {
	switch {
	case t.Versioned:
		return "it is system-versioned"
	case t.Overlaps:
		return "it has a key WITHOUT OVERLAPS"
	case t.Component != 0:
		return "ON DELETE/UPDATE of foreign keys changes it together with other tables, which this source does not log"
	case t.UsableKey() != nil:
		return ""
	case len(t.Keys) == 0:
		return "it has no primary or unique key"
	}
	return "no primary or unique key is over whole NOT NULL columns without FLOAT or DOUBLE"
}

// WhyNot says why a table cannot be copied at all, or "".
func (t *Table) WhyNot() string {
	why := t.WhyExact()
	switch {
	case t.Versioned && t.Columns[t.RowEnd()].Type != "timestamp":
		return "it is versioned by transactions, and the server logs its changes as statements"
	case t.OtherEngine() && t.Engine != "MyISAM" && t.Engine != "Aria":
		return why + ", and its engine " + t.Engine + " does not roll back"
	case t.OtherEngine() && slices.ContainsFunc(t.Keys, func(k Key) bool { return k.Hash }):
		return why + ", its engine " + t.Engine + " does not roll back, and it has a unique key over long values"
	case t.OtherEngine() && !t.countsInFront():
		return why + ", its engine " + t.Engine + " does not roll back, and InnoDB, which does, cannot have its AUTO_INCREMENT column, with which no key begins"
	}
	return ""
}

// countsInFront reports whether a key begins with the AUTO_INCREMENT column, if
// there is one.
func (t *Table) countsInFront() bool {
	for i := range t.Columns {
		if c := &t.Columns[i]; c.AutoInc {
			return slices.ContainsFunc(ParseCreate(string(t.Create)).Items, func(it Item) bool { return it.begins(c.Name) })
		}
	}
	return true
}

// KeyNames returns the columns of k by name.
func (k *Key) KeyNames() []string {
	out := make([]string, len(k.Columns))
	for i, c := range k.Columns {
		out[i] = c.Name
	}
	return out
}
