package copydb

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/copydb/copydb/dumper"
	"github.com/copydb/copydb/internal/mysqlconn"
	"github.com/copydb/copydb/internal/position"
	"github.com/copydb/copydb/internal/progress"
	"github.com/copydb/copydb/internal/table"
	"github.com/copydb/copydb/state"
)

// bySize orders tables for copying: the largest first, so that none of them is
// left alone at the end.
func bySize(tables []*table.Table) []*table.Table {
	out := slices.Clone(tables)
	slices.SortStableFunc(out, func(a, b *table.Table) int { return cmp.Compare(b.Bytes, a.Bytes) })
	return out
}

func asType[T error](err error) (T, bool) {
	var e T
	ok := errors.As(err, &e)
	return e, ok
}

// copyTables copies what is left of all tables and notes from where on the
// target will be an image of the source.
func (r *run) copyTables(ctx context.Context) error {
	if err := r.enter(ctx, state.PhaseSnapshot); err != nil {
		return err
	}
	if err := r.redoOff(ctx); err != nil {
		return err
	}
	writes, cancel := r.outlive(ctx)
	defer cancel()
	c := newCopier(writes, r)
	r.mu.Lock()
	r.copying = c
	r.mu.Unlock()
	if err := c.run(ctx); err != nil {
		return err
	}
	if err := r.noteConsistent(ctx); err != nil {
		return err
	}
	return r.enter(ctx, state.PhaseIndexes)
}

// uncopied returns the tables that are not copied, the largest first, with the
// source's present estimates of their sizes.
func (r *run) uncopied() []*table.Table {
	estimates := map[table.Name]*table.Table{}
	for _, t := range r.facts.Tables {
		estimates[t.FullName()] = t
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []*table.Table
	for n, tr := range r.tables {
		t := &r.st.Tables[tr.index]
		if t.Status == state.TableCopied || t.Status == state.TableIndexed {
			continue
		}
		if e := estimates[n]; e != nil {
			tr.structure.Rows, tr.structure.Bytes = e.Rows, e.Bytes
		}
		out = append(out, tr.structure)
	}
	return bySize(out)
}

// outlive returns a context for writes to the target: it ends a while after ctx,
// so that what is under way when the run is stopped can commit.
func (r *run) outlive(ctx context.Context) (context.Context, context.CancelFunc) {
	return outliveFor(ctx, r.opt.Config.StopTimeout/3)
}

func outliveFor(ctx context.Context, wait time.Duration) (context.Context, context.CancelFunc) {
	out, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		wait := wait
		if Stopped(ctx) == nil {
			wait = 0
		}
		t := time.AfterFunc(wait, func() { cancel(context.Cause(ctx)) })
		context.AfterFunc(out, func() { t.Stop() })
	})
	return out, func() { stop(); cancel(context.Canceled) }
}

// saveTables changes the state of tables and keeps them on the target.
func (r *run) saveTables(ctx context.Context, names []table.Name, fn func(*state.Table)) error {
	r.tableMu.Lock()
	defer r.tableMu.Unlock()
	return r.prog.SaveTables(ctx, r.hold, r.changeTables(names, fn)...)
}

// changeTables changes the state of tables, which the caller then keeps on the
// target.
func (r *run) changeTables(names []table.Name, fn func(*state.Table)) []state.Table {
	var docs []state.Table
	r.change(func(st *state.State) {
		for _, n := range names {
			t := &st.Tables[r.tables[n].index]
			fn(t)
			docs = append(docs, *t)
		}
	})
	return docs
}

func (r *run) tableRecord(n table.Name) TableRecord {
	r.mu.Lock()
	defer r.mu.Unlock()
	tr := r.tables[n]
	t := r.st.Tables[tr.index]
	return TableRecord{Database: n.Database, Table: n.Table, Rows: t.Rows, Bytes: t.Bytes, Seconds: tr.took.Seconds(), Status: t.Status}
}

// noteConsistent reads the end of the log after the last snapshot was opened:
// once everything up to there is applied, the target is an image of the source.
// A table whose last chunk was committed by a run that died before it could note
// where takes this place for it.
func (r *run) noteConsistent(ctx context.Context) error {
	s, err := r.source.OpenProvedSession(ctx, r.facts.Source.Identity)
	if err != nil {
		return err
	}
	defer s.Close()
	at, err := dumper.Status(ctx, s, r.facts.Source.Identity.Version)
	if err != nil {
		return err
	}
	var seen *state.Position
	if r.facts.Rung == position.RungGTID {
		row, err := s.QueryRow(ctx, "SELECT CONCAT_WS(',', NULLIF(@@global.gtid_executed, ''), NULLIF(@@global.gtid_owned, ''))")
		if err != nil {
			return fmt.Errorf("read what the snapshots may have seen: %w", err)
		}
		seen = &state.Position{GTIDSet: ownedAsSet(string(row[0]))}
	}
	var missing []table.Name
	r.snapshotServer = r.facts.Source.Identity.UUID
	r.change(func(st *state.State) {
		st.Sources[0].ConsistentAt, st.Sources[0].SnapshotSeen = &at, seen
		for i := range st.Tables {
			if st.Tables[i].LastChunk == nil {
				missing = append(missing, nameOf(st.Tables[i].Database, st.Tables[i].Table))
			}
		}
	})
	return r.saveTables(ctx, missing, func(t *state.Table) { t.LastChunk = &at })
}

// retriable reports whether trying again later may mend err without anybody's
// help.
func retriable(err error) bool {
	if e, ok := asType[*Error](err); ok && e.Code != 0 {
		return false
	}
	if _, ok := asType[*mysqlconn.OtherServerError](err); ok {
		return true // the next attempt judges whether the server it reaches will do
	}
	return errors.Is(err, progress.ErrForgotten) || mysqlconn.IsConnectionLost(err) || mysqlconn.IsReadOnly(err) || mysqlconn.IsLockConflict(err)
}
