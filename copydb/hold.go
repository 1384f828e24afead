package copydb

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/copydb/copydb/dumper"
	"github.com/copydb/copydb/internal/applier"
	"github.com/copydb/copydb/internal/group"
	"github.com/copydb/copydb/internal/mysqlconn"
	"github.com/copydb/copydb/internal/progress"
	"github.com/copydb/copydb/internal/table"
	"github.com/copydb/copydb/state"
)

func nameOf(database, name state.Text) table.Name {
	return table.Name{Database: string(database), Table: string(name)}
}

// takeHold makes the migration this run's: it ends the sessions of the run
// before, takes the locks that refuse others, raises the epoch that fences them,
// and takes over what the target knows. The state file is saved before the first
// write to the target.
func (r *run) takeHold(ctx context.Context) (err error) {
	if err := r.proveSource(ctx); err != nil {
		return err
	}
	if err := r.endRun(ctx, r.st.RunID); err != nil {
		return err
	}
	if r.hold, err = r.openDDL(ctx); err != nil {
		return err
	}
	if err := r.lockDatabases(ctx); err != nil {
		return err
	}
	there, err := progress.Exists(ctx, r.hold)
	if err != nil {
		return err
	}
	if err := r.mayTake(ctx, there); err != nil {
		return err
	}
	r.mu.Lock()
	r.st.RunID = r.runID
	r.mu.Unlock()
	if err := r.checkpoint(); err != nil {
		return err
	}
	if !there {
		if err := progress.Ensure(ctx, r.hold); err != nil {
			return err
		}
	}
	if r.prog, err = progress.Begin(ctx, r.hold, r.st.MigrationID, r.runID); err != nil {
		return err
	}
	rec, err := progress.Load(ctx, r.hold, r.st.MigrationID)
	if err != nil {
		return err
	}
	if err := r.refuseRestarted(ctx, rec); err != nil {
		return err
	}
	if err := r.reconcile(rec); err != nil {
		return err
	}
	if err := r.configure(ctx); err != nil {
		return err
	}
	if err := r.restartVolatile(ctx, rec); err != nil {
		return err
	}
	return r.checkSource(ctx)
}

// mayTake refuses a target that has lost the migration, or has an unfinished one
// of the same tables.
func (r *run) mayTake(ctx context.Context, there bool) error {
	if err := r.refuseSwapped(r.st, r.facts.Target.Identity); err != nil {
		return err
	}
	known := false
	if there {
		rec, err := progress.Load(ctx, r.hold, r.st.MigrationID)
		if err != nil {
			return err
		}
		if known = rec != nil; known {
			if err := r.endHolder(ctx, rec); err != nil {
				return err
			}
			// Before anything is written: a state that cannot be gone on from is
			// left as it is.
			if err := r.canGoOn(ctx, rec); err != nil {
				return err
			}
			// A state file may have come back without its companion.
			for _, raw := range rec.Structures {
				if _, err := r.store.PutStructure(raw); err != nil {
					return fmt.Errorf("keep a structure beside the state: %w", err)
				}
			}
		}
		if err := r.refuseUnfinished(ctx, r.hold, r.st.MigrationID); err != nil {
			return err
		}
	}
	if phase := r.phase(); !known && phase != state.PhaseSchema {
		return r.forgotten()
	}
	return nil
}

// wouldTake is mayTake for a run that only looks.
func (r *run) wouldTake(ctx context.Context) error {
	if !r.adopted {
		return nil
	}
	if err := r.refuseSwapped(r.st, r.facts.Target.Identity); err != nil {
		return err
	}
	if r.recorded(ctx) == nil && r.phase() != state.PhaseSchema {
		return r.forgotten()
	}
	return nil
}

// forgotten is the error of a target that knows nothing of a migration which has
// got beyond its schema.
func (r *run) forgotten() error {
	e := &Error{Code: ExitState, Where: "target",
		Message: fmt.Sprintf("the state says %s, but the target has nothing of this migration in %s any more", r.phase(), progress.Database),
		Next:    "it was cleaned up, or the target was set back; if the target serves already, move the state away; else " + r.beginAgain()}
	if id := r.facts.Target.Identity; id.UUID != r.st.Target.ServerUUID {
		e.Message = fmt.Sprintf("this is not the target that the state was made for (%s, not %s), and it knows nothing of this migration", id.UUID, r.st.Target.ServerUUID)
		e.Next = "point the configuration at that target; for a copy to this one take another state file (--state)"
	}
	return e
}

// refuseUnfinished refuses tables that another migration than own has not
// finished.
func (r *run) refuseUnfinished(ctx context.Context, c *mysqlconn.Control, own string) error {
	others, err := progress.Overlapping(ctx, c, r.facts.Selection.Match, true)
	if err != nil {
		return err
	}
	for _, o := range others {
		if o.Migration != own {
			return &Error{Code: ExitState, Where: "target",
				Message: fmt.Sprintf("an unfinished run is known there of table %s (migration %s)", o.Tables[0], o.Migration),
				Next:    "resume that run with its state file, or drop the tables that it made and begin again: " + r.overCommand()}
		}
	}
	return nil
}

// lookForUnfinished is refuseUnfinished for a fresh run, before it says anything
// of the tables that the unfinished one has made.
func (r *run) lookForUnfinished(ctx context.Context) error {
	if r.adopted || r.facts.Selection == nil {
		return nil
	}
	c, err := r.target.Open(ctx)
	if err != nil {
		return nil // the preflight has said what is the matter with the target
	}
	defer c.Close()
	if there, err := progress.Exists(ctx, c); err != nil || !there {
		return err
	}
	return r.refuseUnfinished(ctx, c, "")
}

// lockDatabases takes the named lock of each target database: the polite refusal
// of a second run with another state file.
func (r *run) lockDatabases(ctx context.Context) error {
	var names []string
	for _, d := range r.facts.Databases {
		names = append(names, d.Name)
	}
	for _, t := range r.st.Tables {
		names = append(names, string(t.Database))
	}
	slices.Sort(names)
	for _, n := range slices.Compact(names) {
		var got *int64
		if err := r.hold.QueryRow(ctx, []any{&got}, "SELECT GET_LOCK(?, 0)", databaseLock(n)); err != nil {
			return fmt.Errorf("lock database %s on the target: %w", n, err)
		}
		if got != nil && *got == 1 {
			continue
		}
		id, err := databaseHolder(ctx, r.hold, n)
		if err != nil {
			return err
		}
		return heldError(fmt.Sprintf("database %s is being written by another run", n), id)
	}
	return nil
}

// databaseLock is the name of a database's lock: at most 64 characters.
func databaseLock(database string) string {
	return fmt.Sprintf("copydb:%x", sha256.Sum256([]byte(database)))[:len("copydb:")+32]
}

// databaseHolder returns the connection that holds a database's lock; 0 if none
// does.
func databaseHolder(ctx context.Context, c *mysqlconn.Control, database string) (uint64, error) {
	var holder *uint64
	if err := c.QueryRow(ctx, []any{&holder}, "SELECT IS_USED_LOCK(?)", databaseLock(database)); err != nil {
		return 0, fmt.Errorf("look for the run that holds %s on the target: %w", database, err)
	}
	if holder == nil {
		return 0, nil
	}
	return *holder, nil
}

// heldError refuses what another run's connection holds.
func heldError(what string, id uint64) error {
	return &Error{Code: ExitState, Where: "target", Message: fmt.Sprintf("%s (connection %d holds its lock)", what, id),
		Next: fmt.Sprintf("wait for that run, or stop it; where it is cut off from the target, end its connection there with KILL %d; then run the same command again", id)}
}

// openDDL opens a connection to the target for schema statements and records.
func (r *run) openDDL(ctx context.Context) (*mysqlconn.Control, error) {
	c, err := r.target.Open(ctx)
	if err != nil {
		return nil, err
	}
	set := []string{"SET SESSION sql_mode = 'ALLOW_INVALID_DATES,NO_AUTO_VALUE_ON_ZERO', time_zone = '+00:00'," +
		" foreign_key_checks = 0, lock_wait_timeout = 20, innodb_lock_wait_timeout = 20, wait_timeout = 28800"}
	if !r.opt.Config.Target.SQLLogBin {
		set = append(set, "SET SESSION sql_log_bin = 0")
	}
	for _, q := range set {
		if _, err := c.Exec(ctx, q); err != nil {
			return nil, errors.Join(fmt.Errorf("set up a session on the target: %w", err), c.Close())
		}
	}
	// What the source allowed must be allowed; these need privileges that are not
	// demanded, and matter to few tables.
	for _, q := range []string{"SET SESSION innodb_strict_mode = 0", "SET SESSION sql_generate_invisible_primary_key = 0",
		"SET SESSION sql_require_primary_key = 0", "SET SESSION restrict_fk_on_non_standard_key = 0"} {
		if _, err := c.Exec(ctx, q); err != nil && mysqlconn.ErrorNumber(err) == 0 {
			return nil, errors.Join(err, c.Close())
		}
	}
	return c, nil
}

// configure makes the tools of the attempt.
func (r *run) configure(ctx context.Context) error {
	// MySQL wants a privilege for this that is not demanded; chunks of some tables
	// are smaller then.
	_, err := r.hold.Exec(ctx, fmt.Sprintf("SET SESSION max_error_count = %d", applier.AllNotes))
	if err != nil && mysqlconn.ErrorNumber(err) == 0 {
		return err
	}
	var packet, notes int64
	if err := r.hold.QueryRow(ctx, []any{&packet, &notes}, "SELECT @@global.max_allowed_packet, @@session.max_error_count"); err != nil {
		return fmt.Errorf("read the limits of the target: %w", err)
	}
	r.write = applier.Config{Target: r.target, Version: r.facts.Target.Identity.Version, Progress: r.prog,
		SQLLogBin: r.opt.Config.Target.SQLLogBin, MaxPacket: packet, MaxNotes: notes,
		Flavor: r.facts.Source.Identity.Version.Flavor, Threads: r.opt.Config.CatchUp.Threads}
	r.dump, err = dumper.New(dumper.Config{Source: r.source, Identity: r.facts.Source.Identity,
		Rung: r.facts.Rung, AllowLocks: r.opt.Config.Source.AllowLocks, Logger: r.log})
	return err
}

// restartSlack is by how many seconds the time at which a server says that it
// was started may differ from one question to the next.
const restartSlack = 3

// restartVolatile has tables copied again whose engine does not keep rows over a
// restart or a crash, if the target was restarted since.
func (r *run) restartVolatile(ctx context.Context, rec *progress.Record) error {
	started, err := startedAt(ctx, r.hold)
	if err != nil {
		return err
	}
	was := rec.Doc.TargetStarted
	if was == 0 || started-was <= restartSlack {
		return nil
	}
	for n, tr := range r.tables {
		if len(tr.segments) == 0 || tr.structure == nil || table.Transactional(tr.structure.TargetEngine()) {
			continue
		}
		r.log.Warn("the target was restarted; a table without transactions is copied again", "table", n.String(), "engine", tr.structure.Engine)
		if err := r.restartTable(ctx, n); err != nil {
			return err
		}
	}
	return nil
}

// restartExact has exact tables copied again whose one snapshot was not read to
// its end, by a run that died or because another table has to begin again.
func (r *run) restartExact(ctx context.Context) error {
	for n, tr := range r.tables {
		if tr.structure == nil || tr.structure.UsableKey() != nil || tr.done() || !r.begunIn(r.componentOf(n)) {
			continue
		}
		if err := r.restartTable(ctx, n); err != nil {
			return err
		}
	}
	return nil
}

// atomically runs fn, which writes records over the hold, in one transaction.
func (r *run) atomically(ctx context.Context, fn func() error) error {
	if _, err := r.hold.Exec(ctx, "START TRANSACTION"); err != nil {
		return fmt.Errorf("begin on the target: %w", err)
	}
	if err := fn(); err != nil {
		_, rerr := r.hold.Exec(context.WithoutCancel(ctx), "ROLLBACK")
		return errors.Join(err, rerr)
	}
	if _, err := r.hold.Exec(ctx, "COMMIT"); err != nil {
		return fmt.Errorf("commit on the target: %w", err)
	}
	return nil
}

// startedAt is when the target's server was started, in Unix seconds.
func startedAt(ctx context.Context, c *mysqlconn.Control) (int64, error) {
	rows, err := c.QueryMaps(ctx, "SHOW GLOBAL STATUS LIKE 'Uptime'")
	if err == nil && len(rows) != 1 {
		err = fmt.Errorf("the server gives %d values", len(rows))
	}
	if err != nil {
		return 0, fmt.Errorf("read the target's uptime: %w", err)
	}
	var up, now int64
	if _, err := fmt.Sscan(rows[0]["Value"], &up); err != nil {
		return 0, fmt.Errorf("read the target's uptime: %w", err)
	}
	if err := c.QueryRow(ctx, []any{&now}, "SELECT UNIX_TIMESTAMP()"); err != nil {
		return 0, fmt.Errorf("read the target's clock: %w", err)
	}
	return now - up, nil
}

// letGo ends everything that the attempt holds and looks on both servers whether
// it is gone; what is left is ended.
func (r *run) letGo(ctx context.Context) {
	if r.hold != nil {
		r.hold.Close()
		r.hold = nil
	}
	limit := min(2*time.Second, r.opt.Config.StopTimeout/3)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit)
	defer cancel()
	g, _ := group.WithContext(ctx)
	g.Go("clean-up on the target", func() error {
		if err := r.sweep(ctx, r.target); err != nil {
			r.log.Warn("could not look for sessions left on the target", "error", err)
		}
		return nil
	})
	r.clean = "true"
	if err := r.sweep(ctx, r.source); err != nil {
		r.clean = "unknown"
		r.log.Warn("could not look for sessions left on the source", "error", err)
	}
	if err := g.Wait(); err != nil {
		r.log.Error("clean-up failed", "error", err)
	}
}

func (r *run) sweep(ctx context.Context, s *mysqlconn.Server) error {
	n, err := s.Sweep(ctx)
	if n > 0 {
		r.log.Debug("ended sessions that were left", "server", s.Config().Name, "sessions", n)
	}
	return err
}

// saveDoc keeps on the target what is known of the migration as a whole.
func (r *run) saveDoc(ctx context.Context, finished bool) error {
	return r.saveDocOver(ctx, r.hold, finished)
}

func (r *run) saveDocOver(ctx context.Context, c *mysqlconn.Control, finished bool) error {
	started, err := startedAt(ctx, c)
	if err != nil {
		return err
	}
	r.mu.Lock()
	d := progress.Doc{Phase: r.st.Phase, SelectionDigest: r.st.Selection.Digest, Source: r.st.Sources[0], RunID: r.runID,
		TargetStarted: started, SwitchedOn: slices.Clone(r.st.SwitchedOnTarget), SnapshotServer: r.snapshotServer, XAUnseen: r.xaUnseen}
	d.Source.Sessions = nil
	r.mu.Unlock()
	return r.prog.SaveDoc(ctx, c, d, finished)
}
