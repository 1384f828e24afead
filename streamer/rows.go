package streamer

import (
	"bytes"
	"errors"
	"fmt"
	"runtime"

	"github.com/copydb/copydb/internal/applier"
	"github.com/copydb/copydb/internal/table"
	"github.com/go-mysql-org/go-mysql/replication"
)

// Flags of a row event.
const (
	noForeignKeyChecks = 0x2  // NO_FOREIGN_KEY_CHECKS_F
	sqlForeignKeys     = 0x10 // USE_SQL_FOREIGN_KEY_F: cascades are logged
)

// What can be the matter with a row event.
const (
	partialReason = "an update of parts of JSON values, which cannot be applied"
	lackingReason = "a row image that lacks columns (a session with binlog_row_image other than FULL)"
)

// largeEvent is the size in bytes from which on an event comes in several
// packets.
const largeEvent = 16 << 20

// rawRows is what a row event has behind its header.
type rawRows struct {
	body []byte
	at   int
	err  error
}

// keepRows decodes only the header of a row event: rows of tables that are not
// selected may have columns that the library cannot read. Errors wait until the
// event is taken, since the library would put the rows into their text.
func (r *reader) keepRows(e *replication.RowsEvent, body []byte) error {
	at, err := e.DecodeHeader(body)
	r.raw = rawRows{body, at, err}
	return nil
}

func (r *reader) rows(h *replication.EventHeader, e *replication.RowsEvent) error {
	if err := r.ensure(h); err != nil {
		return err
	}
	raw := r.raw
	r.raw = rawRows{}
	if raw.err != nil {
		return fmt.Errorf("read rows: %w", raw.err)
	}
	if r.scan != nil {
		r.scan.rows(r, h, e)
		return nil
	}
	err := r.selectedRows(h, e, raw)
	if e.Flags&replication.RowsEventStmtEndFlag != 0 {
		clear(r.group.layouts) // its table maps end with the statement
	}
	if stop := (*StopError)(nil); errors.As(err, &stop) && r.group.xa && r.tables.covered(stop.Table, r.group) {
		r.group.lose(stop.Table)
		return nil
	}
	if err != nil {
		return err
	}
	e.ColumnBitmap1, e.ColumnBitmap2 = nil, nil // they are parts of the packet
	if h.EventSize > largeEvent {
		// The packet grew in steps, all of them in memory. The next one may be as
		// large, and the collector would see to them only in its midst.
		runtime.GC()
	}
	return r.part()
}

func (r *reader) selectedRows(h *replication.EventHeader, e *replication.RowsEvent, raw rawRows) error {
	l, err := r.layoutOf(e.Table)
	if err != nil || l == nil {
		return err
	}
	if err := r.checkRows(h, e, l); err != nil {
		return err
	}
	if err := decode(e, raw); err != nil {
		return r.stop(l.name, "", "its rows cannot be decoded: "+err.Error(), "")
	}
	at := r.here().String()
	if e.Type() == replication.EnumRowsEventTypeUpdate {
		err = r.updates(e, l, at)
	} else {
		err = r.singles(e, l, at)
	}
	if e.Flags&replication.RowsEventStmtEndFlag != 0 {
		r.group.cascading = false
	}
	return err
}

// decode lets the library read the rows. Where it fails, its own text may hold
// them, so only what is known to be harmless goes on.
func decode(e *replication.RowsEvent, raw rawRows) error {
	err := e.DecodeData(raw.at, raw.body)
	if err == nil {
		return nil
	}
	var kind int
	if _, scan := fmt.Sscanf(err.Error(), "unsupport type %d", &kind); scan == nil {
		return fmt.Errorf("a column of binary log type %d is not supported", kind)
	}
	return errors.New("unexpected content")
}

func (r *reader) checkRows(h *replication.EventHeader, e *replication.RowsEvent, l *layout) error {
	switch {
	case partialJSON(h, e):
		return r.stop(l.name, "", partialReason,
			"set binlog_row_value_options='' on the source and start over")
	case !l.full(e.ColumnBitmap1) || e.Type() == replication.EnumRowsEventTypeUpdate && !l.full(e.ColumnBitmap2):
		return r.stop(l.name, "", lackingReason,
			"set binlog_row_image=FULL for every session and start over")
	}
	return nil
}

func partialJSON(h *replication.EventHeader, e *replication.RowsEvent) bool {
	return h.EventType == replication.PARTIAL_UPDATE_ROWS_EVENT || e.Type() == replication.EnumRowsEventTypeUnknown
}

// full reports whether an image has every column that is needed. MariaDB leaves
// out virtual ones from 11 on.
func (l *layout) full(bitmap []byte) bool {
	for i, at := range l.from {
		if l.needed(i) && bitmap[at>>3]&(1<<(at&7)) == 0 {
			return false
		}
	}
	return true
}

func unlogged(e *replication.RowsEvent) bool { return e.Flags&(noForeignKeyChecks|sqlForeignKeys) == 0 }

func (r *reader) cascaded(n table.Name) error {
	return r.stop(n, "", "a change that a foreign key carried on to other tables, which the binary log does not have",
		"start over: the run began when the source logged what its foreign keys do, or had other ones")
}

// cascades says of a change of a table that a foreign key with such a rule
// points at whether it was carried on to the children unlogged. That can be
// followed in a component only.
func (r *reader) cascades(l *layout, e *replication.RowsEvent, rule bool) (bool, error) {
	if !rule || !unlogged(e) {
		return false, nil
	}
	if l.Structure.Component == 0 {
		return false, r.cascaded(l.name)
	}
	r.group.cascading = true
	return true, nil
}

// singles takes an event with one image per row.
func (r *reader) singles(e *replication.RowsEvent, l *layout, at string) error {
	op, wanted := applier.Insert, l.needed
	if e.Type() == replication.EnumRowsEventTypeDelete {
		op, wanted = applier.Delete, l.neededBefore
	}
	was := r.group.cascading
	cascades, err := r.cascades(l, e, l.CascadesDelete && op == applier.Delete)
	if err != nil {
		return err
	}
	for i := range e.Rows {
		row, err := r.row(l, e.Rows[i], wanted)
		if err != nil {
			return err
		}
		e.Rows[i] = nil
		if l.isHistory(row) {
			continue
		}
		c := applier.Change{Table: l.Structure, Op: op, After: row, Cascades: cascades, MayBeGone: op == applier.Delete && l.Structure.Component != 0 && (was || cascades && i > 0), At: at}
		if op == applier.Delete {
			c.Before, c.After = row, nil
		}
		r.group.take(c)
	}
	return nil
}

// updates takes an event with two images per row.
func (r *reader) updates(e *replication.RowsEvent, l *layout, at string) error {
	for i := 0; i+1 < len(e.Rows); i += 2 {
		before, err := r.row(l, e.Rows[i], l.neededBefore)
		if err != nil {
			return err
		}
		e.Rows[i] = nil
		after, err := r.row(l, e.Rows[i+1], l.needed)
		if err != nil {
			return err
		}
		e.Rows[i+1] = nil
		if l.isHistory(before) {
			if !l.isHistory(after) {
				return r.stop(l.name, "", "an update that makes a row of the history a current one", "")
			}
			continue
		}
		c := applier.Change{Table: l.Structure, Op: applier.Update, Before: before, After: after, At: at}
		rule := l.movesKey(before, after)
		if l.isHistory(after) {
			c.Op, c.After, rule = applier.Delete, nil, l.CascadesDelete
		}
		if c.Cascades, err = r.cascades(l, e, rule); err != nil {
			return err
		}
		r.group.take(c)
	}
	return nil
}

// isHistory reports whether a row of a system-versioned table is a former one.
// Of those only the current rows are copied and followed. A DELETE is logged as
// an update that ends the row, an UPDATE as one that leaves it current and the
// insert of what it was.
func (tr *tracked) isHistory(row applier.Row) bool {
	return tr.rowEnd >= 0 && !table.IsCurrent(row[tr.rowEnd])
}

func (tr *tracked) movesKey(before, after applier.Row) bool {
	for i, watched := range tr.cascade {
		if watched && !bytes.Equal(before[i], after[i]) {
			return true
		}
	}
	return false
}

// needed reports whether a column's value is: that of a generated one only to
// find rows by, and to tell current ones.
func (l *layout) needed(i int) bool {
	return !l.Structure.Columns[i].Generated || l.finds[i] || i == l.rowEnd
}

// neededBefore is needed for a before image: of a table with a usable key, rows
// are found by that.
func (l *layout) neededBefore(i int) bool {
	return l.needed(i) && l.before[i]
}

// row renders the wanted columns of one image, in the order of the structure.
func (r *reader) row(l *layout, values []any, wanted func(column int) bool) (applier.Row, error) {
	m := &r.memory
	row := m.row(len(l.Structure.Columns))
	for i := range l.Structure.Columns {
		c := &l.Structure.Columns[i]
		if !wanted(i) {
			continue
		}
		lit, err := m.literal(c, l.inKey[i], values[l.from[i]])
		if err != nil {
			return nil, r.stop(l.name, c.Name, err.Error(), "")
		}
		row[i] = lit
	}
	return m.own(row), nil
}

func (g *group) take(c applier.Change) {
	g.changes = append(g.changes, c)
	g.bytes += size(&c)
}

// size estimates what a change takes in memory.
func size(c *applier.Change) int64 {
	n := 128
	for _, row := range []applier.Row{c.Before, c.After} {
		for _, v := range row {
			n += 24 + len(v)
		}
	}
	return int64(n)
}
