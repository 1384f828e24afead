package copydb

import (
	"context"

	"github.com/copydb/copydb/internal/group"
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
	r.log.Info("removed the migration's record from the target", "migration", st.MigrationID)
	return nil
}
