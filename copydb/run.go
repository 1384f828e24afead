package copydb

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/copydb/copydb/dumper"
	"github.com/copydb/copydb/internal/applier"
	"github.com/copydb/copydb/internal/check"
	"github.com/copydb/copydb/internal/group"
	"github.com/copydb/copydb/internal/hold"
	"github.com/copydb/copydb/internal/mysqlconn"
	"github.com/copydb/copydb/internal/progress"
	"github.com/copydb/copydb/internal/table"
	"github.com/copydb/copydb/state"
)

// run is one call of Run.
type run struct {
	opt   Options
	log   *slog.Logger
	store *state.Store
	runID string
	began time.Time

	reportMu       sync.Mutex // a Reporter is called from one goroutine at a time
	source, target *mysqlconn.Server
	facts          check.Facts
	leftBehind     []string
	stopAt         time.Time // the source's clock at the stop point
	since          int64     // transactions since; -1 = not known
	clean          string    // source_clean of the summary

	// mu guards what the checkpoint reads while others move it.
	mu       sync.Mutex
	st       *state.State
	dirty    bool
	tables   map[table.Name]*tableRun
	copying  *copier            // in the phase snapshot, else of earlier
	restarts map[table.Name]int // in this call
	meter    meter
	doomed   []string // spill files to remove once a state is saved that does not need them
	written  bool     // something was written to the target or the state by this call
	throttle *throttle

	// Of one attempt.
	hold      *mysqlconn.Control // on the target: named locks, the journal, documents
	tableMu   sync.Mutex         // tables' descriptions are kept in the order in which they change
	prog      *progress.Store
	dump      *dumper.Dumper
	write     applier.Config
	entries   int            // of the journal
	highWater state.Position // the target's when the attempt began
	marker    progress.Marker
	// snapshotServer is the UUID of the server whose log the places of chunks are of.
	snapshotServer string
	// xaUnseen: a start position was taken without a look at prepared XA transactions.
	xaUnseen bool
	// adopted: the run goes on from a state.
	adopted bool
	// forfeited: the target was restarted while its redo log was off.
	forfeited bool
}

// tableRun is one table of the run. Its fields are guarded by run.mu.
type tableRun struct {
	index     int // in state.Tables
	structure *table.Table
	segments  map[int]progress.Range // what the target has, by number
	took      time.Duration
}

// rows is how many rows of the table the target has.
func (t *tableRun) rows() int64 {
	var n int64
	for _, s := range t.segments {
		n += s.Rows
	}
	return n
}

// done reports whether all of the table is copied.
func (t *tableRun) done() bool {
	for _, s := range t.segments {
		if !s.Done {
			return false
		}
	}
	return len(t.segments) > 0
}

func newRun(opt Options) *run {
	if opt.ProgressInterval <= 0 {
		opt.ProgressInterval = 30 * time.Second
	}
	r := &run{opt: opt, log: opt.Logger, began: time.Now(), clean: "unknown", restarts: map[table.Name]int{}}
	r.throttle = newThrottle(opt.Config.Throttle, opt.Logger, r.meter.built)
	return r
}

func (r *run) report(rec Record) {
	r.reportMu.Lock()
	defer r.reportMu.Unlock()
	r.opt.Reporter.Report(rec)
}

func (r *run) warn(format string, args ...any) {
	r.report(WarningRecord{Message: fmt.Sprintf(format, args...)})
}

// main is the whole run but its last words.
func (r *run) main(ctx context.Context) (err error) {
	over, err := r.openState(ctx)
	if err != nil {
		return err
	}
	if r.source == nil {
		if err := r.openServers(); err != nil {
			return err
		}
	}
	r.endDead(ctx)
	in, findings, err := r.preflight(ctx, over)
	if err != nil {
		return err
	}
	if over == nil {
		if err := r.lookForUnfinished(ctx); err != nil {
			return err
		}
	}
	r.report(r.plan(in))
	if n := countErrors(findings); n > 0 {
		return &Error{Code: ExitPreflight, Message: fmt.Sprintf("the preflight found errors (%d); nothing was written", n),
			Next: "fix the findings above, then run the same command again"}
	}
	if r.opt.DryRun {
		return r.wouldTake(ctx)
	}
	if err := hold.Point(ctx, "checked"); err != nil {
		return err
	}
	if err := r.beginState(ctx, over); err != nil {
		return err
	}
	r.report(RunRecord{MigrationID: r.st.MigrationID, RunID: r.runID, StatePath: r.opt.StatePath, Resumed: r.adopted})
	defer func() { r.leaveRedoOn(ctx, err) }()
	return r.attempts(ctx)
}

// openServers makes the two servers; it connects to none.
func (r *run) openServers() error {
	var err error
	if r.runID, err = state.NewRunID(); err != nil {
		return err
	}
	if r.source, err = newServer("source", r.opt.Config.Source.Server, r.runID); err != nil {
		return err
	}
	r.target, err = newServer("target", r.opt.Config.Target.Server, r.runID)
	return err
}

func (r *run) closeServers() {
	for _, s := range []*mysqlconn.Server{r.source, r.target} {
		if s != nil {
			s.Close()
		}
	}
}

// attempts runs the phases, and again after an error that a new try may mend,
// until nothing has moved for the retry timeout.
func (r *run) attempts(ctx context.Context) error {
	last := time.Now()
	for wait := 200 * time.Millisecond; ; wait = min(2*wait, 5*time.Second) {
		before := r.meter.moved()
		err := r.attempt(ctx)
		if r.meter.moved() != before {
			last, wait = time.Now(), 200*time.Millisecond
		}
		if err == nil || ctx.Err() != nil || !retriable(err) {
			return err
		}
		if time.Since(last) > r.opt.Config.RetryTimeout {
			return &Error{Code: ExitResumable, Where: serverOf(err), Err: err, Next: r.afterLoss(serverOf(err)),
				Message: fmt.Sprintf("nothing could be done for %s", r.opt.Config.RetryTimeout)}
		}
		r.log.Warn("interrupted; trying again", "error", err, "in", wait)
		if err := group.Pause(ctx, wait); err != nil {
			return err
		}
	}
}

// attempt is one try: it takes hold of the migration and goes through the
// phases that are left. Whatever happens, its sessions are ended.
func (r *run) attempt(ctx context.Context) (err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stopAbort := r.onAbort(cancel)
	defer stopAbort()
	defer r.letGo(ctx)
	if err := r.takeHold(ctx); err != nil {
		return err
	}
	if err := hold.Point(ctx, "begun"); err != nil {
		return err
	}
	for {
		if err := r.restartExact(ctx); err != nil {
			return err
		}
		err := r.withReports(ctx, func(ctx context.Context) error { return r.throttled(ctx, r.phases) })
		if again, rerr := r.restartVoided(ctx, err); rerr != nil || !again {
			return errors.Join(err, rerr)
		}
	}
}

// onAbort cuts everything when the second signal comes.
func (r *run) onAbort(cancel context.CancelCauseFunc) (stop func()) {
	done := make(chan struct{})
	go func() {
		select {
		case <-r.opt.Abort:
			cancel(&StopError{Reason: "the second signal", Code: ExitInterrupt})
			r.source.Cut()
			r.target.Cut()
		case <-done:
		}
	}()
	return func() { close(done) }
}

func (r *run) phases(ctx context.Context) error {
	if r.phase() == state.PhaseSchema {
		if err := r.makeSchema(ctx); err != nil {
			return err
		}
	}
	if r.phase() == state.PhaseSnapshot {
		if err := r.copyTables(ctx); err != nil {
			return err
		}
	}
	if r.phase() == state.PhaseIndexes {
		if err := r.buildIndexes(ctx); err != nil {
			return err
		}
	}
	if err := r.redoOn(ctx); err != nil {
		return err
	}
	if err := r.catchUp(ctx); err != nil {
		return err
	}
	return r.finish(ctx)
}

func (r *run) phase() state.Phase {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.st.Phase
}

// enter begins a phase: it is kept on the target and in the state file first.
func (r *run) enter(ctx context.Context, p state.Phase) error {
	r.mu.Lock()
	r.st.Phase = p
	r.mu.Unlock()
	if err := r.saveDoc(ctx, p == state.PhaseDone); err != nil {
		return err
	}
	if r.meter.enter(p) {
		r.report(PhaseRecord{Phase: p})
	}
	return r.checkpoint()
}
