package applier

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/copydb/copydb/internal/hold"
	"github.com/copydb/copydb/internal/mysqlconn"
	"github.com/copydb/copydb/internal/position"
	"github.com/copydb/copydb/internal/progress"
	"github.com/copydb/copydb/internal/table"
	"github.com/copydb/copydb/state"
)

// spreadRows is how many rows a window writes at least before it is worth the
// commits of several sessions; a smaller one is one transaction.
const spreadRows = 500

// ApplyError says which change of which unit failed.
type ApplyError struct {
	Table  string
	Key    []string // the key's columns
	Op     Op
	At     string   // position of the row event
	Values []string // of the key, as literals: for those who may see what rows hold
	Err    error
}

// Error names everything but values.
func (e *ApplyError) Error() string {
	return fmt.Sprintf("apply %s to %s (key %s) at %s: %v", e.Op, e.Table, strings.Join(e.Key, ", "), e.At, e.Err)
}

// Unwrap returns the server's error.
func (e *ApplyError) Unwrap() error { return e.Err }

// KeyText is the key of the row that failed; empty where its table has none.
func (e *ApplyError) KeyText() string {
	var parts []string
	for i, v := range e.Values {
		parts = append(parts, e.Key[i]+" = "+v)
	}
	return strings.Join(parts, ", ")
}

// Applier writes windows of changes from the binary log, one window at a time.
// It belongs to one goroutine.
type Applier struct {
	cfg     Config
	main    line
	side    line   // for engines that do not roll back
	lanes   []line // for the rows of large windows, side by side
	writers map[*table.Table]*writer
	read    time.Time // when the oldest of writers was made
	// high is the target's high-water while it lies ahead of what is committed in
	// order: rows from up to there may be on the target.
	high state.Position
}

// largeStatement is the size in bytes of a statement whose memory is given back
// at once.
const largeStatement = 16 << 20

// NewApplier opens nothing. High is the target's high-water when the run began:
// rows from up to there may be on the target already.
func NewApplier(cfg Config, high state.Position) *Applier {
	return &Applier{cfg: cfg, high: high, lanes: make([]line, max(cfg.Threads, 1))}
}

// Close ends the sessions.
func (a *Applier) Close() error {
	a.forget()
	a.main.close()
	a.side.close()
	for i := range a.lanes {
		a.lanes[i].close()
	}
	return nil
}

// forget drops what is known of the target's tables: after an error it may be
// what was wrong.
func (a *Applier) forget() { a.writers = nil }

// Apply commits a window and the positions it reaches. A small one is one
// transaction of the target. The rows of a large one are written over several
// sessions, in any order: high-water is moved to the window's end before the
// first of them, low-water after the last.
//
// Where that fails for a cause that trying again does not mend, the units are
// committed one by one up to the one that fails. Apply returns how many are
// committed, and the error that stopped it.
//
// An error leaves all sessions closed; the next call opens others.
func (a *Applier) Apply(ctx context.Context, w *Window) (int, error) {
	err := a.whole(ctx, w)
	if err == nil {
		return len(w.Units), nil
	}
	a.Close()
	if len(w.Units) == 1 || ctx.Err() != nil || mysqlconn.IsConnectionLost(err) || mysqlconn.IsReadOnly(err) ||
		errors.Is(err, progress.ErrFenced) || errors.Is(err, progress.ErrForgotten) {
		return 0, err
	}
	for i := range w.Units {
		one := &Window{}
		one.Add(w.Units[i])
		if err := a.whole(ctx, one); err != nil {
			a.Close()
			return i, err
		}
	}
	return len(w.Units), nil
}

// whole applies a window, and again where it met locks.
func (a *Applier) whole(ctx context.Context, w *Window) error {
	for try := 1; ; try++ {
		err := a.once(ctx, w)
		if err == nil || !mysqlconn.IsLockConflict(err) || try == conflictTries {
			return err
		}
		a.forget()
	}
}

func (a *Applier) once(ctx context.Context, w *Window) error {
	if err := a.meet(ctx, w); err != nil {
		return err
	}
	p := a.plan(w)
	if !p.spread {
		return a.commit(ctx, append(p.removes, append(p.upserts, p.serial...)...), w)
	}
	if err := a.raise(ctx, w); err != nil {
		return err
	}
	if err := hold.Point(ctx, "window_begun"); err != nil {
		return err
	}
	// All deletes are committed before the first row is written: see Window.
	if err := a.abreast(ctx, p.removes, "window_removed"); err != nil {
		return err
	}
	if err := a.abreast(ctx, p.upserts, "window_written"); err != nil {
		return err
	}
	return a.commit(ctx, p.serial, w)
}

// plan is what a window comes to.
type plan struct {
	removes, upserts []*statement
	// serial are the statements that one session carries out in order: those of
	// exact tables, which must commit with the position, and of engines without
	// transactions.
	serial []*statement
	spread bool
}

func (a *Applier) plan(w *Window) plan {
	var p plan
	limit := a.cfg.statementBytes()
	p.spread = len(a.lanes) > 1 && w.Net() >= spreadRows
	for _, n := range w.nets {
		wr := a.writers[n.table]
		if n.key == nil {
			continue
		}
		gone, there := n.sorted(true), n.sorted(false)
		if !wr.transactional {
			p.serial = cutInto(cutInto(p.serial, wr, remove, gone, limit), wr, upsert, there, limit)
			p.spread = true // what is written stays there, whatever becomes of the transaction
			continue
		}
		p.removes = cutInto(p.removes, wr, remove, gone, limit)
		p.upserts = cutInto(p.upserts, wr, upsert, there, limit)
	}
	p.serial = append(p.serial, exactly(w.exact, a.writers, limit)...)
	for _, s := range slices.Concat(p.removes, p.upserts, p.serial) {
		s.alone = len(w.Units) == 1
	}
	return p
}

// meet reads the target's structure of each table that the window is the first
// to change.
func (a *Applier) meet(ctx context.Context, w *Window) error {
	if time.Since(a.read) > idleLimit {
		a.forget()
	}
	for _, n := range w.nets {
		if a.writers[n.table] != nil {
			continue
		}
		s, err := a.main.open(ctx, a.cfg)
		if err != nil {
			return err
		}
		wr, err := newWriter(ctx, s, a.cfg.Version, n.table)
		if err != nil {
			return failed(netRow{change: n.first, gone: n.first.Op == Delete}, err)
		}
		if a.writers == nil {
			a.writers, a.read = map[*table.Table]*writer{}, time.Now()
		}
		a.writers[n.table] = wr
	}
	return nil
}

// raise moves high-water to the window's end, unless it is there.
func (a *Applier) raise(ctx context.Context, w *Window) error {
	end := w.last().End().High
	if position.Reached(a.cfg.Flavor, a.high, end) {
		return nil
	}
	session, err := a.main.open(ctx, a.cfg)
	if err != nil {
		return err
	}
	err = a.cfg.inTransaction(ctx, session, func() error {
		_, err := session.Exec(ctx, a.cfg.Progress.HighSQL(end))
		return err
	})
	if err != nil {
		return fmt.Errorf("move high-water on the target: %w", err)
	}
	a.high = end
	return nil
}

// commit carries statements out in one transaction that also moves the position
// to the window's end.
func (a *Applier) commit(ctx context.Context, stmts []*statement, w *Window) error {
	session, err := a.main.open(ctx, a.cfg)
	if err != nil {
		return err
	}
	low, streamed := Reached(w.Units)
	high := w.last().End().High
	ahead := !a.high.IsZero() && !position.Reached(a.cfg.Flavor, high, a.high)
	if ahead {
		high = a.high
	}
	err = a.cfg.inTransaction(ctx, session, func() error {
		for _, s := range stmts {
			if err := a.serially(ctx, s); err != nil {
				return err
			}
		}
		_, err := session.Exec(ctx, a.cfg.Progress.WaterSQL(low, streamed, high, w.last().Marker))
		if err != nil {
			return fmt.Errorf("move the position on the target: %w", err)
		}
		return nil
	})
	if err == nil && !ahead {
		a.high = state.Position{}
	}
	return err
}

func failed(r netRow, err error) error {
	c := r.change
	e := &ApplyError{Table: c.Table.String(), Op: c.Op, At: c.At, Err: err}
	if k := c.Table.UsableKey(); k != nil {
		e.Key = k.KeyNames()
		for _, i := range c.Table.Places(k) {
			e.Values = append(e.Values, string(r.row()[i]))
		}
	}
	return e
}

// serially carries one statement out on the session that its table's engine
// wants.
func (a *Applier) serially(ctx context.Context, s *statement) error {
	on := &a.main
	if !s.writer.transactional {
		on = &a.side
	}
	session, err := on.open(ctx, a.cfg)
	if err != nil {
		return err
	}
	return s.run(ctx, session)
}

// run carries the statement out.
func (s *statement) run(ctx context.Context, on *mysqlconn.Session) error {
	if err := s.exec(ctx, on); err != nil {
		return failed(s.culprit(ctx, on, err))
	}
	if s.size > largeStatement {
		runtime.GC() // its text goes before as much is taken for the next one
	}
	return nil
}

// culprit finds the row that err is about by writing one after the other, where
// the transaction can tell: it is rolled back in any case. Else it is taken for
// the first.
func (s *statement) culprit(ctx context.Context, on *mysqlconn.Session, err error) (netRow, error) {
	if !s.alone || len(s.rows) == 1 || ctx.Err() != nil || mysqlconn.IsConnectionLost(err) || mysqlconn.IsLockConflict(err) {
		return s.rows[0], err
	}
	for i := range s.rows {
		one := &statement{writer: s.writer, verb: s.verb}
		one.add(s.rows[i])
		if oneErr := one.exec(ctx, on); oneErr != nil {
			return s.rows[i], oneErr
		}
	}
	return s.rows[0], err
}

func (s *statement) exec(ctx context.Context, on *mysqlconn.Session) error {
	zeros := s.zeros()
	if zeros == 0 {
		return s.checked(ctx, on, 0)
	}
	return loosely(ctx, on, func() error { return s.checked(ctx, on, zeros) })
}

// checked writes the rows and checks that the target has them as they are given,
// zeros ENUM values of index 0 among them.
func (s *statement) checked(ctx context.Context, on *mysqlconn.Session, zeros int) error {
	res, err := s.write(ctx, on)
	if err != nil {
		return err
	}
	if err := s.hit(res); err != nil {
		return err
	}
	if s.passedOver(res) {
		if res, err = s.anew(ctx, on); err != nil {
			return err
		}
	}
	return checkWarnings(ctx, on, s.writer.source, int(res.Warnings), zeros)
}

// write sends the statement, and makes room where rows are in its way (1062).
func (s *statement) write(ctx context.Context, on *mysqlconn.Session) (mysqlconn.Result, error) {
	res, err := on.ExecBytes(ctx, s.text())
	if s.verb != upsert || !mysqlconn.IsDuplicateKey(err) {
		return res, err
	}
	res, err = on.ExecBytes(ctx, s.replaceText())
	if len(s.writer.hashed) == 0 || !mysqlconn.IsDuplicateKey(err) {
		return res, err
	}
	for _, q := range s.evictions() {
		if res, err := on.ExecBytes(ctx, q); err != nil {
			return res, err
		}
	}
	return on.ExecBytes(ctx, s.replaceText())
}
