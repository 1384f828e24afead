package copydb

import (
	"context"
	"errors"
	"slices"

	"github.com/copydb/copydb/internal/applier"
	"github.com/copydb/copydb/internal/check"
	"github.com/copydb/copydb/internal/mysqlconn"
	"github.com/copydb/copydb/internal/pattern"
	"github.com/copydb/copydb/internal/progress"
	"github.com/copydb/copydb/internal/table"
	"github.com/copydb/copydb/state"
)

// preflight asks both servers everything that a copy needs, reports every
// finding and keeps the facts.
func (r *run) preflight(ctx context.Context, over *overtaken) (*check.Input, []check.Finding, error) {
	c := r.opt.Config
	in := &check.Input{
		Source: r.source, Target: r.target,
		Select: func(fold bool) (check.Selection, error) {
			return pattern.Compile(c.Tables.Include, c.Tables.Exclude, fold)
		},
		Literal:    literal(c.Tables.Include),
		AllowLocks: c.Source.AllowLocks, SQLLogBin: c.Target.SQLLogBin, ServerID: c.Source.ServerID,
		LoadMethod: c.Snapshot.LoadMethod, Threads: c.Snapshot.Threads, ExistingTables: c.Existing,
		FastLoad: c.Target.FastLoad, RedoOff: r.redoListed(), MaxReplicaLag: c.Throttle.TargetReplicaMaxLag,
		UntilGTID: c.CatchUp.Until.GTID, UntilFile: c.CatchUp.Until.File, UntilPos: c.CatchUp.Until.Pos,
	}
	if r.adopted {
		in.Resume = r.resumeInput()
		if rec := r.recorded(ctx); rec != nil {
			in.Resume.Created = append(slices.Clone(in.Resume.Created), objectsOf(rec.Journal)...)
			in.RedoOff = in.RedoOff || listsRedo(rec.Doc.SwitchedOn)
		}
	}
	if over != nil {
		in.Replaced, in.RedoOff = over.created, over.redoOff
	}
	closeReplicas, err := r.replicasOf(in)
	if err != nil {
		return in, nil, err
	}
	defer closeReplicas()
	findings, err := check.Run(ctx, in)
	r.facts = in.Facts
	if err != nil {
		return in, nil, r.asCheckError(err)
	}
	if countErrors(findings) == 0 {
		more, err := r.checkFirstPass(ctx)
		if err != nil {
			return in, nil, err
		}
		findings = append(findings, more...)
	}
	for _, f := range findings {
		if next := r.afterLoss("target"); f.ID == "target_connect" && next != "" {
			f.Fix += "; " + next
		}
		r.report(FindingRecord{f})
	}
	return in, findings, nil
}

func (r *run) resumeInput() *check.Resume {
	in := &check.Resume{Source: r.st.Sources[0], Created: r.st.ObjectsCreated}
	if seen := r.st.Sources[0].SnapshotSeen; seen != nil && seen.GTIDSet != "" {
		in.MustContain = append(in.MustContain, seen.GTIDSet)
	}
	if r.highWater.GTIDSet != "" {
		in.MustContain = append(in.MustContain, r.highWater.GTIDSet)
	}
	return in
}

// canGoOn is checkSource for the positions that the target knows.
func (r *run) canGoOn(ctx context.Context, rec *progress.Record) error {
	in, doc := r.resumeInput(), rec.Doc.Source
	src := &in.Source
	src.SnapshotStart, src.SnapshotSeen, src.LogFingerprint = doc.SnapshotStart, doc.SnapshotSeen, fingerprintOf(rec)
	src.LastResumable, src.LastStreamed = rec.LowWater, rec.Streamed
	if src.LastResumable.IsZero() {
		src.LastResumable, src.LastStreamed = src.SnapshotStart, src.SnapshotStart
	}
	if src.LastResumable.IsZero() {
		return nil
	}
	id, err := check.Resumable(ctx, r.source, in)
	if err != nil || id.UUID != src.ServerUUID {
		return r.asCheckError(err)
	}
	return r.sameLog(ctx, src)
}

// recorded returns what the target knows of this migration, nil where it cannot
// be asked: a run that was killed may have made more there than its state file
// says. What keeps the target from saying it is the preflight's to tell.
func (r *run) recorded(ctx context.Context) *progress.Record {
	c, err := r.target.Open(ctx)
	if err != nil {
		return nil
	}
	defer c.Close()
	if ok, err := progress.Exists(ctx, c); err != nil || !ok {
		return nil
	}
	rec, err := progress.Load(ctx, c, r.st.MigrationID)
	if err != nil {
		return nil
	}
	return rec
}

// replicasOf lists the replicas of the target for the preflight, and returns what
// closes them.
func (r *run) replicasOf(in *check.Input) (func(), error) {
	all, err := r.opt.Config.Replicas()
	if err != nil {
		return nil, &Error{Code: ExitUsage, Err: err}
	}
	for _, c := range all {
		s, err := newServer("replica", c, "")
		if err != nil {
			return nil, err
		}
		in.Replicas = append(in.Replicas, s)
	}
	return func() {
		for _, s := range in.Replicas {
			s.Close()
		}
	}, nil
}

// literal lists the names that the patterns give in full.
func literal(include []string) []table.Name {
	var out []table.Name
	for _, p := range include {
		if db, name, ok := pattern.Literal(p); ok {
			out = append(out, table.Name{Database: db, Table: name})
		}
	}
	return out
}

// asCheckError gives the errors of a source that cannot be gone on from their
// exit codes.
func (r *run) asCheckError(err error) error {
	var gone *check.LogGoneError
	var lost *check.HistoryLostError
	var other *mysqlconn.OtherServerError
	switch {
	case errors.As(err, &gone), errors.As(err, &lost):
		return &Error{Code: ExitLogGone, Err: err, Next: "start over: " + r.overCommand()}
	case errors.As(err, &other):
		return &Error{Code: ExitState, Err: err, Next: "point the configuration at the server that the state was made from, or start over: " + r.overCommand()}
	}
	return err
}

func countErrors(findings []check.Finding) int {
	n := 0
	for _, f := range findings {
		if f.Severity == check.SeverityError {
			n++
		}
	}
	return n
}

// plan says what the run will do.
func (r *run) plan(in *check.Input) PlanRecord {
	f := in.Facts
	p := PlanRecord{Tables: []PlanTable{}, Order: []string{}, LeftOut: r.leftOut(), LoadMethod: f.LoadMethod, LoadWhy: f.LoadReason,
		Position: string(f.Rung), Threads: r.opt.Config.Snapshot.Threads}
	for _, t := range f.Tables {
		pt := PlanTable{Database: t.Database, Table: t.Table, Class: state.ClassConverging, Key: []string{}, Rows: t.Rows, Bytes: t.Bytes,
			LoadMethod: string(r.loadMethod(t.FullName()))}
		if k := t.UsableKey(); k != nil {
			pt.Key = k.KeyNames()
		} else {
			pt.Class = state.ClassExact
		}
		p.Tables = append(p.Tables, pt)
	}
	for _, t := range bySize(f.Tables) {
		p.Order = append(p.Order, t.String())
	}
	return p
}

// loadMethod returns how the table's rows are written.
func (r *run) loadMethod(n table.Name) applier.Method {
	if r.facts.Inserted[n] {
		return applier.Inserts
	}
	return applier.Method(r.facts.LoadMethod)
}

func (r *run) leftOut() []string {
	out := []string{}
	for _, o := range r.facts.LeftOut {
		out = append(out, o.Type+" "+table.Name{Database: o.Database, Table: o.Name}.String())
	}
	return out
}
