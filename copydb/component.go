package copydb

import (
	"context"
	"fmt"
	"maps"

	"github.com/copydb/copydb/internal/table"
	"github.com/copydb/copydb/state"
)

// sameComponents proves, once all structures are taken, that foreign keys tie
// the tables together as the preflight saw it: the classes of tables follow from
// that.
func (r *run) sameComponents() error {
	var all []*table.Table
	have := map[table.Name]int{}
	r.mu.Lock()
	for n, tr := range r.tables {
		all = append(all, tr.structure)
		if c := tr.structure.Component; c != 0 {
			have[n] = c
		}
	}
	r.mu.Unlock()
	if r.facts.Components == nil && len(have) == 0 {
		return nil // the source logs cascades
	}
	if maps.Equal(have, table.Components(all, r.facts.FoldCase)) {
		return nil
	}
	return &Error{Code: ExitFailed, Where: "source", Message: "foreign keys with CASCADE or SET NULL have changed since the run began",
		Next: "begin again: " + r.overCommand()}
}

// componentOf returns the table and those that are tied to it.
func (r *run) componentOf(n table.Name) []table.Name {
	r.mu.Lock()
	defer r.mu.Unlock()
	of := r.tables[n].structure
	if of == nil || of.Component == 0 {
		return []table.Name{n}
	}
	var out []table.Name
	for name, tr := range r.tables {
		if tr.structure != nil && tr.structure.Component == of.Component {
			out = append(out, name)
		}
	}
	return out
}

// begunIn reports whether the target has rows of one of the tables.
func (r *run) begunIn(names []table.Name) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, n := range names {
		if len(r.tables[n].segments) > 0 {
			return true
		}
	}
	return false
}

// tie makes the foreign keys inside components, which are an image of the source
// from their copy on: the target's foreign keys carry out the cascades of the
// changes that follow.
func (b *builder) tie(ctx context.Context, tables []*table.Table) error {
	for _, t := range tables {
		if t.Component == 0 {
			continue
		}
		if err := b.unique(ctx, t); err != nil {
			return err
		}
	}
	for _, t := range tables {
		if err := b.alter(ctx, t, "foreign keys", t.TiedForeign(), foreignOf); err != nil {
			return fmt.Errorf("tie tables together by their foreign keys: %w", err)
		}
	}
	return nil
}

// restartTable voids a table's copy and that of the tables tied to it: it begins
// again from empty, with a start position and a structure of its own. The table
// on the target is made anew with the schema.
func (r *run) restartTable(ctx context.Context, n table.Name) error {
	names := r.componentOf(n)
	var docs []state.Table
	r.mu.Lock()
	for _, n := range names {
		tr := r.tables[n]
		t := &r.st.Tables[tr.index]
		t.Start, t.FirstChunk, t.LastChunk, t.Structures, t.TableID = state.Position{}, nil, nil, nil, ""
		clear(tr.segments)
		r.note(t, tr)
		t.Status = state.TableRestart
		docs = append(docs, *t)
	}
	r.st.Phase = state.PhaseSchema
	r.mu.Unlock()
	// Together: ranges that outlive the start they belong to would count for the
	// next one.
	return r.atomically(ctx, func() error {
		for _, n := range names {
			if err := r.prog.Restart(ctx, r.hold, n); err != nil {
				return err
			}
		}
		return r.prog.SaveTables(ctx, r.hold, docs...)
	})
}
