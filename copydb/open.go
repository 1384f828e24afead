package copydb

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/copydb/copydb/internal/mysqlconn"
	"github.com/copydb/copydb/internal/progress"
	"github.com/copydb/copydb/state"
)

// openState decides what the run begins from. A run that goes on holds the
// state file's lock from here on; a fresh one takes it only once the preflight
// has passed, since until then it writes nothing.
func (r *run) openState(ctx context.Context) (*overtaken, error) {
	there := fileExists(r.opt.StatePath)
	backup := fileExists(r.opt.StatePath + ".bak")
	switch start := r.opt.Start; {
	case r.opt.DryRun:
		return nil, r.readStateOnly()
	case start == StartOver:
		return r.openOver(ctx, there)
	case start == StartResume, start == StartResumeIfPresent && (there || backup):
		return nil, r.openResume()
	case there:
		return nil, &Error{Code: ExitState, Where: r.opt.StatePath, Message: "the state file of another run is there",
			Next: "go on with it: " + r.resumeCommand() + "; or " + r.beginAgain()}
	case backup:
		return nil, &Error{Code: ExitState, Where: r.opt.StatePath + ".bak", Message: "only the backup of a state file is there",
			Next: fmt.Sprintf("restore it with `cp -p %[1]s.bak %[1]s` and go on: %[2]s; or %[3]s",
				r.opt.StatePath, r.resumeCommand(), r.beginAgain())}
	}
	return nil, nil
}

func fileExists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// readStateOnly reads the state that the run would go on from, without taking
// it.
func (r *run) readStateOnly() error {
	if r.opt.Start != StartResume && (r.opt.Start != StartResumeIfPresent || !fileExists(r.opt.StatePath)) {
		return nil
	}
	return r.adopt()
}

func (r *run) adopt() error {
	st, err := state.Load(r.opt.StatePath)
	if err != nil {
		return r.stateError(err)
	}
	if d := r.opt.Config.SelectionDigest(); st.Selection.Digest != d {
		return &Error{Code: ExitState, Where: r.opt.StatePath,
			Message: fmt.Sprintf("the selection has changed: the state was made for include %s exclude %s",
				list(st.Selection.Include), list(st.Selection.Exclude)),
			Next: "put the selection back as it was, or begin again: " + r.overCommand()}
	}
	r.st, r.adopted = st, true
	return nil
}

func list(items []string) string { return "[" + strings.Join(items, ", ") + "]" }

func (r *run) openResume() error {
	// A state that cannot be used is refused before a lock file is made beside it.
	if err := r.adopt(); err != nil {
		return err
	}
	store, err := state.Open(r.opt.StatePath)
	if err != nil {
		return r.stateError(err)
	}
	r.store = store
	return r.adopt()
}

// beginState makes the state of a fresh run, or notes that a run goes on.
func (r *run) beginState(ctx context.Context, over *overtaken) error {
	if r.adopted {
		return nil // takeHold ends the dead run's sessions before anything is written
	}
	store, err := state.Open(r.opt.StatePath)
	if err != nil {
		return r.stateError(err)
	}
	r.store = store
	if over == nil && (store.Exists() || store.BackupExists()) {
		return &Error{Code: ExitState, Where: r.opt.StatePath, Message: "the state file of another run has appeared",
			Next: "go on with it: " + r.resumeCommand()}
	}
	if over != nil {
		if err := r.replace(ctx, over); err != nil {
			return err
		}
	}
	st, err := state.New(r.opt.Version, time.Now())
	if err != nil {
		return err
	}
	c := r.opt.Config
	st.RunID, st.Phase = r.runID, state.PhaseSchema
	st.Sources = []state.Source{{
		Server:   serverState(r.facts.Source.Identity, c.Source.Host, c.Source.Port),
		ServerID: r.facts.Source.Identity.ServerID, Sessions: []state.Session{},
	}}
	st.Target = serverState(r.facts.Target.Identity, c.Target.Host, c.Target.Port)
	st.Selection = state.Selection{Digest: c.SelectionDigest(), Include: c.Tables.Include, Exclude: c.Tables.Exclude, Routes: []string{}}
	for _, t := range r.facts.Tables {
		st.Tables = append(st.Tables, state.Table{Database: state.Text(t.Database), Table: state.Text(t.Table),
			Status: state.TablePending, Class: classOf(t)})
	}
	r.st = st
	return nil
}

func serverState(id mysqlconn.Identity, host string, port int) state.Server {
	return state.Server{Flavor: string(id.Version.Flavor), Version: id.Version.Text, ServerUUID: id.UUID, Host: host, Port: port}
}

// endDead ends the sessions of the run that left the state, before anything else
// is asked of either server. Where that fails the preflight says why, or the
// first attempt, which looks for them again.
func (r *run) endDead(ctx context.Context) {
	if !r.adopted || r.opt.DryRun {
		return
	}
	if err := r.endRun(ctx, r.st.RunID); err != nil {
		r.log.Debug("could not look for sessions of the run before", "error", err)
	}
}

// endHolder ends the sessions of the run that the target names as the one that
// has the migration. A run that had it itself and finds another one there has
// been replaced: it ends, and leaves the other one alone. But where the epoch is
// a lower one, that one was before it, and the target has lost commits.
func (r *run) endHolder(ctx context.Context, rec *progress.Record) error {
	if r.prog != nil && rec.RunID != r.runID && !errors.Is(r.prog.Fence(rec.Epoch), progress.ErrForgotten) {
		return progress.ErrFenced
	}
	return r.endRun(ctx, rec.RunID)
}

// endRun ends the sessions of another run on both servers and waits for them.
func (r *run) endRun(ctx context.Context, runID string) error {
	if runID == "" || runID == r.runID {
		return nil
	}
	for _, s := range []*mysqlconn.Server{r.source, r.target} {
		n, err := s.EndRun(ctx, runID, 0)
		if err != nil {
			return err
		}
		if n > 0 {
			r.log.Info("ended sessions of a run that died", "server", s.Config().Name, "sessions", n, "run", runID)
		}
	}
	return nil
}

// stateError is the error of a state file that a run may not begin from.
func (r *run) stateError(err error) error {
	var fe *state.FileError
	if !errors.As(err, &fe) {
		return err
	}
	e := &Error{Code: ExitState, Where: fe.Path, Message: "the state file " + fe.Detail, Next: fe.Next}
	if errors.Is(err, state.ErrSchemas) {
		e.Message = "the file of structures " + fe.Detail
	}
	switch {
	case e.Next != "":
	case errors.Is(err, state.ErrMissing):
		e.Next = "a fresh run is: " + r.command() + " --state " + state.ShellQuote(r.opt.StatePath)
	case errors.Is(err, state.ErrHeld):
		e.Next = "wait for that run, or stop it; it can then be resumed"
	default:
		e.Next = "the file is left as it is; begin again with: " + r.overCommand()
	}
	return e
}

// command is how the program was called, without start options.
func (r *run) command() string {
	if r.opt.Command != "" {
		return r.opt.Command
	}
	return "copydb --config FILE"
}

func (r *run) resumeCommand() string {
	return r.command() + " --resume-state " + state.ShellQuote(r.opt.StatePath)
}

func (r *run) overCommand() string {
	return r.command() + " --state " + state.ShellQuote(r.opt.StatePath) + " --start-over"
}
