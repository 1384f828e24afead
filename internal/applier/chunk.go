package applier

import (
	"bytes"
	"strconv"
	"strings"
	"sync"

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
	l := &Layout{Table: t, Method: m, columns: t.Stored(), limit: insertBytes, notes: max(to.MaxNotes, 1)}
	if to.MaxPacket > 0 {
		l.limit = min(l.limit, int(to.MaxPacket)/2)
	}
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

// buffers is memory of chunks that are written, for others.
var buffers sync.Pool

// Reset empties the chunk for rows of l.
func (c *Chunk) Reset(l *Layout) {
	data := c.data
	if data == nil {
		if b, ok := buffers.Get().(*[]byte); ok {
			data = *b
		}
	}
	*c = Chunk{Layout: l, data: data[:0], cuts: c.cuts[:0]}
}

// Free gives the memory of the rows away. Only Reset may follow.
func (c *Chunk) Free() {
	if cap(c.data) > 0 {
		data := c.data
		buffers.Put(&data)
	}
	c.data = nil
}

// Size is how many bytes of memory the rows take.
func (c *Chunk) Size() int { return len(c.data) }

// Append adds one row. Fields are in the order of the layout's columns, nil is
// NULL.
func (c *Chunk) Append(fields [][]byte) {
	c.Rows++
	largest := 0
	for i, f := range fields {
		c.Bytes += int64(len(f))
		largest = max(largest, len(f))
		if c.Layout.enums[i] && len(f) == 1 && f[0] == '0' {
			c.zeros++
		}
	}
	if c.Layout.Method == Inserts {
		c.appendTuple(fields)
		return
	}
	if largest > table.LargeValue {
		c.data = table.Room(c.data, c.Layout.room(fields))
	}
	for i, f := range fields {
		if i > 0 {
			c.data = append(c.data, '\t')
		}
		switch {
		case f == nil:
			c.data = append(c.data, '\\', 'N')
		case c.Layout.raw[i]:
			c.data = appendEscaped(c.data, f)
		default:
			c.data = append(c.data, f...)
		}
	}
	c.data = append(c.data, '\n')
}

// appendEscaped escapes what LOAD DATA would take for its own: NUL, TAB, LF and
// the backslash, and nothing else.
func appendEscaped(dst, f []byte) []byte {
	for len(f) > 0 {
		n := 0
		for n < len(f) && loadEscape[f[n]] == 0 {
			n++
		}
		dst = append(dst, f[:n]...)
		if n == len(f) {
			break
		}
		dst = append(dst, '\\', loadEscape[f[n]])
		f = f[n+1:]
	}
	return dst
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

var loadEscape = [256]byte{0: '0', '\t': 't', '\n': 'n', '\\': '\\'}

// packetRoom is the space that Session.ExecBytes wants before a statement.
const packetRoom = 5

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
