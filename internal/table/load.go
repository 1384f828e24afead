package table

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/copydb/copydb/internal/mysqlconn"
	"github.com/copydb/copydb/state"
)

// Queryer reads rows as raw bytes; *mysqlconn.Session is one. The bytes are
// valid until row returns.
type Queryer interface {
	Query(ctx context.Context, query string, row func(fields [][]byte) error) error
}

// Entry is one thing that the catalogue lists under a database.
type Entry struct {
	Name
	Type string // BASE TABLE, SYSTEM VERSIONED, VIEW, SEQUENCE, …
}

// IsTable reports whether the entry has rows to copy.
func (e Entry) IsTable() bool { return e.Type == "BASE TABLE" || e.Type == "SYSTEM VERSIONED" }

// lit writes a name for a comparison in the catalogue.
func lit(s string) string { return string(AppendHex([]byte("_utf8mb4 "), []byte(s))) }

// List returns everything the catalogue lists outside system schemas, by name.
func List(ctx context.Context, q Queryer) ([]Entry, error) {
	var out []Entry
	err := q.Query(ctx, `SELECT TABLE_SCHEMA, TABLE_NAME, TABLE_TYPE FROM information_schema.TABLES
		WHERE TABLE_SCHEMA NOT IN ('mysql', 'sys', 'information_schema', 'performance_schema', '_copydb')`,
		func(f [][]byte) error {
			out = append(out, Entry{Name{string(f[0]), string(f[1])}, string(f[2])})
			return nil
		})
	if err != nil {
		return nil, fmt.Errorf("list tables: %w", err)
	}
	slices.SortFunc(out, func(a, b Entry) int { return a.Compare(b.Name) })
	return out, nil
}

// Compare orders names by bytes.
func (n Name) Compare(m Name) int {
	if c := strings.Compare(n.Database, m.Database); c != 0 {
		return c
	}
	return strings.Compare(n.Table, m.Table)
}

// loadBatch is how many tables one look into the catalogue asks for. A server
// may open every table that it tells of, so it is asked for those only that are
// wanted.
const loadBatch = 200

// Load reads the structures of tables of one database, in the order of names.
// A table that is not there is an error that mysqlconn.IsTableGone knows.
func Load(ctx context.Context, q Queryer, flavor mysqlconn.Flavor, database string, names []string) ([]*Table, error) {
	var out []*Table
	for batch := range slices.Chunk(names, loadBatch) {
		tables, err := load(ctx, q, flavor, database, batch)
		if err != nil {
			return nil, err
		}
		out = append(out, tables...)
	}
	return out, nil
}

func load(ctx context.Context, q Queryer, flavor mysqlconn.Flavor, database string, names []string) ([]*Table, error) {
	l := loader{q: q, flavor: flavor, database: database, tables: map[string]*Table{}}
	literals := make([]string, len(names))
	for i, n := range names {
		l.tables[n] = &Table{Database: database, Table: n}
		literals[i] = lit(n)
	}
	l.only = " AND TABLE_NAME = " + literals[0]
	if len(literals) > 1 {
		// MariaDB takes names in a list for one that its collation holds equal, and
		// looks that one up.
		l.only = " AND CONVERT(TABLE_NAME USING utf8mb4) COLLATE utf8mb4_bin IN (" + strings.Join(literals, ", ") + ")"
	}
	for _, step := range []func(context.Context) error{l.basics, l.columns, l.keys, l.creates} {
		if err := step(ctx); err != nil {
			return nil, err
		}
	}
	out := make([]*Table, len(names))
	for i, n := range names {
		out[i] = l.tables[n]
		out[i].finish()
	}
	return out, nil
}

type loader struct {
	q        Queryer
	flavor   mysqlconn.Flavor
	database string
	only     string
	tables   map[string]*Table // the catalogue may compare without case, this does not
}

func (l *loader) read(ctx context.Context, what, query string, row func(t *Table, f [][]byte) error) error {
	err := l.q.Query(ctx, query, func(f [][]byte) error {
		if t := l.tables[string(f[0])]; t != nil {
			return row(t, f[1:])
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("read %s of %s: %w", what, l.database, err)
	}
	return nil
}

func (l *loader) basics(ctx context.Context) error {
	return l.read(ctx, "tables", `SELECT TABLE_NAME, ENGINE, TABLE_TYPE, TABLE_ROWS, DATA_LENGTH
		FROM information_schema.TABLES WHERE TABLE_SCHEMA = `+lit(l.database)+l.only,
		func(t *Table, f [][]byte) error {
			t.Engine = string(f[0])
			t.Versioned = string(f[1]) == "SYSTEM VERSIONED"
			t.Rows, _ = strconv.ParseInt(string(f[2]), 10, 64)
			t.Bytes, _ = strconv.ParseInt(string(f[3]), 10, 64)
			return nil
		})
}

func (l *loader) columns(ctx context.Context) error {
	return l.read(ctx, "columns", `SELECT TABLE_NAME, COLUMN_NAME, DATA_TYPE, COLUMN_TYPE, CHARACTER_SET_NAME, COLLATION_NAME,
		IS_NULLABLE, EXTRA, GENERATION_EXPRESSION
		FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = `+lit(l.database)+l.only+` ORDER BY TABLE_NAME, ORDINAL_POSITION`,
		func(t *Table, f [][]byte) error {
			t.Columns = append(t.Columns, newColumn(l.flavor, f))
			return nil
		})
}

func newColumn(flavor mysqlconn.Flavor, f [][]byte) Column {
	full, extra := string(f[2]), strings.ToUpper(string(f[6]))
	c := Column{
		Name: string(f[0]), Type: strings.ToLower(string(f[1])), FullType: full,
		Charset: string(f[3]), Collation: string(f[4]),
		Nullable: string(f[5]) == "YES",
		// DEFAULT_GENERATED is an expression default, not a generated column.
		Generated: strings.Contains(extra, "VIRTUAL GENERATED") || strings.Contains(extra, "STORED GENERATED") ||
			strings.Contains(extra, "PERSISTENT GENERATED"),
		Invisible:  strings.Contains(extra, "INVISIBLE"),
		AutoInc:    strings.Contains(extra, "AUTO_INCREMENT"),
		Unsigned:   strings.Contains(full, "unsigned") || strings.Contains(full, "zerofill"),
		Compressed: strings.Contains(full, "COMPRESSED"),
	}
	if c.Generated {
		c.Expression = string(f[7])
	}
	c.Kind = kindOf(c.Type, flavor == mysqlconn.MySQL)
	c.Length = lengthOf(c.Type, full)
	if c.Kind == Text && c.Charset == "" {
		c.Kind = Binary
	}
	return c
}

func (l *loader) keys(ctx context.Context) error {
	return l.read(ctx, "keys", `SELECT TABLE_NAME, INDEX_NAME, COLUMN_NAME, SUB_PART, COLLATION, INDEX_TYPE
		FROM information_schema.STATISTICS WHERE TABLE_SCHEMA = `+lit(l.database)+l.only+` AND NON_UNIQUE = 0
		ORDER BY TABLE_NAME, INDEX_NAME, SEQ_IN_INDEX`,
		func(t *Table, f [][]byte) error {
			name := string(f[0])
			i := slices.IndexFunc(t.Keys, func(k Key) bool { return k.Name == name })
			if i < 0 {
				t.Keys = append(t.Keys, Key{Name: name, Hash: string(f[4]) == "HASH"})
				i = len(t.Keys) - 1
			}
			kc := KeyColumn{Name: string(f[1]), Descending: string(f[3]) == "D"}
			kc.Prefix, _ = strconv.Atoi(string(f[2]))
			t.Keys[i].Columns = append(t.Keys[i].Columns, kc)
			return nil
		})
}

func (l *loader) creates(ctx context.Context) error {
	for _, t := range l.tables {
		text, err := ShowCreate(ctx, l.q, t.FullName())
		if err != nil {
			return err
		}
		t.Create = state.Text(text)
	}
	return nil
}

// ShowCreate returns SHOW CREATE TABLE's text, byte for byte.
func ShowCreate(ctx context.Context, q Queryer, n Name) (string, error) {
	var text string
	err := q.Query(ctx, "SHOW CREATE TABLE "+n.Quoted(), func(f [][]byte) error {
		text = string(f[1])
		return nil
	})
	if err != nil {
		return "", fmt.Errorf("show create table %s: %w", n, err)
	}
	return text, nil
}

// finish derives what the catalogue does not say by itself.
func (t *Table) finish() {
	if t.Versioned && t.RowEnd() < 0 { // they are in row events, not in the catalogue
		t.Columns = append(t.Columns, rowTime("row_start", rowStart), rowTime("row_end", rowEnd))
	}
	slices.SortStableFunc(t.Keys, func(a, b Key) int { return keyRank(t, a) - keyRank(t, b) })
	for _, k := range t.Keys {
		if k.Hash && t.Engine == "InnoDB" {
			t.Hidden++
		}
	}
	for _, item := range ParseCreate(string(t.Create)).Items {
		switch {
		case item.IsForeignKey():
			t.Foreign = append(t.Foreign, parseForeignKey(item.Text, t.Database))
		case item.hasWords("WITHOUT", "OVERLAPS"):
			t.Overlaps = true
		}
	}
}

func rowTime(name, is string) Column {
	return Column{Name: name, Type: "timestamp", FullType: "timestamp(6)", Kind: Temporal, Generated: true, Expression: is, Invisible: true}
}

// keyRank puts the primary key first, then keys of fewer columns, numbers
// before text.
func keyRank(t *Table, k Key) int {
	if k.Name == "PRIMARY" {
		return 0
	}
	rank := 10 * len(k.Columns)
	for _, kc := range k.Columns {
		if c := t.Column(kc.Name); c == nil || c.Kind != Integer {
			rank++
		}
	}
	return rank
}
