package applier

import (
	"bytes"
	"cmp"
	"slices"

	"github.com/copydb/copydb/internal/progress"
	"github.com/copydb/copydb/internal/table"
	"github.com/copydb/copydb/state"
)

// Unit is what is committed as a whole: one transaction of the source, or one
// part of a large one.
type Unit struct {
	Changes []Change
	// End is called for few units: the text of a GTID set costs.
	End func() End
	// Fingerprint is that of the log file in which the unit ends.
	Fingerprint string
	// Marker says how many changes of exact tables are done of a transaction of
	// which this is a part; zero for a whole one.
	Marker progress.Marker
}

// End says where a unit ends.
type End struct {
	Low      state.Position // the boundary behind it; zero for a part
	Streamed state.Position // the end of its last event
	High     state.Position // the same with the set that holds its transaction, also a part's
	// SpillFiles are those that a stream from Low needs.
	SpillFiles []string
}

// Window is a run of units that are applied together. Of tables with a usable
// key it holds the net change per key: what the last of the units left there.
//
// Only keys of the same bytes are one key here. Others may be equal on the
// server (by case, accents or trailing blanks): of such keys at most one has a
// row at the end, so that deleting all that are gone before writing any that
// are there is right whatever the server holds equal.
type Window struct {
	Units []Unit
	// exact are the changes of tables without a usable key, in log order.
	exact []*Change
	nets  []*net // in the order in which tables were met
	by    map[*table.Table]*net
	key   []byte // of the row at hand
}

// net is what a window leaves of one table.
type net struct {
	table *table.Table
	first *Change // the first one of the table
	key   []int   // the usable key: places in the structure; nil for an exact table
	rows  []netRow
	at    map[string]int // by the key's literals: the place in rows
}

// netRow is the end of one key: the row that is there, or that none is.
type netRow struct {
	change *Change
	gone   bool
}

// row is the image that has the key.
func (n netRow) row() Row {
	if n.gone {
		return n.change.Before
	}
	return n.change.After
}

// Add takes the next unit in log order.
func (w *Window) Add(u Unit) {
	w.Units = append(w.Units, u)
	for i := range u.Changes {
		w.fold(&u.Changes[i])
	}
}

func (w *Window) fold(c *Change) {
	n := w.by[c.Table]
	if n == nil {
		n = newNet(c)
		if w.by == nil {
			w.by = map[*table.Table]*net{}
		}
		w.by[c.Table] = n
		w.nets = append(w.nets, n)
	}
	switch {
	case n.key == nil:
		w.exact = append(w.exact, c)
	case c.Op == Delete:
		w.set(n, netRow{c, true})
	default:
		if c.Op == Update && n.moved(c) {
			w.set(n, netRow{c, true})
		}
		w.set(n, netRow{c, false})
	}
}

func newNet(c *Change) *net {
	n := &net{table: c.Table, first: c}
	if key := c.Table.UsableKey(); key != nil {
		n.at, n.key = map[string]int{}, c.Table.Places(key)
	}
	return n
}

// moved reports whether an update changed the key's bytes.
func (n *net) moved(c *Change) bool {
	for _, i := range n.key {
		if !bytes.Equal(c.Before[i], c.After[i]) {
			return true
		}
	}
	return false
}

func (w *Window) set(n *net, r netRow) {
	w.key = w.key[:0]
	for _, i := range n.key {
		w.key = append(append(w.key, r.row()[i]...), ',')
	}
	if i, ok := n.at[string(w.key)]; ok {
		n.rows[i] = r
		return
	}
	n.at[string(w.key)] = len(n.rows)
	n.rows = append(n.rows, r)
}

// sorted returns the rows that are gone, or those that are there, near each
// other as the key has them: neighbours in one statement, so that statements
// touch different pages.
func (n *net) sorted(gone bool) []netRow {
	var out []netRow
	for _, r := range n.rows {
		if r.gone == gone {
			out = append(out, r)
		}
	}
	slices.SortFunc(out, func(a, b netRow) int {
		for _, i := range n.key {
			if d := n.compare(i, a.row()[i], b.row()[i]); d != 0 {
				return d
			}
		}
		return 0
	})
	return out
}

// compare orders literals; it matters for speed only.
func (n *net) compare(i int, a, b []byte) int {
	if n.table.Columns[i].Kind == table.Integer {
		return cmp.Or(cmp.Compare(len(a), len(b)), bytes.Compare(a, b))
	}
	return bytes.Compare(a, b)
}

// Net is how many rows of tables with a usable key are written or deleted.
func (w *Window) Net() int {
	n := 0
	for _, t := range w.nets {
		n += len(t.rows)
	}
	return n
}

// last is the unit that the window ends with.
func (w *Window) last() *Unit { return &w.Units[len(w.Units)-1] }

// Reached returns the last boundary behind units, or nil, and the end of the
// last event.
func Reached(units []Unit) (low *progress.Low, streamed state.Position) {
	for i := len(units) - 1; i >= 0; i-- {
		end := units[i].End()
		if i == len(units)-1 {
			streamed = end.Streamed
		}
		if !end.Low.IsZero() {
			return &progress.Low{Position: end.Low, LogFingerprint: units[i].Fingerprint, SpillFiles: end.SpillFiles}, streamed
		}
	}
	return nil, streamed
}
