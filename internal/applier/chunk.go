package applier

import (
	"bytes"
	"strconv"
	"strings"

	"github.com/copydb/copydb/internal/progress"
	"github.com/copydb/copydb/internal/table"
)

// Method is how a chunk is written.
type Method string

// The methods.
const (
	LoadData Method = "load_data"
	Inserts  Method = "insert"
)

// insertBytes is the size at which a multi-row statement is cut.
const insertBytes = 1 << 20

// Layout is how the rows of one table are read and written: it is made once per
// table.
type Layout struct {
	Table   *table.Table
	Method  Method
	columns []*table.Column
	raw     []bool // columns whose bytes need escaping in a LOAD DATA stream
	enums   []bool
	head    string // the statement, or its part before the rows
	limit   int
	notes   int64 // warnings of a statement that can be listed
}

// NewLayout lays out t for the method and the limits of the target.
func NewLayout(t *table.Table, m Method, to Config) *Layout {
	verb := "REPLACE"
	if t.Overlaps { // MariaDB has no REPLACE for it, and LOCAL alone passes rows over
		m, verb = Inserts, "INSERT"
	}
	l := &Layout{Table: t, Method: m, columns: t.Stored(), limit: to.statementBytes(), notes: max(to.MaxNotes, 1)}
	var names, targets, sets []string
	for i, c := range l.columns {
		l.raw = append(l.raw, !numeric(c.Kind))
		l.enums = append(l.enums, c.Kind == table.Enum)
		target, set := c.LoadTarget(i)
		names = append(names, table.Quote(c.Name))
		targets = append(targets, target)
		if set != "" {
			sets = append(sets, set)
		}
	}
	if m == Inserts {
		l.head = verb + " INTO " + t.Quoted() + " (" + strings.Join(names, ", ") + ") VALUES "
		return l
	}
	l.head = "LOAD DATA LOCAL INFILE 'copydb' REPLACE INTO TABLE " + t.Quoted() + " CHARACTER SET binary" +
		" FIELDS TERMINATED BY 0x09 ENCLOSED BY '' ESCAPED BY 0x5c LINES STARTING BY '' TERMINATED BY 0x0a (" +
		strings.Join(targets, ", ") + ")"
	if len(sets) > 0 {
		l.head += " SET " + strings.Join(sets, ", ")
	}
	return l
}

func numeric(k table.Kind) bool {
	switch k {
	case table.Integer, table.Decimal, table.Float, table.Double, table.Temporal, table.Year, table.Enum, table.Set:
		return true
	}
	return false
}

// SelectList is what rows of the table are read by, in the order that Append
// wants.
func (l *Layout) SelectList() string {
	parts := make([]string, len(l.columns))
	for i, c := range l.columns {
		parts[i] = c.SelectExpression()
	}
	return strings.Join(parts, ", ")
}

// MaxRows is how many rows a chunk may have: all its warnings must fit into what
// a server keeps of them (max_error_count), where the target may note something
// of each row.
func (l *Layout) MaxRows() int64 {
	for i := range l.Table.Columns {
		if l.Table.Columns[i].Generated {
			return min(l.notes, 20_000)
		}
	}
	return 500_000
}

// Columns are the columns of SelectList.
func (l *Layout) Columns() []*table.Column { return l.columns }

// Chunk is rows of one table, ready to be written, with the range of keys they
// are. It belongs to one goroutine at a time; Reset makes it ready for use.
type Chunk struct {
	Layout *Layout
	Range  progress.Range // with all of the segment so far
	Rows   int64
	Bytes  int64    // as read from the source
	Also   []string // statements that note in the same transaction what else is true of the rows

	data   []byte
	cuts   []cut // the statements in data, for Inserts
	begun  int   // where the open statement begins
	zeros  int   // ENUM values of index 0
	sealed int   // those of them in statements that are complete
	opened bool
}

// cut is the end of one statement, and how many ENUM values of index 0 it has.
type cut struct{ end, zeros int }

// Reset empties the chunk for rows of l that are thought to take size bytes.
func (c *Chunk) Reset(l *Layout, size int) {
	data := c.data
	if data == nil {
		data = buffers.take(size)
	}
	*c = Chunk{Layout: l, data: data[:0], cuts: c.cuts[:0]}
}

// Free gives the memory of the rows away. Only Reset may follow.
func (c *Chunk) Free() {
	buffers.give(c.data)
	c.data = nil
}

// Size is how many bytes of memory the rows take.
func (c *Chunk) Size() int { return len(c.data) }

// Append adds one row. Fields are in the order of the layout's columns, nil is
// NULL.
func (c *Chunk) Append(fields [][]byte) {
	c.Rows++
	size := 0
	for _, f := range fields {
		size += len(f)
	}
	c.Bytes += int64(size)
	if c.Layout.Method == Inserts {
		c.appendTuple(fields)
		return
	}
	if len(c.data) == 0 {
		c.data = append(c.data, make([]byte, loadRoom)...)
	}
	if size > table.LargeValue {
		c.data = table.Room(c.data, c.Layout.room(fields))
	}
	data := c.data
	for i, f := range fields {
		if i > 0 {
			data = append(data, '\t')
		}
		switch {
		case f == nil:
			data = append(data, '\\', 'N')
		case c.Layout.raw[i]:
			data = table.AppendEscaped(data, f, &loadEscape)
		default:
			data = append(data, f...)
			c.count(i, f)
		}
	}
	c.data = append(data, '\n')
}

// count counts the value where it is index 0 of an ENUM.
func (c *Chunk) count(column int, f []byte) {
	if len(f) == 1 && f[0] == '0' && c.Layout.enums[column] {
		c.zeros++
	}
}

// room is how many bytes a row takes in a LOAD DATA stream.
func (l *Layout) room(fields [][]byte) int {
	n := 0
	for i, f := range fields {
		n += len(f) + len(`\N`) + 1
		if !l.raw[i] {
			continue
		}
		for b, escape := range loadEscape {
			if escape != 0 {
				n += bytes.Count(f, []byte{byte(b)})
			}
		}
	}
	return n
}

// loadEscape is what LOAD DATA would take for its own, and nothing else.
var loadEscape = [256]byte{0: '0', '\t': 't', '\n': 'n', '\\': '\\'}

// What Session.ExecBytes wants before a statement, and Session.LoadLocal before
// rows.
const (
	packetRoom = 5
	loadRoom   = 4
)

func (c *Chunk) appendTuple(fields [][]byte) {
	if !c.opened {
		c.begun = len(c.data)
		c.data = append(c.data, make([]byte, packetRoom)...)
		c.data = append(c.data, c.Layout.head...)
		c.opened = true
	} else {
		c.data = append(c.data, ',')
	}
	c.data = append(c.data, '(')
	for i, col := range c.Layout.columns {
		if i > 0 {
			c.data = append(c.data, ',')
		}
		c.count(i, fields[i])
		c.data = col.AppendLiteral(c.data, fields[i])
	}
	c.data = append(c.data, ')')
	if len(c.data)-c.begun >= c.Layout.limit {
		c.seal()
	}
}

func (c *Chunk) seal() {
	if c.opened {
		c.cuts = append(c.cuts, cut{len(c.data), c.zeros - c.sealed})
		c.sealed, c.opened = c.zeros, false
	}
}

// Text says which rows the chunk is, for messages; it names no values.
func (c *Chunk) Text() string {
	return c.Layout.Table.String() + " (" + strconv.FormatInt(c.Rows, 10) + " rows)"
}
