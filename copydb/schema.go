package copydb

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/copydb/copydb/internal/check"
	"github.com/copydb/copydb/internal/hold"
	"github.com/copydb/copydb/internal/position"
	"github.com/copydb/copydb/internal/progress"
	"github.com/copydb/copydb/internal/table"
	"github.com/copydb/copydb/state"
)

// The kinds of objects in the journal.
const (
	kindDatabase = "database"
	kindTable    = "table"
	kindUsed     = "used_table" // was there and was taken over
)

// makeSchema takes each table's start position and structure, and makes the
// databases and tables on the target. It does what is left of that.
func (r *run) makeSchema(ctx context.Context) error {
	if r.meter.enter(state.PhaseSchema) {
		r.report(PhaseRecord{Phase: state.PhaseSchema})
	}
	if err := r.noteTableList(ctx); err != nil {
		return err
	}
	if err := r.noteTaken(ctx); err != nil {
		return err
	}
	for _, d := range r.facts.Databases {
		if err := r.makeDatabase(ctx, d); err != nil {
			return err
		}
	}
	for database, names := range r.withoutStart() {
		for len(names) > 0 {
			n := min(len(names), r.dump.Batch())
			if err := r.takeStarts(ctx, database, names[:n]); err != nil {
				return err
			}
			names = names[n:]
		}
	}
	if err := r.sameComponents(); err != nil {
		return err
	}
	r.change(func(st *state.State) { r.setSnapshotStart(st) })
	if err := r.noteFingerprint(ctx); err != nil {
		return err
	}
	if err := r.saveDoc(ctx, false); err != nil {
		return err
	}
	if err := r.dropUnfinished(ctx); err != nil {
		return err
	}
	for i := range r.st.Tables {
		n := nameOf(r.st.Tables[i].Database, r.st.Tables[i].Table)
		if err := r.makeTable(ctx, n, r.tables[n].structure); err != nil {
			return err
		}
	}
	if err := hold.Point(ctx, "schema_made"); err != nil {
		return err
	}
	return r.enter(ctx, state.PhaseSnapshot)
}

// noteTableList keeps the place in the log that the list of tables is newer
// than: DDL up to there of tables that are not on the list changes nothing.
func (r *run) noteTableList(ctx context.Context) error {
	if r.st.Sources[0].TableListAt != nil {
		return nil
	}
	at := r.facts.End
	r.change(func(st *state.State) { st.Sources[0].TableListAt = &at })
	return r.saveDoc(ctx, false)
}

func (r *run) withoutStart() map[string][]string {
	out := map[string][]string{}
	for i := range r.st.Tables {
		t := &r.st.Tables[i]
		if t.Start.IsZero() || r.tables[nameOf(t.Database, t.Table)].structure == nil {
			out[string(t.Database)] = append(out[string(t.Database)], string(t.Table))
		}
	}
	return out
}

// takeStarts takes start positions and structures and keeps them: in the state
// file's companion, in the state file, on the target.
func (r *run) takeStarts(ctx context.Context, database string, names []string) error {
	start, err := r.dump.TakeStart(ctx, database, names)
	if err != nil {
		return r.asTableGone(err)
	}
	if start.XAUnseen && !r.xaUnseen {
		r.xaUnseen = true
		if err := r.saveDoc(ctx, false); err != nil { // before the position counts
			return err
		}
	}
	starts, err := r.startsOf(ctx, start)
	if err != nil {
		return err
	}
	digests := make([]string, len(start.Tables))
	for i, t := range start.Tables {
		if why := t.WhyNot(); why != "" {
			return &Error{Code: ExitFailed, Where: t.String(), Message: "the table has changed since the preflight: " + why,
				Next: "begin again: " + r.overCommand()}
		}
		t.Tie(r.facts.Components, r.facts.FoldCase)
		raw, err := json.Marshal(t)
		if err != nil {
			return fmt.Errorf("keep the structure of %s: %w", t, err)
		}
		if digests[i], err = r.store.PutStructure(raw); err != nil {
			return fmt.Errorf("keep the structure of %s: %w", t, err)
		}
		if err := r.prog.SaveStructure(ctx, r.hold, digests[i], raw); err != nil {
			return err
		}
	}
	docs := make([]state.Table, len(start.Tables))
	r.change(func(st *state.State) {
		for i, t := range start.Tables {
			tr := r.tables[t.FullName()]
			tr.structure = t
			s := &st.Tables[tr.index]
			s.Class, s.Component = classOf(t), t.Component
			s.Start = starts[t.FullName()]
			s.Structures = []state.StructureSince{{From: s.Start, Digest: digests[i]}}
			docs[i] = *s
		}
		r.setSnapshotStart(st)
	})
	if err := r.checkpoint(); err != nil {
		return err
	}
	for _, d := range docs {
		if err := r.prog.SaveTable(ctx, r.hold, d); err != nil {
			return err
		}
	}
	return hold.Point(ctx, "start_taken")
}

func classOf(t *table.Table) state.TableClass {
	if t.UsableKey() == nil {
		return state.ClassExact
	}
	return state.ClassConverging
}

// setSnapshotStart sets the earliest start of all tables, until the log is read
// from there. A table that starts over later leaves it as it is.
func (r *run) setSnapshotStart(st *state.State) {
	src := &st.Sources[0]
	if src.LastResumable != src.SnapshotStart {
		return
	}
	flavor := r.facts.Source.Identity.Version.Flavor
	for i := range st.Tables {
		p := st.Tables[i].Start
		if p.IsZero() || !src.SnapshotStart.IsZero() && !position.Reached(flavor, src.SnapshotStart, p) {
			continue
		}
		src.SnapshotStart, src.LastStreamed, src.LastResumable = p, p, p
	}
}

func (r *run) makeDatabase(ctx context.Context, d check.Database) error {
	var n int
	if err := r.hold.QueryRow(ctx, []any{&n}, "SELECT COUNT(*) FROM information_schema.SCHEMATA WHERE BINARY SCHEMA_NAME = ?", []byte(d.Name)); err != nil {
		return fmt.Errorf("look for database %s on the target: %w", d.Name, err)
	}
	if n > 0 {
		return nil
	}
	create := "CREATE DATABASE " + table.Quote(d.Name) + " CHARACTER SET " + d.Charset + " COLLATE " + d.Collation
	return r.make(ctx, kindDatabase, table.Name{Database: d.Name}, create)
}

// make carries a statement out that makes an object, between the two entries of
// the journal that make it ours whatever happens in between.
func (r *run) make(ctx context.Context, kind string, n table.Name, create string) error {
	e := progress.Entry{Number: r.entries + 1, Kind: kind, Database: n.Database, Name: n.Table}
	if err := r.prog.Note(ctx, r.hold, e); err != nil {
		return err
	}
	r.entries++
	r.change(func(st *state.State) {
		st.ObjectsCreated = append(st.ObjectsCreated, state.Object{Type: kind, Database: state.Text(n.Database), Name: state.Text(n.Table)})
	})
	if kind == kindTable {
		if _, err := r.hold.Exec(ctx, "USE "+table.Quote(n.Database)); err != nil {
			return fmt.Errorf("use database %s on the target: %w", n.Database, err)
		}
	}
	if _, err := r.hold.Exec(ctx, create); err != nil {
		return fmt.Errorf("create %s %s on the target: %w", kind, n, err)
	}
	if err := hold.Point(ctx, kind+"_made:"+n.String()); err != nil {
		return err
	}
	e.Done = true
	return r.prog.Note(ctx, r.hold, e)
}

// makeTable makes a table without its foreign keys. One that was taken over is
// emptied.
func (r *run) makeTable(ctx context.Context, n table.Name, t *table.Table) error {
	var there int
	err := r.hold.QueryRow(ctx, []any{&there}, "SELECT COUNT(*) FROM information_schema.TABLES WHERE BINARY TABLE_SCHEMA = ? AND BINARY TABLE_NAME = ?",
		[]byte(n.Database), []byte(n.Table))
	if err != nil {
		return fmt.Errorf("look for table %s on the target: %w", n, err)
	}
	if there == 0 {
		return r.make(ctx, kindTable, n, t.Part(r.defersIndexes(n)).Create)
	}
	switch kind := r.ours(n); {
	case kind == "":
		return &Error{Code: ExitPreflight, Where: n.String(), Message: "the table has appeared on the target",
			Next: "drop it there, then resume: " + r.resumeCommand()}
	case len(r.tables[n].segments) > 0:
		return nil // its rows are ours
	case kind == kindUsed:
		return r.emptyUsed(ctx, n, t)
	}
	return r.make(ctx, kindTable, n, t.Part(r.defersIndexes(n)).Create) // dropped before, and there again
}

// defersIndexes reports whether the table's indexes are made after its rows. One
// that foreign keys of the target point at already needs them at once.
func (r *run) defersIndexes(n table.Name) bool {
	return r.opt.Config.Schema.DeferIndexes && !r.facts.Referenced[n]
}

// ours returns the kind under which the migration lists the table, or "".
func (r *run) ours(n table.Name) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, o := range slices.Backward(r.st.ObjectsCreated) {
		if (o.Type == kindTable || o.Type == kindUsed) && nameOf(o.Database, o.Name) == n {
			return o.Type
		}
	}
	return ""
}
