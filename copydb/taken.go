package copydb

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/copydb/copydb/internal/check"
	"github.com/copydb/copydb/internal/progress"
	"github.com/copydb/copydb/internal/table"
	"github.com/copydb/copydb/state"
)

// noteTaken notes in the journal, before anything is touched, every table that
// the target has and this migration takes over: all of them or none, so that a
// run that goes on knows what it may empty. A table to be made anew is noted as
// one that we make.
func (r *run) noteTaken(ctx context.Context) error {
	if r.entries > 0 || len(r.facts.Taken) == 0 {
		return nil
	}
	var entries []progress.Entry
	for _, n := range slices.SortedFunc(maps.Keys(r.facts.Taken), table.Name.Compare) {
		e := progress.Entry{Number: len(entries) + 1, Kind: kindUsed, Database: n.Database, Name: n.Table}
		if r.facts.Taken[n] == check.RuleRecreate {
			e.Kind = kindTable
		}
		entries = append(entries, e)
	}
	err := r.atomically(ctx, func() error {
		for _, e := range entries {
			if err := r.prog.Note(ctx, r.hold, e); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("note the tables that are taken over: %w", err)
	}
	r.entries = len(entries)
	r.change(func(st *state.State) { st.ObjectsCreated = append(st.ObjectsCreated, objectsOf(entries)...) })
	return nil
}

// dropUnfinished drops the tables that we made, or are to make anew, and that
// have no finished rows: all before any is made, since a table that foreign keys
// point at is not made under an old one that has them.
func (r *run) dropUnfinished(ctx context.Context) error {
	ours := r.ours()
	for i := range r.st.Tables {
		n := nameOf(r.st.Tables[i].Database, r.st.Tables[i].Table)
		if len(r.tables[n].segments) > 0 || ours[n] != kindTable {
			continue
		}
		if _, err := r.hold.Exec(ctx, "DROP TABLE IF EXISTS "+n.Quoted()); err != nil {
			return fmt.Errorf("drop the table %s on the target: %w", n, err)
		}
	}
	return nil
}

// emptyUsed empties a table that was taken over, if it has the structure that
// its rows come with. Foreign keys that point at it do not hinder: their checks
// are off. The rule that asks for an empty table does not let rows go that have
// come since the preflight, unless they may be ours.
func (r *run) emptyUsed(ctx context.Context, n table.Name, want *table.Table) error {
	s, err := r.write.OpenSession(ctx)
	if err != nil {
		return err
	}
	defer s.Close()
	have, err := table.Load(ctx, s, r.facts.Target.Identity.Version.Flavor, n.Database, []string{n.Table})
	if err != nil {
		return fmt.Errorf("read the target's structure: %w", err)
	}
	all := table.Compare(want, have[0])
	if major := table.Major(all); len(major) > 0 {
		next := "make it as the source's"
		if alter := table.AlterStatement(n, all); alter != "" {
			next = "run this there: " + alter
		}
		return &Error{Code: ExitResumable, Where: n.String(), Message: "the table on the target, which was taken over, is not as the source's: " + whatOf(major),
			Next: next + "; then resume: " + r.resumeCommand()}
	}
	if r.facts.Taken[n] == check.RuleUseEmpty && !r.copiedAgain(n) {
		row, err := s.QueryRow(ctx, "SELECT 1 FROM "+n.Quoted()+" LIMIT 1")
		if err != nil {
			return fmt.Errorf("look whether table %s of the target is empty: %w", n, err)
		}
		if row == nil {
			return nil
		}
		return &Error{Code: ExitResumable, Where: n.String(), Message: "the table on the target has got rows since the preflight, and existing_tables is use_empty",
			Next: "empty it there, then resume: " + r.resumeCommand()}
	}
	if _, err := r.hold.Exec(ctx, "TRUNCATE TABLE "+n.Quoted()); err != nil {
		return fmt.Errorf("empty table %s on the target: %w", n, err)
	}
	return nil
}

// copiedAgain reports whether the table's copy begins again.
func (r *run) copiedAgain(n table.Name) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.st.Tables[r.tables[n].index].Status == state.TableRestart
}

func whatOf(all []table.Difference) string {
	var out []string
	for _, d := range all {
		out = append(out, d.What)
	}
	return strings.Join(out, ", ")
}
