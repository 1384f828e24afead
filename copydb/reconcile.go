package copydb

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/copydb/copydb/internal/progress"
	"github.com/copydb/copydb/internal/table"
	"github.com/copydb/copydb/state"
)

// reconcile takes over what the target knows. It is right where the state file
// differs: the target may have lost commits, or the file may be an older copy.
func (r *run) reconcile(rec *progress.Record) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	st := r.st
	if rec.Doc.Phase == "" {
		rec.Doc.Phase = state.PhaseSchema
	}
	if rec.Doc.Phase != st.Phase && !r.written {
		r.log.Warn("the target is at another point than the state file; going on from what the target holds",
			"state_phase", st.Phase, "target_phase", rec.Doc.Phase)
	}
	st.Phase = rec.Doc.Phase
	r.takePositions(rec)
	r.entries = 0
	for _, e := range rec.Journal {
		r.entries = max(r.entries, e.Number)
	}
	st.ObjectsCreated = objectsOf(rec.Journal)
	if listsRedo(rec.Doc.SwitchedOn) && !listsRedo(st.SwitchedOnTarget) {
		st.SwitchedOnTarget = append(st.SwitchedOnTarget, rec.Doc.SwitchedOn...)
	}
	return r.takeTables(rec)
}

func (r *run) takePositions(rec *progress.Record) {
	src, doc := &r.st.Sources[0], rec.Doc.Source
	src.SnapshotStart, src.TableListAt = doc.SnapshotStart, doc.TableListAt
	src.ConsistentAt, src.SnapshotSeen, src.StopPoint = doc.ConsistentAt, doc.SnapshotSeen, doc.StopPoint
	src.LogFingerprint = fingerprintOf(rec)
	r.st.SpillFiles = append([]string{}, rec.SpillFiles...)
	r.highWater, r.marker = rec.HighWater, rec.Marker
	r.snapshotServer = rec.Doc.SnapshotServer
	r.xaUnseen = rec.Doc.XAUnseen
	was := src.LastResumable
	src.LastResumable, src.LastStreamed = rec.LowWater, rec.Streamed
	if src.LastResumable.IsZero() {
		src.LastResumable, src.LastStreamed = src.SnapshotStart, src.SnapshotStart
	}
	if !was.IsZero() && was != src.LastResumable {
		r.log.Warn("the target's position is not the state file's; going on from the target's",
			"state", was.String(), "target", src.LastResumable.String())
	}
}

// takeTables joins the tables of the state file with those that the target
// knows, and derives each one's status from the ranges that are there.
func (r *run) takeTables(rec *progress.Record) error {
	st := r.st
	known := map[table.Name]state.Table{}
	for _, t := range rec.Tables {
		known[nameOf(t.Database, t.Table)] = t
	}
	for i := range st.Tables {
		n := nameOf(st.Tables[i].Database, st.Tables[i].Table)
		if t, ok := known[n]; ok {
			st.Tables[i] = t
			delete(known, n)
			continue
		}
		st.Tables[i] = state.Table{Database: st.Tables[i].Database, Table: st.Tables[i].Table,
			Status: state.TablePending, Class: st.Tables[i].Class}
	}
	for _, t := range known {
		st.Tables = append(st.Tables, t)
	}
	slices.SortFunc(st.Tables, func(a, b state.Table) int {
		return nameOf(a.Database, a.Table).Compare(nameOf(b.Database, b.Table))
	})
	r.tables = map[table.Name]*tableRun{}
	for i := range st.Tables {
		t := &st.Tables[i]
		n := nameOf(t.Database, t.Table)
		tr := &tableRun{index: i, segments: map[int]progress.Range{}}
		if !t.Start.IsZero() {
			for _, g := range rec.Ranges[n] {
				tr.segments[g.Number] = g
			}
		}
		r.tables[n] = tr
		r.note(t, tr)
		if err := r.takeStructure(t, tr, rec); err != nil {
			return err
		}
	}
	r.stepBack()
	return nil
}

// note writes into a table's state what its segments say.
func (r *run) note(t *state.Table, tr *tableRun) {
	t.Rows, t.Bytes, t.Done = 0, 0, nil
	for _, s := range tr.segments {
		t.Rows += s.Rows
		t.Bytes += s.Bytes
		switch {
		case s.Done:
			t.Done = append(t.Done, state.Range{After: s.After, To: s.Until})
		case len(s.To) > 0:
			t.Done = append(t.Done, state.Range{After: s.After, To: s.To})
		}
	}
	t.Done = state.MergeRanges(t.Done)
	switch {
	case len(tr.segments) == 0:
		if t.Status != state.TableRestart {
			t.Status = state.TablePending
		}
	case !tr.done():
		t.Status = state.TableCopying
	case t.Status != state.TableIndexed:
		t.Status = state.TableCopied
	}
}

func (r *run) takeStructure(t *state.Table, tr *tableRun, rec *progress.Record) error {
	if len(t.Structures) == 0 {
		return nil
	}
	digest := t.Structures[len(t.Structures)-1].Digest
	raw, ok := rec.Structures[digest]
	if !ok {
		var err error
		if raw, err = r.store.Structure(digest); err != nil {
			return &Error{Code: ExitState, Where: nameOf(t.Database, t.Table).String(), Message: "its structure is not known any more",
				Next: "begin again: " + r.overCommand(), Err: err}
		}
	}
	tr.structure = new(table.Table)
	if err := json.Unmarshal(raw, tr.structure); err != nil {
		return fmt.Errorf("parse the structure of %s.%s: %w", t.Database, t.Table, err)
	}
	// The state file names the digest, so its companion must have it too.
	_, err := r.store.PutStructure(raw)
	return err
}

// stepBack goes back to the phase that the least finished table needs.
func (r *run) stepBack() {
	for i := range r.st.Tables {
		t := &r.st.Tables[i]
		switch {
		case t.Start.IsZero() || len(t.Structures) == 0:
			r.st.Phase = state.PhaseSchema
		case t.Status != state.TableCopied && t.Status != state.TableIndexed && r.st.Phase != state.PhaseSchema:
			r.st.Phase = state.PhaseSnapshot
		}
	}
}
