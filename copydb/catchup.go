package copydb

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/copydb/copydb/copydb/config"
	"github.com/copydb/copydb/internal/applier"
	"github.com/copydb/copydb/internal/group"
	"github.com/copydb/copydb/internal/hold"
	"github.com/copydb/copydb/internal/mysqlconn"
	"github.com/copydb/copydb/internal/position"
	"github.com/copydb/copydb/internal/progress"
	"github.com/copydb/copydb/state"
	"github.com/copydb/copydb/streamer"
	"golang.org/x/sync/semaphore"
)

const (
	windowBytes   = 4 << 20     // of changes, in one transaction of the target
	windowChanges = 5000        //
	backlogBytes  = 64 << 20    // read ahead of the applier
	idleKeep      = time.Minute // how often the target hears from an idle source
	idleFlush     = time.Second // how long a position that only moved may wait
	pollEvery     = 300 * time.Millisecond
)

// catcher applies the binary log from the last resumable position to the stop
// point. One goroutine reads ahead, one asks for the source's end, one applies.
type catcher struct {
	r       *run
	flavor  mysqlconn.Flavor
	apply   *applier.Applier
	in      chan *streamer.Transaction
	room    *semaphore.Weighted
	ends    chan sourceEnd
	readErr error // valid once in is closed

	have      state.Position // the boundary that the target has reached
	print     string         // the fingerprint of the file that was read last
	committed time.Time      // when the source committed what is applied
	units     []applier.Unit
	before    []boundary // before each unit
	once      exactly    // changes that must not be made twice
	bytes     int64
	changes   int64
	taken     int64                 // of the room
	last      *streamer.Transaction // taken in, its position not kept yet
	kept      time.Time
	stop      *state.Position
	stopNow   bool // the stop point is the source's end when first asked
	indexed   bool
}

// boundary is a place between two units, and the marker that holds there.
type boundary struct {
	marker progress.Marker
	at     func() state.Position
}

// catchUp applies the log until the stop point is reached.
func (r *run) catchUp(ctx context.Context) error {
	wasDone := r.phase() == state.PhaseDone || r.phase() == state.PhaseFinish
	if err := r.enter(ctx, state.PhaseCatchUp); err != nil {
		return err
	}
	if err := hold.Point(ctx, "catch_up"); err != nil {
		return err
	}
	r.mu.Lock()
	src := r.st.Sources[0]
	r.mu.Unlock()
	c := &catcher{r: r, flavor: r.facts.Source.Identity.Version.Flavor, apply: applier.NewApplier(r.write),
		in: make(chan *streamer.Transaction, 1024), room: semaphore.NewWeighted(backlogBytes), ends: make(chan sourceEnd, 1),
		have: src.LastResumable, print: src.LogFingerprint, kept: time.Now(), stopNow: wasDone, indexed: r.allIndexed(), once: exactly{done: r.marker}}
	defer c.apply.Close()
	if err := c.givenStop(src); err != nil {
		return err
	}
	stream, err := c.newStream(src)
	if err != nil {
		return err
	}
	g, gctx := group.WithContext(ctx)
	gctx, cancel := context.WithCancelCause(gctx)
	defer cancel(nil)
	writes, cancelWrites := r.outlive(gctx)
	defer cancelWrites()
	g.Go("reader of the binary log", func() error {
		defer close(c.in)
		c.readErr = group.Call("reader of the binary log", func() error { return stream.Run(gctx, c.take) })
		return nil // the applier says it once everything before is applied
	})
	g.Go("look at the source's end", func() error { return c.pollEnd(gctx) })
	g.Go("applier", func() error {
		err := c.loop(gctx, writes)
		if err == nil {
			cancel(errCaughtUp) // ends the two others
		}
		return err
	})
	err = g.Wait()
	if errors.Is(err, errCaughtUp) {
		return nil
	}
	return r.asStreamError(err)
}

// errCaughtUp ends catch-up where the stop point is reached.
var errCaughtUp = errors.New("the stop point is reached")

// givenStop takes the stop point from the configuration, where one is given.
func (c *catcher) givenStop(src state.Source) error {
	u := c.r.opt.Config.CatchUp.Until
	if u.Word != "" {
		return nil
	}
	stop := state.Position{File: u.File, Pos: u.Pos, GTIDSet: u.GTID}
	c.stop = &stop
	if src.ConsistentAt == nil || position.Reached(c.flavor, stop, *src.ConsistentAt) {
		return nil
	}
	if cmp, ok := position.Compare(stop, *src.ConsistentAt); ok && cmp < 0 {
		return &Error{Code: ExitResumable, Where: stop.String(),
			Message: fmt.Sprintf("the stop point lies before %s, from where on the target is an image of the source", src.ConsistentAt),
			Next:    "give a later one with --until, or none, and resume: " + c.r.resumeCommand()}
	}
	return nil
}

// take is the stream's handler: it hands a transaction to the applier, in order,
// once there is room for it.
func (c *catcher) take(ctx context.Context, tx *streamer.Transaction) error {
	if tx.DDL != nil {
		if err := c.r.judgeDDL(tx); err != nil {
			return err
		}
	}
	if n := min(tx.Bytes, backlogBytes); n > 0 {
		if err := c.room.Acquire(ctx, n); err != nil {
			return context.Cause(ctx)
		}
	}
	select {
	case c.in <- tx:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// loop collects windows and applies them until the stop point is reached.
func (c *catcher) loop(ctx, writes context.Context) error {
	tick := time.NewTicker(idleFlush / 2)
	defer tick.Stop()
	for {
		if done, err := c.settle(ctx, writes); err != nil || done {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case tx, ok := <-c.in:
			if !ok {
				return c.readEnded(ctx, writes)
			}
			if c.add(tx) {
				c.collect()
			}
			if len(c.units) > 0 || c.atStop() {
				if err := c.flush(writes); err != nil {
					return err
				}
			}
		case end := <-c.ends:
			c.judgeEnd(end)
		case <-tick.C:
		}
	}
}

// readEnded applies what was read before the reader ended, and returns why it
// did.
func (c *catcher) readEnded(ctx, writes context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err := c.flush(writes); err != nil {
		return err
	}
	if c.readErr == nil {
		return errors.New("the reader of the binary log ended without a reason")
	}
	return c.readErr
}

// collect takes in what is there without waiting, up to a window's size.
func (c *catcher) collect() {
	for c.bytes < windowBytes && c.changes < windowChanges {
		select {
		case tx, ok := <-c.in:
			if !ok || !c.add(tx) {
				return
			}
		default:
			return
		}
	}
}

// add takes a transaction into the window. It returns false where the window
// must be applied before more is taken: at the stop point.
func (c *catcher) add(tx *streamer.Transaction) bool {
	if c.atStop() {
		return false // what lies behind the stop point is left
	}
	before := c.have
	prev, had := c.last, c.once.marker()
	c.print = cmp.Or(tx.Fingerprint, c.print)
	c.last = tx
	marker := c.once.take(tx)
	if len(tx.Changes) > 0 {
		c.before = append(c.before, boundary{had, func() state.Position {
			if prev != nil {
				return prev.EndPosition()
			}
			return before
		}})
		c.units = append(c.units, applier.Unit{Changes: tx.Changes, Marker: marker, Fingerprint: c.print,
			End: func() (state.Position, state.Position) { return tx.EndPosition(), tx.StreamedPosition() }})
		c.bytes += tx.Bytes
		c.changes += int64(len(tx.Changes))
	}
	c.taken += min(tx.Bytes, backlogBytes)
	return !c.atStop()
}

// atStop reports whether the window reaches the stop point.
func (c *catcher) atStop() bool {
	return c.stop != nil && c.reaches(*c.stop)
}

// reaches reports whether the window, or what the target has, reaches p.
func (c *catcher) reaches(p state.Position) bool {
	if c.last == nil {
		return position.Reached(c.flavor, c.have, p)
	}
	if c.last.Partial {
		return false
	}
	if _, ok := position.Compare(c.last.End, p); ok {
		return position.Reached(c.flavor, c.last.End, state.Position{File: p.File, Pos: p.Pos})
	}
	return position.Reached(c.flavor, c.last.EndPosition(), p)
}

// flush applies the window and keeps its position.
func (c *catcher) flush(ctx context.Context) error {
	if c.last == nil {
		return nil
	}
	last, units := c.last, c.units
	if n := len(units); n == 0 || len(last.Changes) == 0 {
		units = append(units, applier.Unit{Marker: c.once.marker(), Fingerprint: c.print,
			End: func() (state.Position, state.Position) { return last.EndPosition(), last.StreamedPosition() }})
	}
	n, err := c.apply.Apply(ctx, units)
	if n > 0 {
		c.note(units[:n], err == nil)
	}
	if err != nil {
		return errors.Join(err, c.stopBefore(ctx, err, n))
	}
	if c.r.opt.Config.CheckpointInterval == 0 {
		return c.r.checkpoint()
	}
	return nil
}

// stopBefore keeps the boundary just before the unit that failed, so that every
// resume begins and ends at the same place, whatever was read with it.
func (c *catcher) stopBefore(ctx context.Context, cause error, n int) error {
	if n >= len(c.before) || ctx.Err() != nil || retriable(cause) || errors.Is(cause, progress.ErrFenced) {
		return nil //nolint:nilerr // the caller has the cause; here is nothing to add
	}
	at := c.before[n].at()
	if at.IsZero() || at == c.have {
		return nil
	}
	unit := []applier.Unit{{Fingerprint: c.units[n].Fingerprint, Marker: c.before[n].marker, End: func() (state.Position, state.Position) { return at, at }}}
	if _, err := c.apply.Apply(ctx, unit); err != nil {
		return err
	}
	c.note(unit, false)
	return nil
}

// note moves the positions of the state to what the target has committed.
func (c *catcher) note(units []applier.Unit, all bool) {
	low, streamed := applier.Reached(units)
	c.r.change(func(st *state.State) {
		src := &st.Sources[0]
		src.LastStreamed = streamed
		if low != nil {
			src.LastResumable, src.LogFingerprint = low.Position, low.LogFingerprint
		}
	})
	if low != nil {
		c.have = low.Position
	}
	if all {
		if !c.last.CommittedAt.IsZero() {
			c.committed = c.last.CommittedAt
		}
		c.r.meter.caught(int64(len(c.units)), c.changes, c.bytes)
		c.room.Release(c.taken)
		c.units, c.before, c.bytes, c.changes, c.taken, c.last = nil, nil, 0, 0, 0, nil
		c.kept = time.Now()
	}
}

// settle does what becomes due between windows: positions that only moved are
// kept, constraints are made once the target is consistent, and the end is told.
func (c *catcher) settle(ctx, writes context.Context) (done bool, err error) {
	if c.last != nil && len(c.units) == 0 && c.taken == 0 && time.Since(c.kept) < idleKeep && c.last.EndPosition() == c.have {
		c.last = nil // a heartbeat that says what is known
	}
	if c.last != nil && (c.atStop() || time.Since(c.kept) > idleFlush) {
		if err := c.flush(writes); err != nil {
			return false, err
		}
	}
	if c.last != nil {
		return false, nil
	}
	if !c.indexed && c.consistent() {
		if err := c.r.buildConstraints(ctx); err != nil {
			return false, err
		}
		c.indexed = true
	}
	if !c.atStop() {
		return false, nil
	}
	if !c.consistent() {
		return false, &Error{Code: ExitResumable, Where: c.stop.String(),
			Message: "the stop point is reached before the target is an image of the source",
			Next:    "give a later one with --until, or none, and resume: " + c.r.resumeCommand()}
	}
	c.r.change(func(st *state.State) { st.Sources[0].StopPoint = c.stop })
	return true, nil
}

// consistent reports whether everything that a snapshot may have seen is
// applied.
func (c *catcher) consistent() bool {
	c.r.mu.Lock()
	src := c.r.st.Sources[0]
	c.r.mu.Unlock()
	return src.ConsistentAt != nil && position.Reached(c.flavor, c.have, *src.ConsistentAt) ||
		src.SnapshotSeen != nil && src.SnapshotSeen.GTIDSet != "" && position.Reached(c.flavor, c.have, *src.SnapshotSeen)
}

// judgeEnd takes the source's end as the stop point once the lag is under its
// limit.
func (c *catcher) judgeEnd(end sourceEnd) {
	var lag time.Duration
	known := true
	switch {
	case c.last == nil && position.Reached(c.flavor, c.have, end.at):
	case c.committed.IsZero():
		known = false
	default:
		lag = max(end.now.Sub(c.committed), 0)
	}
	c.r.meter.behind(lag, known, c.r.distance(c.have, end))
	if c.stop != nil || c.r.opt.Config.CatchUp.Until.Word != config.UntilCaughtUp {
		return
	}
	if c.stopNow || known && lag < c.r.opt.Config.CatchUp.MaxLag && c.consistent() {
		at := end.at
		c.stop = &at
		c.r.stopAt = end.now
		c.r.log.Debug("almost caught up; the stop point is the source's end", "position", at.String())
	}
}
