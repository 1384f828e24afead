package copydb

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/copydb/copydb/internal/mysqlconn"
	"github.com/copydb/copydb/internal/pattern"
	"github.com/copydb/copydb/internal/progress"
	"github.com/copydb/copydb/state"
)

// overtaken is what --start-over replaces.
type overtaken struct {
	state      *state.State // the state file that is moved away; nil where there is none
	migrations []progress.Other
	created    []state.Object
	redoOff    bool // one of them has switched the target's redo log off
}

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
			Next: "go on with it: " + r.resumeCommand() + "; or begin again, which drops the tables that it made on the target: " + r.overCommand()}
	case backup:
		return nil, &Error{Code: ExitState, Where: r.opt.StatePath + ".bak", Message: "only the backup of a state file is there",
			Next: fmt.Sprintf("restore it with `cp -p %[1]s.bak %[1]s` and go on: %[2]s; or begin again, which drops the tables that it made on the target: %[3]s",
				r.opt.StatePath, r.resumeCommand(), r.overCommand())}
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

// openOver looks for what --start-over replaces: the state file, which may be
// unreadable or missing, and the records of runs over the same tables that the
// target has.
func (r *run) openOver(ctx context.Context, there bool) (*overtaken, error) {
	over := &overtaken{}
	if there {
		if st, err := state.Load(r.opt.StatePath); err == nil {
			over.state, over.created, over.redoOff = st, st.ObjectsCreated, listsRedo(st.SwitchedOnTarget)
		} else if errors.Is(err, state.ErrHeld) {
			return nil, r.stateError(err)
		}
	}
	if err := r.openServers(); err != nil {
		return nil, err
	}
	sel, err := pattern.Compile(r.opt.Config.Tables.Include, r.opt.Config.Tables.Exclude, false)
	if err != nil {
		return nil, &Error{Code: ExitUsage, Err: err}
	}
	c, err := r.target.Open(ctx)
	if err != nil {
		return over, nil // the preflight says what is the matter with the target
	}
	defer c.Close()
	if ok, err := progress.Exists(ctx, c); err != nil || !ok {
		return over, nil // as above
	}
	if over.migrations, err = progress.Overlapping(ctx, c, sel.Match, false); err != nil {
		return nil, err
	}
	if over.state != nil && !slices.ContainsFunc(over.migrations, func(m progress.Other) bool { return m.Migration == over.state.MigrationID }) {
		over.migrations = append(over.migrations, progress.Other{Migration: over.state.MigrationID, RunID: over.state.RunID})
	}
	for _, m := range over.migrations {
		rec, err := progress.Load(ctx, c, m.Migration)
		if err != nil {
			return nil, err
		}
		if rec != nil {
			over.created = append(over.created, objectsOf(rec.Journal)...)
			over.redoOff = over.redoOff || listsRedo(rec.Doc.SwitchedOn)
		}
	}
	return over, nil
}

func objectsOf(journal []progress.Entry) []state.Object {
	out := []state.Object{}
	for _, e := range journal {
		out = append(out, state.Object{Type: e.Kind, Database: state.Text(e.Database), Name: state.Text(e.Name)})
	}
	return out
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

// replace ends what --start-over replaces: its sessions, its hold on the target,
// the tables it made, its record; then its state file moves away.
func (r *run) replace(ctx context.Context, over *overtaken) error {
	runs := map[string]bool{}
	if over.state != nil {
		runs[over.state.RunID] = true
	}
	for _, m := range over.migrations {
		runs[m.RunID] = true
	}
	endAll := func() error {
		for id := range runs {
			if err := r.endRun(ctx, id); err != nil {
				return err
			}
		}
		return nil
	}
	if err := endAll(); err != nil {
		return err
	}
	c, err := r.openDDL(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	if over.redoOff {
		if err := switchOn(ctx, c); err != nil {
			return err
		}
	}
	for _, m := range over.migrations {
		if _, err := progress.Begin(ctx, c, m.Migration, r.runID); err != nil {
			return err
		}
	}
	// One that is alive has begun another attempt meanwhile; the next one finds
	// the migration taken.
	if err := endAll(); err != nil {
		return err
	}
	for _, o := range over.created {
		if o.Type != kindTable {
			continue
		}
		name := nameOf(o.Database, o.Name)
		if _, err := c.Exec(ctx, "DROP TABLE IF EXISTS "+name.Quoted()); err != nil {
			return fmt.Errorf("drop table %s of the run before on the target: %w", name, err)
		}
	}
	for _, m := range over.migrations {
		if err := progress.Remove(ctx, c, m.Migration); err != nil {
			return err
		}
	}
	moved, err := r.store.MoveAside()
	if err != nil {
		return fmt.Errorf("move the state file aside: %w", err)
	}
	if len(moved) > 0 {
		r.log.Info("moved the state of the run before aside", "files", moved)
	}
	return nil
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
