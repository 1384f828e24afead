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

// builder makes indexes and constraints on the target, over a connection of its
// own. What is there already is left: a run that goes on does what is missing.
type builder struct {
	conn *mysqlconn.Control
	look *mysqlconn.Session // reads structures as the source's were read
	done func()             // called for each statement that was carried out
}

func (r *run) newBuilder(ctx context.Context) (*builder, error) {
	c, err := r.openDDL(ctx)
	if err != nil {
		return nil, err
	}
	s, err := r.write.OpenSession(ctx)
	if err != nil {
		c.Close()
		return nil, err
	}
	b := &builder{c, s, r.meter.built}
	// It waits while an index is made.
	if _, err := s.Exec(ctx, "SET SESSION wait_timeout = 28800"); err != nil {
		b.close()
		return nil, fmt.Errorf("set up a session on the target: %w", err)
	}
	return b, nil
}

func (b *builder) close() {
	b.conn.Close()
	b.look.Close()
}

// missing returns those clauses whose part the target's table does not have. A
// table that was taken over may have other options at its indexes.
func (b *builder) missing(ctx context.Context, t *table.Table, clauses []string, kind func(table.Parts) []string) ([]string, error) {
	if len(clauses) == 0 {
		return nil, nil
	}
	text, err := table.ShowCreate(ctx, b.look, t.FullName())
	if err != nil {
		return nil, fmt.Errorf("read the target's structure: %w", err)
	}
	target := *t
	target.Create = state.Text(text)
	var there []string
	for _, c := range kind(target.Part(true)) {
		there = append(there, table.Signature(c))
	}
	return slices.DeleteFunc(slices.Clone(clauses), func(c string) bool { return slices.Contains(there, table.Signature(c)) }), nil
}

// alter makes what is missing of clauses in one statement.
func (b *builder) alter(ctx context.Context, t *table.Table, what string, clauses []string, kind func(table.Parts) []string) error {
	clauses, err := b.missing(ctx, t, clauses, kind)
	if err != nil || len(clauses) == 0 {
		return err
	}
	if _, err := b.conn.Exec(ctx, "USE "+table.Quote(t.Database)); err != nil {
		return fmt.Errorf("use database %s on the target: %w", t.Database, err)
	}
	if _, err := b.conn.Exec(ctx, "ALTER TABLE "+t.Quoted()+" "+strings.Join(clauses, ", ")); err != nil {
		return fmt.Errorf("add %s to %s on the target: %w", what, t, err)
	}
	b.done()
	return nil
}

func plainOf(p table.Parts) []string   { return p.Plain }
func uniqueOf(p table.Parts) []string  { return p.Unique }
func foreignOf(p table.Parts) []string { return p.Foreign }

// plain makes the non-unique indexes: they need no consistent rows, so they are
// made as soon as the table is copied.
func (b *builder) plain(ctx context.Context, t *table.Table) error {
	return b.alter(ctx, t, "indexes", t.Part(true).Plain, plainOf)
}

// unique makes unique indexes. The caller has applied everything that the
// snapshots may have seen, and nothing is under way.
func (b *builder) unique(ctx context.Context, t *table.Table) error {
	parts := t.Part(true)
	if err := b.alter(ctx, t, "indexes", parts.Plain, plainOf); err != nil {
		return err
	}
	return b.alter(ctx, t, "unique indexes", parts.Unique, uniqueOf)
}

// foreign makes foreign keys, once all tables have their unique indexes: they
// may point at any of them. They are not validated: foreign_key_checks is off,
// as for the rows.
func (b *builder) foreign(ctx context.Context, t *table.Table) error {
	return b.alter(ctx, t, "foreign keys", t.Part(true).Foreign, foreignOf)
}

// buildIndexes makes the non-unique indexes that are still missing once all
// tables are copied.
func (r *run) buildIndexes(ctx context.Context) error {
	if err := r.enter(ctx, state.PhaseIndexes); err != nil {
		return err
	}
	b, err := r.newBuilder(ctx)
	if err != nil {
		return err
	}
	defer b.close()
	for _, t := range r.structures(state.TableCopied) {
		if err := b.plain(ctx, t); err != nil {
			return err
		}
	}
	return nil
}

// buildConstraints makes what had to wait for the target to be consistent, and
// so ends the work on the tables' structures.
func (r *run) buildConstraints(ctx context.Context) error {
	b, err := r.newBuilder(ctx)
	if err != nil {
		return err
	}
	defer b.close()
	tables := r.structures(state.TableCopied)
	for _, t := range tables {
		if err := b.unique(ctx, t); err != nil {
			return err
		}
	}
	for _, t := range tables {
		if err := b.foreign(ctx, t); err != nil {
			return err
		}
		if err := r.saveTable(ctx, t.FullName(), func(t *state.Table) { t.Status = state.TableIndexed }); err != nil {
			return err
		}
	}
	return r.checkpoint()
}

// structures returns the structures of the tables of that status, by name.
func (r *run) structures(status state.TableStatus) []*table.Table {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []*table.Table
	for i := range r.st.Tables {
		if t := &r.st.Tables[i]; t.Status == status {
			out = append(out, r.tables[nameOf(t.Database, t.Table)].structure)
		}
	}
	return out
}

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
