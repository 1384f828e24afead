package copydb

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/copydb/copydb/internal/applier"
	"github.com/copydb/copydb/internal/group"
	"github.com/copydb/copydb/internal/position"
	"github.com/copydb/copydb/internal/progress"
	"github.com/copydb/copydb/state"
	"github.com/copydb/copydb/streamer"
)

// window is what is applied together, with what is noted once it is.
type window struct {
	applier.Window
	before      []boundary            // before each unit
	last        *streamer.Transaction // taken in last
	bare        bool                  // it has no changes, and so is in no unit
	fingerprint string                // of the log file that last lies in
	bytes       int64
	changes     int64
	taken       int64    // of the catcher's room
	ended       []string // spill files that nothing needs once it is applied
}

// boundary is a place between two units, and the marker that holds there.
type boundary struct {
	marker progress.Marker
	at     func() applier.End
}

// full reports whether the window is large enough to be applied.
func (w *window) full() bool { return w.bytes >= windowBytes || w.changes >= windowChanges }

// outcome is what became of a window: the units that are committed, and the
// position that was kept behind them where the next one failed.
type outcome struct {
	w     *window
	units int
	kept  []applier.Unit
	err   error
}

// loop collects windows and hands them over until the stop point is reached;
// while one is applied the next is collected.
func (c *catcher) loop(ctx context.Context) error {
	defer close(c.work)
	err := c.follow(ctx)
	if c.busy != nil { // what its context lets it commit is kept
		if e := c.applied(<-c.results); err == nil {
			err = e
		}
	}
	return err
}

func (c *catcher) follow(ctx context.Context) error {
	tick := time.NewTicker(idleFlush / 2)
	defer tick.Stop()
	for {
		if done, err := c.step(ctx); err != nil || done {
			return err
		}
		in := c.in
		if c.ended || c.win.full() || c.atStop() {
			in = nil // what lies behind the stop point is left
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case tx, ok := <-in:
			if c.ended = !ok; ok {
				c.add(tx)
				c.collect()
			}
		case res := <-c.results:
			if err := c.applied(res); err != nil {
				return err
			}
		case end := <-c.ends:
			c.judgeEnd(end)
		case <-tick.C:
		}
	}
}

// collect takes in what is there without waiting.
func (c *catcher) collect() {
	for !c.win.full() && !c.atStop() {
		select {
		case tx, ok := <-c.in:
			if c.ended = !ok; !ok {
				return
			}
			c.add(tx)
		default:
			return
		}
	}
}

// add takes a transaction into the window.
func (c *catcher) add(tx *streamer.Transaction) {
	w, prev, begin, spills := c.win, c.prev, c.have, c.spills
	c.fingerprint = cmp.Or(tx.Fingerprint, c.fingerprint)
	had := c.once.marker()
	marker := c.once.take(tx)
	w.last, w.fingerprint, c.prev = tx, c.fingerprint, tx
	if tx.SpillEnded != "" {
		w.ended = append(w.ended, tx.SpillEnded)
	}
	w.taken += min(tx.Bytes, backlogBytes)
	if w.bare = len(tx.Changes) == 0; w.bare {
		return
	}
	w.before = append(w.before, boundary{had, func() applier.End {
		if prev != nil {
			return ends(prev)()
		}
		return applier.End{Low: begin, SpillFiles: spills}
	}})
	w.Add(applier.Unit{Changes: tx.Changes, Marker: marker, Fingerprint: c.fingerprint, End: ends(tx)})
	w.bytes += tx.Bytes
	w.changes += int64(len(tx.Changes))
	tx.Changes = nil // the window's; the transaction may be remembered for longer
}

func ends(tx *streamer.Transaction) func() applier.End {
	return func() applier.End {
		return applier.End{Low: tx.EndPosition(), Streamed: tx.StreamedPosition(), High: tx.HighPosition(), SpillFiles: tx.SpillFiles}
	}
}

// step does what is due while no window is being applied: constraints are made
// once the target is consistent, what was collected is handed over, and the end
// is told.
func (c *catcher) step(ctx context.Context) (done bool, _ error) {
	if c.busy != nil {
		return false, nil
	}
	if err := c.constrain(ctx); err != nil {
		return false, err
	}
	switch w := c.win; {
	case w.last == nil && c.ended:
		return false, c.readEnded(ctx)
	case w.last == nil:
		return c.atStop(), c.endsConsistent()
	case c.r.throttle.held(forTarget):
	case c.ended || len(w.Units) > 0 || c.atStop():
		c.hand()
	case time.Since(c.kept) <= idleFlush:
	case c.isKnown(w):
		c.win = &window{}
	default:
		c.hand()
	}
	return false, nil
}

// constrain makes and validates constraints, once the target is an image of the
// source.
func (c *catcher) constrain(ctx context.Context) (err error) {
	if c.indexed || c.inside || !c.consistent() || c.again != nil && !position.Reached(c.flavor, c.have, *c.again) {
		return nil
	}
	if c.again, err = c.r.buildConstraints(ctx, c.have, c.suspects); err == nil {
		c.indexed = c.again == nil
	}
	return err
}

// isKnown reports whether a window without changes says nothing new, as a
// heartbeat does; the target hears of it now and then all the same.
func (c *catcher) isKnown(w *window) bool {
	return time.Since(c.kept) <= idleKeep && w.taken == 0 && w.last.EndPosition() == c.have
}

// hand gives the window to the applier.
func (c *catcher) hand() {
	w := c.win
	if w.bare {
		w.Add(applier.Unit{Marker: c.once.marker(), Fingerprint: w.fingerprint, End: ends(w.last)})
	}
	c.busy, c.win = w, &window{}
	c.work <- w
}

// readEnded returns why the reader ended, once all that was read is applied.
func (c *catcher) readEnded(ctx context.Context) error {
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case c.readErr == nil:
		return errors.New("the reader of the binary log ended without a reason")
	}
	return c.readErr
}

// applyWindows is the applier's side of loop.
func (c *catcher) applyWindows(ctx context.Context) {
	for w := range c.work {
		res := outcome{w: w}
		err := group.Call("applier", func() error { return c.applyWindow(ctx, &res) })
		res.err = err
		c.results <- res // has room: one window is out at a time
	}
}

func (c *catcher) applyWindow(ctx context.Context, res *outcome) (err error) {
	res.units, err = c.apply.Apply(ctx, &res.w.Window)
	if err != nil {
		err = errors.Join(err, c.stopBefore(ctx, err, res))
	}
	return err
}

// stopBefore keeps the boundary just before the unit that failed, so that every
// resume begins and ends at the same place, whatever was read with it.
func (c *catcher) stopBefore(ctx context.Context, cause error, res *outcome) error {
	w, n := res.w, res.units
	if n >= len(w.before) || ctx.Err() != nil || retriable(cause) || errors.Is(cause, progress.ErrFenced) {
		return nil //nolint:nilerr // the caller has the cause; here is nothing to add
	}
	at := w.before[n].at()
	if at.Low.IsZero() || at.Low == c.have {
		return nil
	}
	at.Streamed, at.High = at.Low, at.Low
	unit := applier.Unit{Fingerprint: w.Units[n].Fingerprint, Marker: w.before[n].marker, End: func() applier.End { return at }}
	var only applier.Window
	only.Add(unit)
	if _, err := c.apply.Apply(ctx, &only); err != nil {
		return err
	}
	res.kept = only.Units
	return nil
}

// applied moves the positions of the state to what the target has committed.
func (c *catcher) applied(res outcome) error {
	w := res.w
	c.busy = nil
	c.note(w.Units[:res.units])
	c.note(res.kept)
	if res.err != nil {
		return res.err
	}
	if !w.last.CommittedAt.IsZero() {
		c.committed = w.last.CommittedAt
	}
	c.inside = w.last.Partial
	c.r.doomSpills(w.ended)
	c.r.meter.caught(int64(len(w.Units)), w.changes, w.bytes)
	c.room.Release(w.taken)
	c.r.meter.readAhead(-w.taken)
	c.kept = time.Now()
	if c.r.opt.Config.CheckpointInterval == 0 {
		return c.r.checkpoint()
	}
	return nil
}

func (c *catcher) note(units []applier.Unit) {
	if len(units) == 0 {
		return
	}
	low, streamed := applier.Reached(units)
	c.r.change(func(st *state.State) {
		src := &st.Sources[0]
		src.LastStreamed = streamed
		if low != nil {
			src.LastResumable, src.LogFingerprint = low.Position, low.LogFingerprint
			st.SpillFiles = append([]string{}, low.SpillFiles...)
		}
	})
	if low != nil {
		c.have, c.spills = low.Position, low.SpillFiles
	}
}
