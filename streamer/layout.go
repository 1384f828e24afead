package streamer

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/copydb/copydb/internal/table"
	gomysql "github.com/go-mysql-org/go-mysql/mysql"
	"github.com/go-mysql-org/go-mysql/replication"
)

// fullMetadata is the way on where columns can only be told by their order.
const fullMetadata = "binlog_row_metadata=FULL on the source lets columns be matched by name"

// layout says where an event has the columns of a table's structure. It stays
// with the table as long as the log describes it the same way.
type layout struct {
	*tracked
	from []int // by column of the structure: its place in the event

	types, names []byte // what it was made of
	meta         []uint16
	signs        []byte
}

// layoutOf returns the layout of the table of a row event, or nil where its
// rows are not wanted.
func (r *reader) layoutOf(tm *replication.TableMapEvent) (*layout, error) {
	g := r.group
	if l, known := g.layouts[tm]; known {
		return l, nil
	}
	n := table.Name{Database: string(tm.Schema), Table: string(tm.Table)}
	l, err := r.makeLayout(n, tm)
	if err == nil {
		g.layouts[tm] = l
	}
	return l, err
}

func (r *reader) makeLayout(n table.Name, tm *replication.TableMapEvent) (*layout, error) {
	if !r.tables.selected(n) || r.ignored[n] || slices.Contains(r.group.created, n) {
		return nil, nil
	}
	// Rows of an XA transaction count where that is committed.
	if r.tables.covered(n, r.group) && !r.group.xa {
		return nil, nil
	}
	tr := r.tables.find(n)
	if tr == nil {
		return nil, r.stop(n, "", "rows of a table that was made after the list of tables was read",
			"start over, or exclude the table")
	}
	names := bytes.Join(tm.ColumnName, []byte{0})
	if l := tr.layout; l != nil && bytes.Equal(l.types, tm.ColumnType) && bytes.Equal(l.names, names) &&
		slices.Equal(l.meta, tm.ColumnMeta) && bytes.Equal(l.signs, tm.SignednessBitmap) {
		return l, nil
	}
	l := &layout{tracked: tr, names: names, types: bytes.Clone(tm.ColumnType), meta: slices.Clone(tm.ColumnMeta),
		signs: bytes.Clone(tm.SignednessBitmap)}
	column, err := l.match(tm)
	if err != nil {
		return nil, r.stop(n, column, err.Error(), "")
	}
	tr.layout = l
	return l, nil
}

// match finds each column of the structure in the event. On an error it returns
// the column it is about, too.
func (l *layout) match(tm *replication.TableMapEvent) (string, error) {
	columns := l.Structure.Columns
	l.from = make([]int, len(columns))
	if len(tm.ColumnName) > 0 {
		if column, err := l.matchNames(tm); err != nil {
			return column, err
		}
	} else {
		if want := len(columns) + l.Structure.Hidden; int(tm.ColumnCount) != want {
			return "", fmt.Errorf("row events have %d columns where the table's structure has %d; "+fullMetadata, tm.ColumnCount, want)
		}
		for i := range l.from {
			l.from[i] = i
		}
	}
	unsigned := tm.UnsignedMap()
	for i := range columns {
		c, at := &columns[i], l.from[i]
		if !l.needed(i) {
			continue
		}
		if err := compatible(c, tm.ColumnType[at], tm.ColumnMeta[at]); err != nil {
			return c.Name, err
		}
		if c.Kind == table.Integer && len(tm.SignednessBitmap) > 0 && unsigned[at] != c.Unsigned {
			return c.Name, fmt.Errorf("row events say that it is %s, the table's structure does not; it was changed since it was read",
				map[bool]string{true: "unsigned", false: "signed"}[unsigned[at]])
		}
	}
	return "", nil
}

// hiddenName begins the names of the hash columns behind MariaDB's long unique
// keys.
const hiddenName = "DB_ROW_HASH_"

func (l *layout) matchNames(tm *replication.TableMapEvent) (string, error) {
	at := make(map[string]int, len(tm.ColumnName))
	for i, n := range tm.ColumnName {
		at[string(n)] = i
	}
	for i, c := range l.Structure.Columns {
		place, ok := at[c.Name]
		if !ok {
			return c.Name, fmt.Errorf("row events do not have the column, the table's structure has it; it was changed since it was read")
		}
		l.from[i] = place
		delete(at, c.Name)
	}
	for n := range at {
		if l.Structure.Hidden == 0 || !strings.HasPrefix(n, hiddenName) {
			return n, fmt.Errorf("row events have the column, the table's structure does not; it was changed since it was read")
		}
	}
	return "", nil
}

// realType returns the type behind a STRING: char, enum and set share it, and
// long chars keep two bits of their length in the type's byte.
func realType(kind byte, meta uint16) byte {
	if kind != gomysql.MYSQL_TYPE_STRING || meta < 256 {
		return kind
	}
	if b := byte(meta >> 8); b&0x30 == 0x30 {
		return b
	}
	return kind
}

// binlogTypes is which type of the binary log each column type has.
var binlogTypes = map[string][]byte{
	"tinyint": {gomysql.MYSQL_TYPE_TINY}, "smallint": {gomysql.MYSQL_TYPE_SHORT}, "mediumint": {gomysql.MYSQL_TYPE_INT24},
	"int": {gomysql.MYSQL_TYPE_LONG}, "bigint": {gomysql.MYSQL_TYPE_LONGLONG},
	"decimal": {gomysql.MYSQL_TYPE_NEWDECIMAL}, "float": {gomysql.MYSQL_TYPE_FLOAT}, "double": {gomysql.MYSQL_TYPE_DOUBLE},
	"bit":  {gomysql.MYSQL_TYPE_BIT},
	"date": {gomysql.MYSQL_TYPE_DATE}, "time": {gomysql.MYSQL_TYPE_TIME2}, "year": {gomysql.MYSQL_TYPE_YEAR},
	"datetime":  {gomysql.MYSQL_TYPE_DATETIME2, gomysql.MYSQL_TYPE_DATETIME},
	"timestamp": {gomysql.MYSQL_TYPE_TIMESTAMP2, gomysql.MYSQL_TYPE_TIMESTAMP},
	"char":      {gomysql.MYSQL_TYPE_STRING}, "varchar": {gomysql.MYSQL_TYPE_VARCHAR, gomysql.MYSQL_TYPE_VAR_STRING},
	"binary": {gomysql.MYSQL_TYPE_STRING}, "varbinary": {gomysql.MYSQL_TYPE_VARCHAR, gomysql.MYSQL_TYPE_VAR_STRING},
	"enum": {gomysql.MYSQL_TYPE_ENUM}, "set": {gomysql.MYSQL_TYPE_SET},
	"json": {gomysql.MYSQL_TYPE_JSON, gomysql.MYSQL_TYPE_BLOB},
	"uuid": {gomysql.MYSQL_TYPE_STRING}, "inet4": {gomysql.MYSQL_TYPE_STRING}, "inet6": {gomysql.MYSQL_TYPE_STRING},
	"vector": {gomysql.MYSQL_TYPE_VECTOR, gomysql.MYSQL_TYPE_VARCHAR, gomysql.MYSQL_TYPE_VAR_STRING},
}

// blobLengths is how many bytes of length the values of a BLOB or TEXT have.
var blobLengths = map[string]uint16{"tinytext": 1, "tinyblob": 1, "text": 2, "blob": 2, "mediumtext": 3, "mediumblob": 3,
	"longtext": 4, "longblob": 4}

// Types of MariaDB's COMPRESSED columns, which the library doesn't know.
const (
	compressedBlob    = 140
	compressedVarchar = 141
)

// compatible reports why values of a binary log type cannot be those of a
// column, or nil.
func compatible(c *table.Column, kind byte, meta uint16) error {
	kind = realType(kind, meta)
	switch {
	case kind == compressedBlob || kind == compressedVarchar || c.Compressed:
		return fmt.Errorf("its values are compressed (COMPRESSED), which is not supported yet")
	case kind == gomysql.MYSQL_TYPE_TIME:
		return fmt.Errorf("it has the time format from before MySQL 5.6; ALTER TABLE … FORCE on the source converts it")
	case (kind == gomysql.MYSQL_TYPE_DATETIME || kind == gomysql.MYSQL_TYPE_TIMESTAMP) && strings.Contains(c.FullType, "("):
		return fmt.Errorf("it has MariaDB's old format of fractional seconds; ALTER TABLE … FORCE on the source converts it")
	}
	if n, ok := blobLengths[c.Type]; ok {
		if kind == gomysql.MYSQL_TYPE_BLOB && meta == n {
			return nil
		}
	} else if c.Kind == table.Geometry {
		if kind == gomysql.MYSQL_TYPE_GEOMETRY {
			return nil
		}
	} else if slices.Contains(binlogTypes[c.Type], kind) {
		return nil
	}
	return fmt.Errorf("row events have values of binary log type %d, which are none of %s; the table was changed since its structure was read; "+fullMetadata,
		kind, c.FullType)
}
