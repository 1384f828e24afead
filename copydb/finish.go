package copydb

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/copydb/copydb/internal/mysqlconn"
	"github.com/copydb/copydb/internal/table"
	"github.com/copydb/copydb/state"
)

// finish is the last act: the run is done at the stop point.
func (r *run) finish(ctx context.Context) error {
	if err := r.enter(ctx, state.PhaseFinish); err != nil {
		return err
	}
	if err := r.carryCounters(ctx); err != nil {
		return err
	}
	if err := r.compareStructures(ctx); err != nil {
		return err
	}
	r.mu.Lock()
	stop, spills := r.st.Sources[0].StopPoint, len(r.st.SpillFiles)
	r.mu.Unlock()
	r.since = r.writtenSince(ctx, stop)
	r.leftBehind = []string{"database _copydb, by which this state can be resumed; `copydb cleanup` removes it"}
	if spills > 0 {
		r.leftBehind = append(r.leftBehind, fmt.Sprintf("%d files beside the state with XA transactions that the source holds prepared; a resume after their XA COMMIT applies them", spills))
	}
	return r.enter(ctx, state.PhaseDone)
}

// carryCounters raises the target's AUTO_INCREMENT counters to the source's
// where they are lower: values that the source gave out to rows that are gone,
// or never came, must not be given out again.
func (r *run) carryCounters(ctx context.Context) error {
	src, err := r.source.OpenProved(ctx, r.facts.Source.Identity)
	if err != nil {
		return err
	}
	defer src.Close()
	for _, t := range r.structures(state.TableIndexed) {
		if !t.AutoIncrement() {
			continue
		}
		want, err := counter(ctx, src, t)
		if err != nil {
			return err
		}
		if err := raiseCounter(ctx, r.hold, t, want); err != nil {
			return err
		}
	}
	return nil
}

// counter reads the next AUTO_INCREMENT value from SHOW CREATE TABLE, which is
// not cached as information_schema is; 0 where none is shown.
func counter(ctx context.Context, c *mysqlconn.Control, t *table.Table) (uint64, error) {
	var name string
	var text sql.RawBytes
	var n uint64
	err := c.Query(ctx, func(rows *sql.Rows) error {
		if err := rows.Scan(&name, &text); err != nil {
			return err
		}
		n = table.Counter(string(text))
		return nil
	}, "SHOW CREATE TABLE "+t.Quoted())
	if mysqlconn.IsTableGone(err) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("read the AUTO_INCREMENT counter of %s: %w", t, err)
	}
	return n, nil
}

func raiseCounter(ctx context.Context, c *mysqlconn.Control, t *table.Table, want uint64) error {
	have, err := counter(ctx, c, t)
	if err != nil || have >= want {
		return err
	}
	if _, err := c.Exec(ctx, fmt.Sprintf("ALTER TABLE %s AUTO_INCREMENT = %d", t.Quoted(), want)); err != nil {
		return fmt.Errorf("raise the AUTO_INCREMENT counter of %s on the target: %w", t, err)
	}
	return nil
}

// compareStructures warns of each table whose structure on the target is not
// what it was on the source when it was copied. It reads both texts over the
// same kind of session: what SHOW CREATE TABLE prints depends on its character
// set.
func (r *run) compareStructures(ctx context.Context) error {
	s, err := r.write.OpenSession(ctx)
	if err != nil {
		return err
	}
	defer s.Close()
	ours := r.ours()
	for _, t := range r.structures(state.TableIndexed) {
		same, err := r.sameStructure(ctx, s, t, ours[t.FullName()])
		if err != nil && !mysqlconn.IsTableGone(err) {
			return err
		}
		if err != nil || !same {
			r.warn("table %s has another structure on the target than it had on the source when it was copied", t)
		}
	}
	return nil
}

// writtenSince counts the transactions that the source has committed since the
// stop point; -1 where it cannot be told.
func (r *run) writtenSince(ctx context.Context, stop *state.Position) int64 {
	if stop == nil || stop.GTIDSet == "" {
		return -1
	}
	c, err := r.source.OpenProved(ctx, r.facts.Source.Identity)
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

// sameStructure compares a table of the target with what it was made from. One
// that was taken over may differ in what the preflight has warned of.
func (r *run) sameStructure(ctx context.Context, s *mysqlconn.Session, t *table.Table, kind string) (bool, error) {
	if kind != kindUsed {
		text, err := table.ShowCreate(ctx, s, t.FullName())
		return table.SameCreate(text, string(t.Create)), err
	}
	have, err := table.Load(ctx, s, r.facts.Target.Identity.Version.Flavor, t.Database, []string{t.Table})
	if err != nil {
		return false, err
	}
	return len(table.Major(table.Compare(t, have[0]))) == 0, nil
}
