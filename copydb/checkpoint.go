package copydb

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/copydb/copydb/internal/group"
	"github.com/copydb/copydb/state"
)

// change moves the state under its lock. Only what was acknowledged by the
// target may be noted.
func (r *run) change(fn func(*state.State)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	fn(r.st)
	r.dirty = true
}

// sourceState is what is known of the source now.
func (r *run) sourceState() state.Source {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.st.Sources[0]
}

// checkpoint saves the state file.
func (r *run) checkpoint() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.saveLocked()
}

func (r *run) saveLocked() error {
	began := time.Now()
	r.st.CopydbVersion = r.opt.Version
	r.st.Sources[0].Sessions = r.source.Sessions()
	r.st.TargetSessions = r.target.Sessions()
	if err := r.store.Save(r.st); err != nil {
		var se *state.SaveError
		if errors.As(err, &se) {
			return &Error{Code: ExitResumable, Where: r.opt.StatePath, Err: err,
				Next: "make room or restore the rights there, then resume: " + r.resumeCommand()}
		}
		return err
	}
	r.dirty, r.written = false, true
	r.removeDoomed()
	src := r.st.Sources[0]
	r.report(CheckpointRecord{LastStreamed: src.LastStreamed, LastResumable: src.LastResumable, Seconds: time.Since(began).Seconds()})
	return nil
}

// doomSpills has spill files removed once the state does not name them any more.
func (r *run) doomSpills(names []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.doomed = append(r.doomed, names...)
}

// removeDoomed removes what neither the state that was just saved nor the
// target, which is never behind it, needs.
func (r *run) removeDoomed() {
	var still, gone []string
	for _, name := range r.doomed {
		if slices.Contains(r.st.SpillFiles, name) {
			still = append(still, name)
		} else {
			gone = append(gone, name)
		}
	}
	r.doomed = still
	if err := state.RemoveSpills(r.store.Path(), gone); err != nil {
		r.log.Warn("files that are not needed any more stay behind", "error", err)
	}
}

// withReports runs fn with the checkpoints and the progress reports beside it.
func (r *run) withReports(ctx context.Context, fn func(context.Context) error) error {
	g, ctx := group.WithContext(ctx)
	done := make(chan struct{})
	g.Go("phases", func() error {
		defer close(done)
		return fn(ctx)
	})
	g.Go("checkpoints", func() error {
		every := r.opt.Config.CheckpointInterval
		if every <= 0 {
			return nil // each window saves by itself
		}
		return r.every(ctx, done, every, func() error {
			r.mu.Lock()
			defer r.mu.Unlock()
			if !r.dirty {
				return nil
			}
			return r.saveLocked()
		})
	})
	g.Go("keep-alive of the hold", func() error {
		// It holds the named locks and may have nothing to do for hours.
		return r.every(ctx, done, time.Minute, func() error {
			_, err := r.hold.Exec(ctx, "DO 1")
			return err
		})
	})
	g.Go("progress reports", func() error {
		return r.every(ctx, done, r.opt.ProgressInterval, func() error {
			r.report(r.progressNow())
			return nil
		})
	})
	return g.Wait()
}

func (r *run) every(ctx context.Context, done <-chan struct{}, d time.Duration, fn func() error) error {
	t := time.NewTicker(d)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-done:
			return nil
		case <-t.C:
			if err := fn(); err != nil {
				return err
			}
		}
	}
}

func (r *run) progressNow() ProgressRecord {
	rec := ProgressRecord{Elapsed: time.Since(r.began).Seconds(), ThrottleReason: r.throttle.reason()}
	r.mu.Lock()
	rec.Phase, rec.TablesTotal = r.st.Phase, len(r.st.Tables)
	for i := range r.st.Tables {
		if s := r.st.Tables[i].Status; s == state.TableCopied || s == state.TableIndexed {
			rec.TablesDone++
		}
	}
	c := r.copying
	r.mu.Unlock()
	var left amount
	if c != nil && rec.Phase == state.PhaseSnapshot {
		left = c.left()
	}
	r.meter.sample(&rec, left)
	return rec
}
