package copydb

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/copydb/copydb/internal/mysqlconn"
	"github.com/copydb/copydb/internal/table"
	"github.com/copydb/copydb/state"
)

func (r *run) allIndexed() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range r.st.Tables {
		if r.st.Tables[i].Status != state.TableIndexed {
			return false
		}
	}
	return true
}

// addForeignKeys makes the foreign keys that the target lacks. The caller has
// applied everything that the snapshots may have seen, and nothing is under way.
// They are not validated: foreign_key_checks is off, as for the rows.
func (r *run) addForeignKeys(ctx context.Context) error {
	r.mu.Lock()
	tables := map[table.Name]*tableRun{}
	for n, tr := range r.tables {
		if r.st.Tables[tr.index].Status == state.TableCopied {
			tables[n] = tr
		}
	}
	r.mu.Unlock()
	for n, tr := range tables {
		if err := r.addForeignKeysOf(ctx, n, tr.structure); err != nil {
			return err
		}
		if err := r.saveTable(ctx, n, func(t *state.Table) { t.Status = state.TableIndexed }); err != nil {
			return err
		}
	}
	return r.checkpoint()
}

func (r *run) addForeignKeysOf(ctx context.Context, n table.Name, t *table.Table) error {
	_, add := table.ParseCreate(string(t.Create)).WithoutForeignKeys()
	if len(add) == 0 {
		return nil
	}
	s, err := r.write.OpenSession(ctx)
	if err != nil {
		return err
	}
	defer s.Close()
	found, err := table.Load(ctx, s, r.facts.Target.Identity.Version.Flavor, n.Database, []string{n.Table})
	if err != nil {
		return fmt.Errorf("read the target's structure of %s: %w", n, err)
	}
	_, there := table.ParseCreate(string(found[0].Create)).WithoutForeignKeys()
	add = slices.DeleteFunc(add, func(c string) bool { return slices.Contains(there, c) })
	if len(add) == 0 {
		return nil
	}
	r.holdMu.Lock()
	defer r.holdMu.Unlock()
	if _, err := r.hold.Exec(ctx, "USE "+table.Quote(n.Database)); err != nil {
		return fmt.Errorf("use database %s on the target: %w", n.Database, err)
	}
	if _, err := r.hold.Exec(ctx, "ALTER TABLE "+n.Quoted()+" "+strings.Join(add, ", ")); err != nil && mysqlconn.ErrorNumber(err) != 1826 {
		return fmt.Errorf("add foreign keys to %s on the target: %w", n, err)
	}
	return nil
}

// finish is the last act: the run is done at the stop point.
func (r *run) finish(ctx context.Context) error {
	if err := r.enter(ctx, state.PhaseFinish); err != nil {
		return err
	}
	r.mu.Lock()
	stop := r.st.Sources[0].StopPoint
	r.mu.Unlock()
	r.since = r.writtenSince(ctx, stop)
	r.leftBehind = []string{"database _copydb, by which this state can be resumed; `copydb cleanup` removes it"}
	return r.enter(ctx, state.PhaseDone)
}

// writtenSince counts the transactions that the source has committed since the
// stop point; -1 where it cannot be told.
func (r *run) writtenSince(ctx context.Context, stop *state.Position) int64 {
	if stop == nil || stop.GTIDSet == "" {
		return -1
	}
	c, err := r.source.Open(ctx)
	if err != nil {
		return -1
	}
	defer c.Close()
	var rest string
	if err := c.QueryRow(ctx, []any{&rest}, "SELECT GTID_SUBTRACT(@@global.gtid_executed, ?)", stop.GTIDSet); err != nil {
		return -1
	}
	return countGTIDs(rest)
}
