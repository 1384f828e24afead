package applier

import (
	"context"
	"fmt"
	"strings"

	"github.com/copydb/copydb/internal/mysqlconn"
	"github.com/copydb/copydb/internal/progress"
	"github.com/copydb/copydb/internal/table"
	"github.com/copydb/copydb/state"
)

// Unit is what is committed as a whole: one transaction of the source, or one
// part of a large one.
type Unit struct {
	Changes []Change
	// End returns the boundary behind the unit, zero for a part, and the end of
	// its last event. It is called for few units: the text of a GTID set costs.
	End func() (low, streamed state.Position)
	// Fingerprint is that of the log file in which the unit ends.
	Fingerprint string
	// Marker says how many changes of exact tables are done of a transaction of
	// which this is a part; zero for a whole one.
	Marker progress.Marker
}

// ApplyError says which change of which unit failed.
type ApplyError struct {
	Table string
	Key   []string // the key's columns
	Op    Op
	At    string // position of the row event
	Err   error
}

// Error names everything but values.
func (e *ApplyError) Error() string {
	return fmt.Sprintf("apply %s to %s (key %s) at %s: %v", e.Op, e.Table, strings.Join(e.Key, ", "), e.At, e.Err)
}

// Unwrap returns the server's error.
func (e *ApplyError) Unwrap() error { return e.Err }

// Applier writes changes from the binary log, in order, over one session. It
// belongs to one goroutine.
type Applier struct {
	cfg     Config
	main    line
	side    line // for engines that do not roll back
	writers map[*table.Table]*writer
}

// NewApplier opens nothing.
func NewApplier(cfg Config) *Applier { return &Applier{cfg: cfg} }

// Close ends the sessions.
func (a *Applier) Close() error {
	a.forget()
	a.main.close()
	a.side.close()
	return nil
}

// forget drops what is known of the target's tables: after an error it may be
// what was wrong.
func (a *Applier) forget() { a.writers = nil }

// Apply commits units together in one transaction of the target, with the
// positions they reach. Where that fails for a cause that trying again does not
// mend, they are committed one by one up to the one that fails. It returns how
// many units are committed, and the error that stopped it.
//
// An error leaves the session closed; the next call opens another.
func (a *Applier) Apply(ctx context.Context, units []Unit) (int, error) {
	err := a.commit(ctx, units)
	if err == nil {
		return len(units), nil
	}
	a.Close()
	if len(units) == 1 || ctx.Err() != nil || mysqlconn.IsConnectionLost(err) || mysqlconn.IsReadOnly(err) {
		return 0, err
	}
	for i := range units {
		if err := a.commit(ctx, units[i:i+1]); err != nil {
			a.Close()
			return i, err
		}
	}
	return len(units), nil
}

func (a *Applier) commit(ctx context.Context, units []Unit) error {
	var err error
	for range conflictTries {
		if err = a.tryCommit(ctx, units); !mysqlconn.IsLockConflict(err) {
			return err
		}
		a.forget()
	}
	return err
}

func (a *Applier) tryCommit(ctx context.Context, units []Unit) error {
	if a.main.idle() {
		a.forget() // no longer than the session
	}
	session, err := a.main.open(ctx, a.cfg)
	if err != nil {
		return err
	}
	return a.cfg.inTransaction(ctx, session, func() error {
		if err := a.write(ctx, merge(units)); err != nil {
			return err
		}
		low, streamed := Reached(units)
		_, err := session.Exec(ctx, a.cfg.Progress.WaterSQL(low, streamed, streamed, units[len(units)-1].Marker))
		if err != nil {
			return fmt.Errorf("move the position on the target: %w", err)
		}
		return nil
	})
}

// Reached returns the last boundary behind units, or nil, and the end of the
// last event.
func Reached(units []Unit) (low *progress.Low, streamed state.Position) {
	for i := len(units) - 1; i >= 0; i-- {
		l, s := units[i].End()
		if i == len(units)-1 {
			streamed = s
		}
		if !l.IsZero() {
			return &progress.Low{Position: l, LogFingerprint: units[i].Fingerprint}, streamed
		}
	}
	return nil, streamed
}

// merge joins the changes of all units: the statements may span them.
func merge(units []Unit) []Change {
	if len(units) == 1 {
		return units[0].Changes
	}
	n := 0
	for i := range units {
		n += len(units[i].Changes)
	}
	all := make([]Change, 0, n)
	for i := range units {
		all = append(all, units[i].Changes...)
	}
	return all
}

func (a *Applier) write(ctx context.Context, changes []Change) error {
	stmts, err := plan(changes, func(c *Change) (*writer, error) {
		w, err := a.writer(ctx, c.Table)
		if err != nil {
			return nil, a.failed(c, err)
		}
		return w, nil
	}, insertBytes)
	if err != nil {
		return err
	}
	for _, s := range stmts {
		if err := a.run(ctx, s); err != nil {
			return a.failed(s.changes[0], err)
		}
	}
	return nil
}

func (a *Applier) failed(c *Change, err error) error {
	e := &ApplyError{Table: c.Table.String(), Op: c.Op, At: c.At, Err: err}
	if k := c.Table.UsableKey(); k != nil {
		e.Key = k.KeyNames()
	}
	return e
}

func (a *Applier) writer(ctx context.Context, t *table.Table) (*writer, error) {
	if w := a.writers[t]; w != nil {
		return w, nil
	}
	w, err := newWriter(ctx, a.main.session, a.cfg.Version, t)
	if err != nil {
		return nil, err
	}
	if a.writers == nil {
		a.writers = map[*table.Table]*writer{}
	}
	a.writers[t] = w
	return w, nil
}

// run carries one statement out on the session that its table's engine wants.
func (a *Applier) run(ctx context.Context, s *statement) (err error) {
	on := a.main.session
	if !s.writer.transactional {
		if on, err = a.side.open(ctx, a.cfg); err != nil {
			return err
		}
	}
	if s.zeros > 0 {
		if _, err := on.Exec(ctx, "SET SESSION sql_mode = '"+looseMode+"'"); err != nil {
			return err
		}
		defer func() {
			if _, serr := on.Exec(ctx, "SET SESSION sql_mode = '"+strictMode+"'"); err == nil {
				err = serr
			}
		}()
	}
	res, err := on.ExecBytes(ctx, s.text)
	if s.verb == upsert && mysqlconn.IsDuplicateKey(err) {
		res, err = on.ExecBytes(ctx, s.asReplace())
	}
	if err != nil {
		return err
	}
	if err := s.hit(res); err != nil {
		return err
	}
	return checkWarnings(ctx, on, s.writer.source, int(res.Warnings), s.zeros)
}
