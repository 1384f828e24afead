package copydb

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/copydb/copydb/internal/check"
	"github.com/copydb/copydb/internal/group"
	"github.com/copydb/copydb/internal/hold"
	"github.com/copydb/copydb/internal/mysqlconn"
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
	if err := r.makeTables(ctx); err != nil {
		return err
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
	digests, raws := make([]string, len(start.Tables)), map[string]json.RawMessage{}
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
		raws[digests[i]] = raw
	}
	if err := r.prog.SaveStructures(ctx, r.hold, raws); err != nil {
		return err
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
	if err := r.prog.SaveTables(ctx, r.hold, docs...); err != nil {
		return err
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
	return r.make(ctx, r.hold, kindDatabase, table.Name{Database: d.Name}, create)
}

// make carries a statement out that makes an object, behind the entry of the
// journal that makes it ours whatever happens in between. One that is there
// already is not ours.
func (r *run) make(ctx context.Context, c *mysqlconn.Control, kind string, n table.Name, create string) error {
	o := state.Object{Type: kind, Database: state.Text(n.Database), Name: state.Text(n.Table)}
	e := progress.Entry{Kind: kind, Database: n.Database, Name: n.Table}
	r.change(func(st *state.State) {
		r.entries++
		e.Number = r.entries
		st.ObjectsCreated = append(st.ObjectsCreated, o)
	})
	if err := r.prog.Note(ctx, c, e); err != nil {
		return err
	}
	_, err := c.Exec(ctx, create)
	if mysqlconn.IsTableThere(err) {
		if err := r.prog.Unnote(ctx, c, e); err != nil {
			return err
		}
		r.change(func(st *state.State) {
			if i := slices.Index(st.ObjectsCreated, o); i >= 0 {
				st.ObjectsCreated = slices.Delete(st.ObjectsCreated, i, i+1)
			}
		})
		return r.appeared(n)
	}
	if err != nil {
		return fmt.Errorf("create %s %s on the target: %w", kind, n, err)
	}
	return hold.Point(ctx, kind+"_made:"+n.String())
}

func (r *run) appeared(n table.Name) error {
	return &Error{Code: ExitPreflight, Where: n.String(), Message: "the table has appeared on the target",
		Next: "drop it there, then resume: " + r.resumeCommand()}
}

// makeTables makes the tables without their foreign keys. What is there is looked
// up once: a look for each table would go through all of them each time.
func (r *run) makeTables(ctx context.Context) error {
	byDatabase := map[string][]table.Name{}
	for i := range r.st.Tables {
		n := nameOf(r.st.Tables[i].Database, r.st.Tables[i].Table)
		byDatabase[n.Database] = append(byDatabase[n.Database], n)
	}
	ours := r.ours()
	for database, names := range byDatabase {
		there, err := r.targetTables(ctx, database)
		if err != nil {
			return err
		}
		var missing []table.Name
		for _, n := range names {
			if !there[n] {
				missing = append(missing, n)
			} else if err := r.useTable(ctx, n, ours[n]); err != nil {
				return err
			}
		}
		if err := r.makeMissing(ctx, database, missing); err != nil {
			return err
		}
	}
	return r.prog.Confirm(ctx, r.hold)
}

const (
	// makers is over how many sessions many tables are made: each one mostly waits
	// for the target's disk.
	makers = 4
	// tablesOfMaker is how many tables are worth a session.
	tablesOfMaker = 50
)

// makeMissing makes tables of one database.
func (r *run) makeMissing(ctx context.Context, database string, names []table.Name) error {
	work := make(chan table.Name, len(names))
	for _, n := range names {
		work <- n
	}
	close(work)
	g, ctx := group.WithContext(ctx)
	for range min((len(names)+tablesOfMaker-1)/tablesOfMaker, makers) {
		g.Go("maker of tables", func() error {
			c, err := r.openDDL(ctx)
			if err != nil {
				return err
			}
			defer c.Close()
			if _, err := c.Exec(ctx, "USE "+table.Quote(database)); err != nil {
				return fmt.Errorf("use database %s on the target: %w", database, err)
			}
			for n := range work {
				if err := r.make(ctx, c, kindTable, n, r.tables[n].structure.Part(r.defersIndexes(n)).Create); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return g.Wait()
}

// targetTables lists what the target has in a database.
func (r *run) targetTables(ctx context.Context, database string) (map[table.Name]bool, error) {
	there := map[table.Name]bool{}
	err := r.hold.Query(ctx, func(rows *sql.Rows) error {
		var n table.Name
		err := rows.Scan(&n.Database, &n.Table)
		there[n] = true
		return err
	}, "SELECT TABLE_SCHEMA, TABLE_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA = ?", database)
	if err != nil {
		return nil, fmt.Errorf("list the tables of %s on the target: %w", database, err)
	}
	return there, nil
}

// useTable takes a table that is there as its copy needs it; ours is the kind
// under which the migration lists it. One that was taken over is emptied.
func (r *run) useTable(ctx context.Context, n table.Name, ours string) error {
	switch {
	case len(r.tables[n].segments) > 0 && ours != "":
		return nil // its rows are ours
	case ours == kindUsed:
		return r.emptyUsed(ctx, n, r.tables[n].structure)
	}
	return r.appeared(n) // one of ours would have been dropped before
}

// defersIndexes reports whether the table's indexes are made after its rows. One
// that foreign keys of the target point at already needs them at once.
func (r *run) defersIndexes(n table.Name) bool {
	return r.opt.Config.Schema.DeferIndexes && !r.facts.Referenced[n]
}

// ours returns the kind under which the migration lists each table.
func (r *run) ours() map[table.Name]string {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := map[table.Name]string{}
	for _, o := range r.st.ObjectsCreated {
		if o.Type == kindTable || o.Type == kindUsed {
			out[nameOf(o.Database, o.Name)] = o.Type
		}
	}
	return out
}
