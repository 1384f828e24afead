package copydb

import (
	"context"
	"fmt"

	"github.com/copydb/copydb/internal/group"
	"github.com/copydb/copydb/internal/mysqlconn"
	"github.com/copydb/copydb/internal/progress"
	"github.com/copydb/copydb/state"
)

// Cleanup removes what the migration of the state file keeps on the target: its
// part of _copydb, and the database with the last one. A run that holds the
// state refuses it. The state cannot be resumed afterwards.
func Cleanup(ctx context.Context, opt Options) error {
	r := newRun(opt)
	defer r.closeServers()
	return r.explain(ctx, group.Call("cleanup", func() error { return r.cleanup(ctx) }))
}

func (r *run) cleanup(ctx context.Context) error {
	st, err := state.Load(r.opt.StatePath)
	if err != nil {
		return r.stateError(err)
	}
	store, err := state.Open(r.opt.StatePath)
	if err != nil {
		return r.stateError(err)
	}
	defer store.Close()
	if err := r.openServers(); err != nil {
		return err
	}
	c, err := r.target.Open(ctx)
	if err != nil {
		return &Error{Code: ExitPreflight, Where: "target", Err: err, Next: "mend the connection, then run the same command again"}
	}
	defer c.Close()
	if err := r.refuseHeld(ctx, c, st); err != nil {
		return err
	}
	r.st, r.store = st, store
	if err := r.cleanRedo(ctx, c); err != nil {
		return err
	}
	there, err := progress.Exists(ctx, c)
	if err != nil || !there {
		return err
	}
	// Raising the epoch waits for transactions of a run that still writes, and
	// fences it.
	if _, err := progress.Begin(ctx, c, st.MigrationID, r.runID); err != nil {
		return err
	}
	if err := progress.Remove(ctx, c, st.MigrationID); err != nil {
		return err
	}
	spills, err := state.Spills(store.Path())
	if err != nil {
		return fmt.Errorf("look for spill files: %w", err)
	}
	if err := state.RemoveSpills(store.Path(), spills); err != nil {
		return err
	}
	r.log.Info("removed the migration's record from the target; its state is of no use any more and can be deleted", "migration", st.MigrationID, "state", store.Path())
	return nil
}

// refuseHeld refuses a clean-up under a run that holds the databases with
// another copy of the state file.
func (r *run) refuseHeld(ctx context.Context, c *mysqlconn.Control, st *state.State) error {
	for _, t := range st.Tables {
		id, err := databaseHolder(ctx, c, string(t.Database))
		if err != nil {
			return err
		}
		if id != 0 {
			return heldError(fmt.Sprintf("database %s is being written by a run", t.Database), id)
		}
	}
	return nil
}
