package copydb

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/copydb/copydb/copydb/config"
	"github.com/copydb/copydb/internal/group"
)

// side is the server that a pause is for.
type side int

const (
	forSource side = 1 << iota
	forTarget
)

// shortest is the shortest wait for bytes of the log: events are small, and
// timers are late.
const shortest = 50 * time.Millisecond

// throttle paces what the run reads and has it pause while a server that is
// watched has enough to do. Waiting is done before a chunk or window is begun,
// never while a snapshot is open.
type throttle struct {
	log    *slog.Logger
	rate   float64 // bytes per second; 0 = no limit
	source bool    // the source is watched
	paused func()  // called while the run pauses: that is no standstill

	mu     sync.Mutex
	paid   time.Time // from when on all bytes so far are within the rate
	slowed time.Time // until when something waits for that
	told   bool      // that the rate makes the run wait
	holds  map[string]*holding
	lifted chan struct{} // closed when a hold is lifted
}

// holding is why one watch has the run pause; why is empty where it does not.
type holding struct {
	side side
	why  string
	told bool
}

func newThrottle(c config.Throttle, log *slog.Logger, paused func()) *throttle {
	return &throttle{log: log, rate: float64(c.MaxBytesPerSecond), source: c.SourceMaxThreadsRunning > 0, paused: paused,
		holds: map[string]*holding{}, lifted: make(chan struct{})}
}

// chunkBytes is the size to aim chunks at: one second's share of the rate at
// most, so that bytes come evenly.
func (t *throttle) chunkBytes(configured int64) int64 {
	if t.rate == 0 {
		return configured
	}
	return min(configured, max(int64(t.rate), 64<<10))
}

// begin waits until a chunk may be begun and takes its expected bytes off the
// rate; what it has more or less goes to spend.
func (t *throttle) begin(ctx context.Context, expected int64) error {
	for {
		if err := t.wait(ctx, forSource|forTarget); err != nil {
			return err
		}
		rest := t.owed()
		if rest <= 0 && t.take(expected) {
			return nil
		}
		if err := group.Pause(ctx, rest); err != nil {
			return err
		}
	}
}

// take adds bytes to what has to be paid for, unless others were faster.
func (t *throttle) take(bytes int64) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if time.Until(t.paid) > 0 {
		return false
	}
	t.add(bytes)
	return true
}

// add needs t.mu. An idle time earns nothing.
func (t *throttle) add(bytes int64) {
	if t.rate == 0 {
		return
	}
	if now := time.Now(); t.paid.Before(now) && bytes > 0 {
		t.paid = now
	}
	t.paid = t.paid.Add(time.Duration(float64(bytes) / t.rate * float64(time.Second)))
}

// spend notes bytes that were read; negative ones were expected and did not
// come.
func (t *throttle) spend(bytes int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.add(bytes)
}

// owed is how long nothing may be read.
func (t *throttle) owed() time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	rest := time.Until(t.paid)
	if rest > 0 {
		t.slowed = t.paid
		if !t.told {
			t.told = true
			t.log.Info("reading is slowed down", "reason", t.rateText())
		}
	}
	return rest
}

// pace is what the reader of the log calls for each event; nil where there is
// nothing to wait for.
func (t *throttle) pace() func(context.Context, int) error {
	if t.rate == 0 && !t.source {
		return nil
	}
	return t.event
}

// event waits until an event of the log, which has come, may be taken in, and so
// the next one be read.
func (t *throttle) event(ctx context.Context, bytes int) error {
	if err := t.wait(ctx, forSource); err != nil {
		return err
	}
	t.spend(int64(bytes))
	if rest := t.owed(); rest >= shortest {
		return group.Pause(ctx, rest)
	}
	return nil
}

// wait returns once no pause is on for one of the sides.
func (t *throttle) wait(ctx context.Context, of side) error {
	for {
		t.mu.Lock()
		held, lifted := t.heldLocked(of), t.lifted
		t.mu.Unlock()
		if !held {
			return context.Cause(ctx)
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-lifted:
		}
	}
}

// held reports whether the run pauses for one of the sides.
func (t *throttle) held(of side) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.heldLocked(of)
}

func (t *throttle) heldLocked(of side) bool {
	for _, h := range t.holds {
		if h.why != "" && h.side&of != 0 {
			return true
		}
	}
	return false
}

// watched makes the run pause until the watch of that name has said set for the
// first time; nothing is told of that.
func (t *throttle) watched(name string, of side) (unwatched func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.holds[name] = &holding{side: of, why: name + " is being asked"}
	return func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		delete(t.holds, name)
	}
}

// set says why the watch has the run pause; "": it does not.
func (t *throttle) set(name, why string) {
	t.mu.Lock()
	h := t.holds[name]
	begins, ends := why != "" && !h.told, why == "" && h.told
	if h.why != "" && why == "" {
		close(t.lifted)
		t.lifted = make(chan struct{})
	}
	h.why, h.told = why, why != ""
	t.mu.Unlock()
	switch {
	case begins:
		t.log.Info("the run pauses", "reason", why)
	case ends:
		t.log.Info("the run goes on", "paused_for", name)
	}
	if why != "" {
		t.paused()
	}
}

// reason is why the run reads less than it could; "": it does not.
func (t *throttle) reason() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	var all []string
	for _, name := range slices.Sorted(maps.Keys(t.holds)) {
		if why := t.holds[name].why; why != "" {
			all = append(all, why)
		}
	}
	// Between two waits for the rate there are moments of work.
	if time.Since(t.slowed) < time.Second {
		all = append(all, t.rateText())
	}
	return strings.Join(all, "; ")
}

func (t *throttle) rateText() string {
	return fmt.Sprintf("throttle.max_bytes_per_second is %d", int64(t.rate))
}

// throttled runs fn with the watches beside it that the configuration asks for.
func (r *run) throttled(ctx context.Context, fn func(context.Context) error) error {
	watches, err := r.watches()
	if err != nil || len(watches) == 0 {
		if err != nil {
			return err
		}
		return fn(ctx)
	}
	g, gctx := group.WithContext(ctx)
	gctx, cancel := context.WithCancelCause(gctx)
	defer cancel(nil)
	for _, w := range watches {
		if w.side != 0 {
			defer r.throttle.watched(w.name, w.side)()
		}
		g.Go("watch over "+w.name, func() error {
			err := w.run(gctx)
			if gctx.Err() != nil {
				return nil //nolint:nilerr // what it was cut short at is not what ended it
			}
			return err
		})
	}
	g.Go("phases", func() error {
		defer cancel(nil)
		return fn(gctx)
	})
	return g.Wait()
}

// watch looks after one server until its context ends. With a side it has the
// run pause until it has said that there is no need.
type watch struct {
	name string
	side side
	run  func(context.Context) error
}
