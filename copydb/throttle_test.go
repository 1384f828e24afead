package copydb

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/copydb/copydb/copydb/config"
	"github.com/copydb/copydb/internal/group"
)

func quietThrottle(c config.Throttle) *throttle {
	return newThrottle(c, slog.New(slog.DiscardHandler), func() {})
}

// Workers that read chunks of more or less than expected stay within the rate
// together, and lose nothing of it.
func TestRateOfChunks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const rate, expected, chunks, workers = 1000, 500, 40, 4
		th := quietThrottle(config.Throttle{MaxBytesPerSecond: rate})
		var read atomic.Int64
		began := time.Now()
		var all sync.WaitGroup
		for w := range workers {
			all.Go(func() {
				for i := range chunks {
					if err := th.begin(t.Context(), expected); err != nil {
						t.Error(err)
					}
					size := int64(200 + 100*((i+w)%8)) // 550 on average
					th.spend(size - expected)
					total := read.Add(size)
					if allowed := rate*time.Since(began).Seconds() + 950; float64(total) > allowed {
						t.Errorf("%d bytes after %s", total, time.Since(began))
					}
				}
			})
		}
		all.Wait()
		want := float64(read.Load()) / rate
		if took := time.Since(began).Seconds(); took < want-1 || took > want+1 {
			t.Errorf("%d bytes took %.1f s, want %.1f", read.Load(), took, want)
		}
	})
}

// What one snapshot has read all at once is waited for before anything else.
func TestRateAfterOneSnapshot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th := quietThrottle(config.Throttle{MaxBytesPerSecond: 1000})
		began := time.Now()
		if err := th.begin(t.Context(), 0); err != nil {
			t.Fatal(err)
		}
		for range 20 {
			th.spend(500)
		}
		if time.Since(began) != 0 {
			t.Error("something was waited for while the snapshot was open")
		}
		if err := th.begin(t.Context(), 100); err != nil || time.Since(began) != 10*time.Second {
			t.Errorf("%v after %s", err, time.Since(began))
		}
	})
}

func TestRateOfEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th := quietThrottle(config.Throttle{MaxBytesPerSecond: 10_000})
		began := time.Now()
		for range 2000 {
			if err := th.pace()(t.Context(), 50); err != nil {
				t.Fatal(err)
			}
		}
		if took := time.Since(began); took < 9900*time.Millisecond || took > 10100*time.Millisecond {
			t.Errorf("100,000 bytes took %s", took)
		}
		if err := group.Pause(t.Context(), time.Hour); err != nil { // earns nothing
			t.Fatal(err)
		}
		began = time.Now()
		for range 400 {
			_ = th.pace()(t.Context(), 50)
		}
		if took := time.Since(began); took < 1900*time.Millisecond {
			t.Errorf("20,000 bytes took %s", took)
		}
	})
}

func TestWithoutLimits(t *testing.T) {
	th := quietThrottle(config.Throttle{})
	if th.pace() != nil || th.chunkBytes(16<<20) != 16<<20 || th.reason() != "" {
		t.Error("nothing is configured, and something is slowed down")
	}
	for range 1000 {
		if err := th.begin(t.Context(), 1<<30); err != nil {
			t.Fatal(err)
		}
		th.spend(1 << 30)
	}
	if got := quietThrottle(config.Throttle{MaxBytesPerSecond: 1 << 20}).chunkBytes(16 << 20); got != 1<<20 {
		t.Errorf("chunks of %d bytes", got)
	}
}

// A pause begins and ends once in the log, names its reason meanwhile, holds only
// what it is for, and ends with the context.
func TestPauses(t *testing.T) {
	var log bytes.Buffer
	paused := 0
	th := newThrottle(config.Throttle{SourceMaxThreadsRunning: 5}, slog.New(slog.NewTextHandler(&log, nil)), func() { paused++ })
	unwatched := th.watched("replica r", forTarget)
	if !th.held(forTarget) || th.held(forSource) {
		t.Error("a watch that has said nothing does not hold its side")
	}
	th.set("replica r", "")
	th.set("replica r", "replica r lags 5s")
	th.set("replica r", "replica r lags 6s")
	if th.reason() != "replica r lags 6s" || paused != 2 {
		t.Errorf("reason %q, told %d times", th.reason(), paused)
	}
	if err := th.event(t.Context(), 10); err != nil {
		t.Error("the log is not read on while a replica lags")
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	g, _ := group.WithContext(t.Context())
	g.Go("stopped", func() error { return th.begin(ctx, 1) })
	cancel(errCaughtUp)
	if err := g.Wait(); !errors.Is(err, errCaughtUp) {
		t.Errorf("a chunk was begun: %v", err)
	}
	g, _ = group.WithContext(t.Context())
	g.Go("waits", func() error { return th.begin(t.Context(), 1) })
	th.set("replica r", "")
	th.set("replica r", "")
	if err := g.Wait(); err != nil || th.reason() != "" {
		t.Errorf("%v, reason %q", err, th.reason())
	}
	unwatched()
	if got := strings.Count(log.String(), "\n"); got != 2 || !strings.Contains(log.String(), "lags 5s") || !strings.Contains(log.String(), "goes on") {
		t.Errorf("the log has\n%s", log.String())
	}
}

// The lag is the age of the oldest beat that a replica lacks.
func TestLagByBeats(t *testing.T) {
	b := &beats{seen: map[string]int64{"a": 0, "b": 0}}
	start := time.Now()
	at := func(seconds int) time.Time { return start.Add(time.Duration(seconds) * time.Second) }
	want := func(replica string, now int, lag time.Duration, known bool) {
		t.Helper()
		if l, k := b.lag(replica, at(now)); l != lag || k != known {
			t.Errorf("%s at %d: %s, %v; want %s, %v", replica, now, l, k, lag, known)
		}
	}
	want("a", 0, 0, false)
	for n := range 10 {
		b.committed(b.next(), at(n))
	}
	want("a", 12, 12*time.Second, false)
	b.got("a", 10)
	want("a", 12, 0, true)
	b.got("b", 4)
	want("b", 12, 8*time.Second, true)
	if len(b.list) != 6 {
		t.Errorf("%d beats are remembered", len(b.list))
	}
	b.got("b", 3) // an old answer
	want("b", 12, 8*time.Second, true)
	for range 3 * maxBeats {
		b.committed(b.next(), at(20))
	}
	if len(b.list) > maxBeats {
		t.Errorf("%d beats are remembered", len(b.list))
	}
	want("b", 12, 8*time.Second, true)
	b.got("b", b.last)
	want("b", 30, 0, true)
}
