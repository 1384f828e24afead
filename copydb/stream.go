package copydb

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/copydb/copydb/internal/group"
	"github.com/copydb/copydb/internal/mysqlconn"
	"github.com/copydb/copydb/internal/position"
	"github.com/copydb/copydb/internal/table"
	"github.com/copydb/copydb/state"
	"github.com/copydb/copydb/streamer"
)

// newStream makes the stream from the last resumable position.
func (c *catcher) newStream() (*streamer.Stream, error) {
	r := c.r
	conf := r.dumpConfig()
	conf.Start, conf.GTIDs, conf.Fingerprint = c.have, r.facts.Rung == position.RungGTID, c.fingerprint
	conf.Tables, conf.Selected, conf.Ignore = r.tableSpecs(), r.facts.Selection.Match, r.isLeftOut()
	conf.StatePath, conf.Spilled = r.store.Path(), c.spills
	conf.StopUnseenXA, conf.Pace = r.xaUnseen, r.throttle.pace()
	if at := r.sourceState().TableListAt; at != nil {
		conf.TableListAt = *at
	}
	s, err := streamer.New(conf)
	if err != nil {
		return nil, fmt.Errorf("set up the reader of the binary log: %w", err)
	}
	return s, nil
}

func (r *run) tableSpecs() map[table.Name]*streamer.TableSpec {
	out := map[table.Name]*streamer.TableSpec{}
	var all []*table.Table
	for n, tr := range r.tables {
		out[n] = &streamer.TableSpec{Structure: tr.structure, Start: r.st.Tables[tr.index].Start}
		all = append(all, tr.structure)
	}
	table.EachForeign(all, r.facts.FoldCase, func(_, parent *table.Table, fk *table.ForeignKey) {
		spec := out[parent.FullName()]
		spec.CascadesDelete = spec.CascadesDelete || table.Cascades(fk.OnDelete)
		if table.Cascades(fk.OnUpdate) {
			spec.CascadesUpdate = append(spec.CascadesUpdate, fk.ParentColumns...)
		}
	})
	return out
}

// isLeftOut tells objects that row events may name and that are no tables.
func (r *run) isLeftOut() func(table.Name) bool {
	names := map[table.Name]bool{}
	for _, o := range r.facts.LeftOut {
		if o.Type == "sequence" {
			names[table.Name{Database: o.Database, Table: o.Name}] = true
		}
	}
	return func(n table.Name) bool { return names[n] }
}

// judgeDDL says what a DDL in the log means: one between a table's start and its
// last chunk voids the copy; any other one stops the run, or is passed over
// where the configuration says so.
func (r *run) judgeDDL(tx *streamer.Transaction) error {
	d := tx.DDL
	where := tx.End.String()
	if v := r.voided(tx); v != nil {
		return v
	}
	if r.opt.Config.CatchUp.DDL == "ignore" {
		r.log.Warn("a DDL is passed over (catch_up.ddl: ignore)", "position", where, "statement", d.Query)
		return nil
	}
	what := "selected tables"
	if len(d.Tables) > 0 {
		what = d.Tables[0].String()
	}
	return &Error{Code: ExitResumable, Where: where,
		Message: fmt.Sprintf("a DDL on %s is next in the binary log, and catch_up.ddl is error: %s", what, d.Query),
		Next: "if it adds, drops or changes columns, begin again, since rows of another structure cannot be applied: " + r.overCommand() +
			"; else carry it out on the target by hand where it is wanted, then resume: " + r.resumeCommand() + " --set catch_up.ddl=ignore"}
}

// voided returns which tables' copies a DDL voids, as an error, or nil.
func (r *run) voided(tx *streamer.Transaction) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	v := &voidedError{query: tx.DDL.Query, at: tx.End}
	for _, n := range tx.DDL.Tables {
		tr := r.tables[n]
		if tr == nil {
			continue
		}
		if last := r.st.Tables[tr.index].LastChunk; last != nil && r.seenBySnapshot(*last, tx) {
			v.tables = append(v.tables, n)
		}
	}
	if len(v.tables) == 0 {
		return nil
	}
	return v
}

// seenBySnapshot reports whether a group was in the log by the time of a table's
// last chunk. After a failover the place of that chunk is of another log; then
// everything that any snapshot may have seen counts.
func (r *run) seenBySnapshot(last state.Position, tx *streamer.Transaction) bool {
	if r.snapshotServer == "" || r.snapshotServer == r.facts.Source.Identity.UUID {
		cmp, ok := position.Compare(last, tx.End)
		return ok && cmp >= 0
	}
	seen := r.st.Sources[0].SnapshotSeen
	if seen == nil {
		return false
	}
	set, err := position.Parse(r.facts.Source.Identity.Version.Flavor, seen.GTIDSet)
	return err == nil && set.ContainsGTID(tx.GTID)
}

// asStreamError gives what ended the stream its exit code.
func (r *run) asStreamError(err error) error {
	var stop *streamer.StopError
	switch {
	case errors.Is(err, streamer.ErrLogGone), errors.Is(err, streamer.ErrHistoryLost):
		return &Error{Code: ExitLogGone, Where: "source", Err: err, Next: "start over: " + r.overCommand()}
	case errors.Is(err, streamer.ErrSpillLost):
		return &Error{Code: ExitState, Where: r.opt.StatePath, Err: err,
			Next: "put it back as it was beside the state file and resume: " + r.resumeCommand() + "; or start over: " + r.overCommand()}
	case errors.Is(err, streamer.ErrServerIDTaken):
		return &Error{Code: ExitResumable, Where: "source", Err: err,
			Next: "give another source.server_id, or 0 for a random one, and resume: " + r.resumeCommand()}
	case errors.As(err, &stop):
		next := stop.Next
		if next == "" {
			next = "mend the cause, then resume: " + r.resumeCommand()
		}
		return &Error{Code: ExitResumable, Where: stop.Position.String(), Err: err, Next: next}
	}
	return err
}

// sourceEnd is where the source's log ends, and what its clock says.
type sourceEnd struct {
	at    state.Position
	now   time.Time
	sizes map[string]int64 // of the log files; nil where not asked
	order []string
}

// pollEnd asks for the source's end until ctx ends. It keeps the newest answer
// in c.ends.
func (c *catcher) pollEnd(ctx context.Context) (err error) {
	defer func() {
		if err != nil && ctx.Err() != nil {
			err = context.Cause(ctx) // not that of a question cut short
		}
	}()
	conn, err := c.r.source.OpenProved(ctx, c.r.facts.Source.Identity)
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := boundIdle(ctx, conn); err != nil {
		return err
	}
	for n := 0; ; n++ {
		end, err := c.r.askEnd(ctx, conn, n%10 == 0)
		if err != nil {
			return err
		}
		select {
		case <-c.ends: // an answer that nobody took
		default:
		}
		select {
		case c.ends <- end:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		if err := group.Pause(ctx, pollEvery); err != nil {
			return err
		}
	}
}

func (r *run) askEnd(ctx context.Context, conn *mysqlconn.Control, files bool) (sourceEnd, error) {
	var e sourceEnd
	rows, err := conn.QueryMaps(ctx, r.facts.Source.Identity.Version.BinlogStatusQuery())
	if err != nil {
		return e, fmt.Errorf("read the end of the source's binary log: %w", err)
	}
	if len(rows) == 0 {
		return e, errors.New("read the end of the source's binary log: it is off")
	}
	e.at.File = rows[0]["File"]
	if e.at.Pos, err = strconv.ParseUint(rows[0]["Position"], 10, 64); err != nil {
		return e, fmt.Errorf("read the end of the source's binary log: %w", err)
	}
	if r.facts.Rung == position.RungGTID {
		e.at.GTIDSet = position.OneLine(rows[0]["Executed_Gtid_Set"])
	}
	var now float64
	if err := conn.QueryRow(ctx, []any{&now}, "SELECT UNIX_TIMESTAMP(NOW(6))"); err != nil {
		return e, fmt.Errorf("read the source's clock: %w", err)
	}
	e.now = time.UnixMicro(int64(now * 1e6))
	if files {
		e.sizes = map[string]int64{}
		logs, err := conn.QueryMaps(ctx, "SHOW BINARY LOGS")
		if err != nil {
			return e, fmt.Errorf("list the source's binary logs: %w", err)
		}
		for _, l := range logs {
			size, _ := strconv.ParseInt(l["File_size"], 10, 64)
			e.sizes[l["Log_name"]] = size
			e.order = append(e.order, l["Log_name"])
		}
	}
	return e, nil
}

// distance is how many bytes of log lie between have and the end; -1 where that
// is not known.
func (end sourceEnd) distance(have state.Position) int64 {
	if have.File == end.at.File {
		return max(int64(end.at.Pos)-int64(have.Pos), 0)
	}
	if end.sizes == nil || have.File == "" {
		return -1
	}
	sum, inside := int64(0), false
	for _, f := range end.order {
		switch {
		case f == have.File:
			sum, inside = end.sizes[f]-int64(have.Pos), true
		case inside && f == end.at.File:
			return sum + int64(end.at.Pos)
		case inside:
			sum += end.sizes[f]
		}
	}
	return -1
}
