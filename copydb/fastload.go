package copydb

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/copydb/copydb/internal/mysqlconn"
	"github.com/copydb/copydb/internal/progress"
	"github.com/copydb/copydb/state"
)

// redoLog is the name under which the state lists that the target's redo log is
// switched off, and was on.
const redoLog = "innodb_redo_log"

func isRedoLog(s state.Setting) bool { return s.Name == redoLog }

// listsRedo reports whether the redo log is listed as switched off.
func listsRedo(settings []state.Setting) bool { return slices.ContainsFunc(settings, isRedoLog) }

func (r *run) redoListed() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.st != nil && listsRedo(r.st.SwitchedOnTarget)
}

// redoOff switches the target's redo log off for the first copy of the tables.
// The state file and the target know of it before.
func (r *run) redoOff(ctx context.Context) error {
	r.mu.Lock()
	first, listed := r.st.Sources[0].ConsistentAt == nil, listsRedo(r.st.SwitchedOnTarget)
	r.mu.Unlock()
	if !r.opt.Config.Target.FastLoad || !first {
		return r.redoOn(ctx)
	}
	if !listed {
		if err := r.list(ctx, state.Setting{Name: redoLog, Was: "ON"}); err != nil {
			return err
		}
	}
	if _, err := r.hold.Exec(ctx, "ALTER INSTANCE DISABLE INNODB REDO_LOG"); err != nil {
		return fmt.Errorf("switch the redo log of the target off: %w", err)
	}
	r.log.Info("the redo log of the target is off while rows are loaded")
	return nil
}

// list keeps a setting to put back.
func (r *run) list(ctx context.Context, s state.Setting) error {
	r.change(func(st *state.State) { st.SwitchedOnTarget = append(st.SwitchedOnTarget, s) })
	if err := r.checkpoint(); err != nil {
		return err
	}
	return r.saveDoc(ctx, false)
}

// redoOn switches the redo log on again, if this migration has switched it off.
func (r *run) redoOn(ctx context.Context) error {
	if !r.redoListed() {
		return nil
	}
	if err := r.enableRedo(ctx); err != nil {
		return err
	}
	return r.checkpoint()
}

// enableRedo switches the redo log on and forgets that it was off. The target
// writes all its pages to the disk first. The connection has no named lock, by
// which a clean-up would find and end it: where the target needs longer than the
// run has, it goes on by itself.
func (r *run) enableRedo(ctx context.Context) error {
	s, err := newServer("target", r.opt.Config.Target.Server, "")
	if err != nil {
		return err
	}
	defer s.Close()
	c, err := s.Open(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	began := time.Now()
	if err := switchOn(ctx, c); err != nil {
		return err
	}
	r.log.Info("the redo log of the target is on again", "elapsed", time.Since(began))
	if r.forfeited { // the next run must be told, too
		return nil
	}
	r.unlistRedo()
	return r.saveDocOver(ctx, c, false)
}

func (r *run) unlistRedo() {
	r.change(func(st *state.State) { st.SwitchedOnTarget = slices.DeleteFunc(st.SwitchedOnTarget, isRedoLog) })
}

func switchOn(ctx context.Context, c *mysqlconn.Control) error {
	if _, err := c.Exec(ctx, "ALTER INSTANCE ENABLE INNODB REDO_LOG"); err != nil {
		return fmt.Errorf("switch the redo log of the target on: %w", err)
	}
	return nil
}

// refuseRestarted refuses a target that was restarted while its redo log was
// off: what it holds is what happened to be on the disk.
func (r *run) refuseRestarted(ctx context.Context, rec *progress.Record) error {
	if !listsRedo(rec.Doc.SwitchedOn) {
		return nil
	}
	started, err := startedAt(ctx, r.hold)
	if err != nil || started-rec.Doc.TargetStarted <= restartSlack {
		return err
	}
	r.forfeited = true
	return &Error{Code: ExitState, Where: "target",
		Message: "the server was restarted while its redo log was off (target.fast_load): rows may be missing, and nothing can tell which",
		Next:    "begin again: " + r.overCommand()}
}

// leaveRedoOn switches the redo log on, on whatever path a run ends that has held
// the migration and was not replaced by another.
func (r *run) leaveRedoOn(ctx context.Context, ended error) {
	if r.prog == nil || !r.redoListed() || errors.Is(ended, progress.ErrFenced) {
		return
	}
	// What was under way has had a third of the time, the end of sessions another.
	ctx, cancel := outliveFor(ctx, r.opt.Config.StopTimeout/4)
	defer cancel()
	defer r.onAbort(func(error) { cancel() })()
	if err := r.enableRedo(ctx); err != nil {
		r.log.Warn("the redo log of the target may still be off; a resume or cleanup switches it on", "error", err)
	}
}

// cleanRedo is for a clean-up: what a run that died has switched off is switched
// on again.
func (r *run) cleanRedo(ctx context.Context, c *mysqlconn.Control) error {
	rec := r.recorded(ctx)
	if !r.redoListed() && (rec == nil || !listsRedo(rec.Doc.SwitchedOn)) {
		return nil
	}
	if err := switchOn(ctx, c); err != nil {
		return err
	}
	r.log.Info("the redo log of the target is on again")
	r.unlistRedo()
	return r.store.Save(r.st)
}

// afterLoss is what to do where a server cannot be reached any more; "" where
// nothing but a resume helps.
func (r *run) afterLoss(server string) string {
	if server != "target" || !r.redoListed() {
		return ""
	}
	return "its redo log was off (target.fast_load): if the server has died, it does not start again; set it up anew, then begin again: " + r.overCommand() +
		"; if it was only out of reach, resume: " + r.resumeCommand()
}
