package dumper

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/copydb/copydb/internal/applier"
	"github.com/copydb/copydb/internal/table"
	"github.com/copydb/copydb/state"
)

// chunkQuery builds the statements that read a table in the order of its usable
// key. The server does all comparing: bounds are values of rows that exist,
// written as literals that the column compares like its own values.
type chunkQuery struct {
	list string // the columns
	keys string // the key's columns
	from string // FROM … FORCE INDEX (…)
	tail string // ORDER BY …
	key  []keyPart
}

type keyPart struct {
	column     *table.Column
	expression string
	descending bool
	field      int // its place among the selected fields
}

func newChunkQuery(l *applier.Layout) chunkQuery {
	t := l.Table
	k := t.UsableKey()
	var q chunkQuery
	list := l.SelectList()
	fields := len(l.Columns())
	var order, keys []string
	for _, kc := range k.Columns {
		p := keyPart{column: t.Column(kc.Name), descending: kc.Descending, field: -1}
		p.expression = p.column.BoundExpression()
		for i, c := range l.Columns() {
			if c.Name == kc.Name {
				p.field = i
			}
		}
		if p.field < 0 { // a generated key column is read, but not written
			list += ", " + p.column.SelectExpression()
			p.field = fields
			fields++
		}
		q.key = append(q.key, p)
		keys = append(keys, p.column.SelectExpression())
		dir := ""
		if p.descending {
			dir = " DESC"
		}
		order = append(order, p.expression+dir)
	}
	q.list, q.keys = list, strings.Join(keys, ", ")
	q.from = fmt.Sprintf(" FROM %s FORCE INDEX (%s)", t.Quoted(), table.Quote(k.Name))
	q.tail = " ORDER BY " + strings.Join(order, ", ")
	return q
}

// text returns the statement that reads the first limit rows of after < key <=
// to. Empty bounds are open.
func (q chunkQuery) text(after, to []state.Text, limit int64) string {
	return q.build(q.list, after, to) + fmt.Sprintf(" LIMIT %d", limit)
}

// keyText returns the statement that reads the key that follows skip others.
func (q chunkQuery) keyText(after, to []state.Text, skip int64) string {
	return q.build(q.keys, after, to) + fmt.Sprintf(" LIMIT 1 OFFSET %d", skip)
}

func (q chunkQuery) build(list string, after, to []state.Text) string {
	var where []string
	if len(after) > 0 {
		where = append(where, q.condition(after, false))
	}
	if len(to) > 0 {
		where = append(where, q.condition(to, true))
	}
	s := "SELECT " + list + q.from
	if len(where) > 0 {
		s += " WHERE " + strings.Join(where, " AND ")
	}
	return s + q.tail
}

// condition compares the key with bound, as ORs of ANDs so that the index is
// used: behind it, or, with upTo, up to and with it.
func (q chunkQuery) condition(bound []state.Text, upTo bool) string {
	var ors []string
	for i, p := range q.key {
		var ands []string
		for j := range i {
			ands = append(ands, q.key[j].compare("=", bound[j]))
		}
		behind := upTo == p.descending
		op := "<"
		if behind {
			op = ">"
		}
		if upTo && i == len(q.key)-1 {
			op += "="
		}
		ands = append(ands, p.compare(op, bound[i]))
		ors = append(ors, "("+strings.Join(ands, " AND ")+")")
	}
	return "(" + strings.Join(ors, " OR ") + ")"
}

// compare compares the column with a bound. Neither family takes an index for an
// ENUM or SET and a number but for equality, so what lies before or behind it is
// listed where it can be.
func (p keyPart) compare(op string, bound state.Text) string {
	if most := p.column.MaxOrdinal(); op != "=" && most <= maxListed {
		return p.list(op, string(bound), most)
	}
	return p.expression + " " + op + " " + string(p.column.AppendBound(nil, []byte(bound)))
}

// maxListed bounds how many values of an ENUM or SET stand in one condition.
const maxListed = 1024

// list is compare for a column whose values are the numbers up to most.
func (p keyPart) list(op, bound string, most uint64) string {
	n, err := strconv.ParseUint(bound, 10, 16)
	if err != nil {
		return p.expression + " " + op + " " + bound // the server says what is wrong with it
	}
	from, to := uint64(0), most
	switch op {
	case "<":
		to = n - 1
	case "<=":
		to = n
	case ">":
		from = n + 1
	case ">=":
		from = n
	}
	if op == "<" && n == 0 || from > to {
		return "FALSE"
	}
	var b strings.Builder
	b.WriteString(p.expression + " IN (")
	for v := from; v <= to; v++ {
		if v > from {
			b.WriteByte(',')
		}
		b.WriteString(strconv.FormatUint(v, 10))
	}
	return b.String() + ")"
}

// bound copies the key of a row that was read.
func (q chunkQuery) bound(fields [][]byte) []state.Text {
	out := make([]state.Text, len(q.key))
	for i, p := range q.key {
		out[i] = state.Text(fields[p.field])
	}
	return out
}
