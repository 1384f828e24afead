package copydb

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/copydb/copydb/internal/group"
	"github.com/copydb/copydb/internal/mysqlconn"
	"github.com/copydb/copydb/internal/pattern"
	"github.com/copydb/copydb/internal/progress"
	"github.com/copydb/copydb/state"
)

// overtaken is what --start-over replaces.
type overtaken struct {
	state      *state.State // the state file that is moved away; nil where there is none
	here       bool         // it was made for this target
	migrations []progress.Other
	created    []state.Object
	redoOff    bool // one of them has switched the target's redo log off
}

// openOver looks for what --start-over replaces: the state file, which may be
// unreadable or missing, and the records of runs over the same tables that the
// target has.
func (r *run) openOver(ctx context.Context, there bool) (*overtaken, error) {
	over := &overtaken{}
	if there {
		st, err := state.Load(r.opt.StatePath)
		if errors.Is(err, state.ErrHeld) {
			return nil, r.stateError(err)
		}
		over.state = st // nil where it cannot be read
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
	if err := r.madeHere(ctx, c, over); err != nil {
		return nil, err
	}
	if ok, err := progress.Exists(ctx, c); err != nil || !ok {
		return over, nil // as above
	}
	if over.migrations, err = progress.Overlapping(ctx, c, sel.Match, false); err != nil {
		return nil, err
	}
	if over.here && !slices.ContainsFunc(over.migrations, func(m progress.Other) bool { return m.Migration == over.state.MigrationID }) {
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

// madeHere takes from the state what its run made on the target, if this is the
// target that it was made for. On another server tables of these names are
// somebody else's; on the source they are the rows themselves.
func (r *run) madeHere(ctx context.Context, c *mysqlconn.Control, over *overtaken) error {
	if over.state == nil {
		return nil
	}
	id, err := c.Identify(ctx)
	if err != nil {
		return err
	}
	if err := r.refuseSwapped(over.state, id); err != nil {
		return err
	}
	if over.here = over.state.Target.ServerUUID == id.UUID; !over.here {
		r.log.Warn("the state was made for another target; nothing that it lists is dropped here", "its target", over.state.Target.ServerUUID, "this target", id.UUID)
		return nil
	}
	over.created, over.redoOff = over.state.ObjectsCreated, listsRedo(over.state.SwitchedOnTarget)
	return nil
}

// refuseSwapped refuses a target that is the state's source.
func (r *run) refuseSwapped(st *state.State, target mysqlconn.Identity) error {
	if len(st.Sources) == 0 || st.Sources[0].ServerUUID != target.UUID || st.Target.ServerUUID == target.UUID {
		return nil
	}
	return &Error{Code: ExitState, Where: "target", Message: "this is the server that the state has as its source (" + target.UUID + "): source and target look swapped",
		Next: "put them as they were; for a copy the other way round take another state file (--state)"}
}

// workTries is how often, with workPause in between, a run that holds a database
// is looked for again: the sessions of one that was killed go within a second.
const (
	workTries = 10
	workPause = 500 * time.Millisecond
)

// refuseAtWork refuses to replace a run that is known by the target alone, while
// it holds a database there: nothing here tells whether it is alive.
func (r *run) refuseAtWork(ctx context.Context, c *mysqlconn.Control, over *overtaken) error {
	for _, m := range over.migrations {
		if over.here && m.Migration == over.state.MigrationID {
			continue // its state file is locked by this run
		}
		for try := 1; ; try++ {
			id, err := r.holderOf(ctx, c, m)
			if err != nil {
				return err
			}
			if id == 0 {
				break
			}
			if try == workTries {
				return heldError(fmt.Sprintf("a run of table %s (migration %s) is at work", m.Tables[0], m.Migration), id)
			}
			if err := group.Pause(ctx, workPause); err != nil {
				return err
			}
		}
	}
	return nil
}

// holderOf returns the connection of a run that holds one of its databases, 0 if
// none does.
func (r *run) holderOf(ctx context.Context, c *mysqlconn.Control, m progress.Other) (uint64, error) {
	open, err := c.RunSessions(ctx, m.RunID)
	if err != nil {
		return 0, err
	}
	for _, n := range m.Tables {
		id, err := databaseHolder(ctx, c, n.Database)
		if err != nil {
			return 0, err
		}
		if id != 0 && slices.Contains(open, id) {
			return id, nil
		}
	}
	return 0, nil
}

// beginAgain says what a run that starts over does, and its command.
func (r *run) beginAgain() string {
	what := "the tables that the run before made on the target"
	st := r.st
	if st == nil {
		st, _ = state.Load(r.opt.StatePath) // it only names tables
	}
	if st != nil {
		what = madeTables(st)
	}
	return "begin again, which drops " + what + ": " + r.overCommand()
}

// madeTables names a few of the tables that a state's run made.
func madeTables(st *state.State) string {
	var names []string
	for _, o := range st.ObjectsCreated {
		if o.Type == kindTable {
			names = append(names, nameOf(o.Database, o.Name).String())
		}
	}
	const some = 3
	switch n := len(names); {
	case n == 0:
		return "nothing, since no table was made"
	case n > some:
		return fmt.Sprintf("%s and %d other tables on the target", strings.Join(names[:some], ", "), n-some)
	}
	return strings.Join(names, ", ") + " on the target"
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
	c, err := r.openDDL(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	if err := r.refuseAtWork(ctx, c, over); err != nil {
		return err
	}
	if err := endAll(); err != nil {
		return err
	}
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
