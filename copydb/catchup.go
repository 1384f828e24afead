package copydb

import (
	"context"
	"errors"
	"time"

	"github.com/copydb/copydb/internal/applier"
	"github.com/copydb/copydb/internal/group"
	"github.com/copydb/copydb/internal/hold"
	"github.com/copydb/copydb/internal/mysqlconn"
	"github.com/copydb/copydb/state"
	"github.com/copydb/copydb/streamer"
	"golang.org/x/sync/semaphore"
)

const (
	windowBytes   = 16 << 20 // of changes that are applied together
	windowChanges = 50_000
	backlogBytes  = 64 << 20    // read ahead of the applier
	idleKeep      = time.Minute // how often the target hears from an idle source
	idleFlush     = time.Second // how long a position that only moved may wait
	pollEvery     = 300 * time.Millisecond
)

// catcher applies the binary log from the last resumable position to the stop
// point. One goroutine reads ahead, one collects windows, one applies them, one
// asks for the source's end.
type catcher struct {
	r       *run
	flavor  mysqlconn.Flavor
	apply   *applier.Applier
	in      chan *streamer.Transaction
	room    *semaphore.Weighted
	ends    chan sourceEnd
	readErr error // valid once in is closed

	have        state.Position // the boundary that the target has reached
	spills      []string       // the spill files that a stream from there needs
	inside      bool           // it has a part of a transaction from behind there
	committed   time.Time      // when the source committed what is applied
	kept        time.Time      // when the target was told a position last
	win         *window        // is being collected
	busy        *window        // is being applied; nil = none
	work        chan *window
	results     chan outcome
	prev        *streamer.Transaction // was taken in last
	fingerprint string                // of the log file that was read last
	once        exactly               // changes that must not be made twice
	ended       bool                  // nothing more will be read
	stop        *state.Position
	stopNow     bool // the stop point is the source's end when first asked
	indexed     bool
	// again is the place from where on constraints are validated once more, nil
	// where none must be; suspects is why.
	again    *state.Position
	suspects map[string]*suspects
}

// newCatcher makes one that goes on from what the target has. stopNow says that
// it ends at what is the source's end when first asked.
func (r *run) newCatcher(stopNow bool) *catcher {
	r.mu.Lock()
	src, spills := r.st.Sources[0], r.st.SpillFiles
	r.mu.Unlock()
	return &catcher{r: r, flavor: r.facts.Source.Identity.Version.Flavor, apply: applier.NewApplier(r.write, r.highWater),
		in: make(chan *streamer.Transaction, 1024), room: semaphore.NewWeighted(backlogBytes), ends: make(chan sourceEnd, 1),
		win: &window{}, work: make(chan *window, 1), results: make(chan outcome, 1),
		have: src.LastResumable, spills: spills, fingerprint: src.LogFingerprint, kept: time.Now(), stopNow: stopNow,
		indexed: r.allIndexed(), suspects: map[string]*suspects{}, once: exactly{done: r.marker}}
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
	c := r.newCatcher(wasDone)
	defer c.apply.Close()
	if err := c.givenStop(); err != nil {
		return err
	}
	r.meter.follows()
	stream, err := c.newStream()
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
		return nil // the collector says it once everything before is applied
	})
	g.Go("look at the source's end", func() error { return c.pollEnd(gctx) })
	g.Go("collector of windows", func() error {
		err := c.loop(gctx)
		if err == nil {
			cancel(errCaughtUp) // ends the others
		}
		return err
	})
	g.Go("applier", func() error {
		c.applyWindows(writes)
		return nil
	})
	err = g.Wait()
	if errors.Is(err, errCaughtUp) {
		return nil
	}
	return r.asStreamError(err)
}

// errCaughtUp ends catch-up where the stop point is reached.
var errCaughtUp = errors.New("the stop point is reached")

// take is the stream's handler: it hands a transaction to the collector, in
// order, once there is room for it.
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
		c.r.meter.readAhead(n)
	}
	select {
	case c.in <- tx:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
