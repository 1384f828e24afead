package copydb

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/copydb/copydb/internal/hold"
	"github.com/copydb/copydb/internal/mysqlconn"
	"github.com/copydb/copydb/internal/table"
	"github.com/copydb/copydb/state"
)

// builder makes indexes and constraints on the target, over a connection of its
// own. What is there already is left: a run that goes on does what is missing.
type builder struct {
	conn *mysqlconn.Control
	look *mysqlconn.Session          // reads structures as the source's were read
	wait func(context.Context) error // called before each statement
	done func()                      // called for each that was carried out
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
	wait := func(ctx context.Context) error { return r.throttle.wait(ctx, forTarget) }
	b := &builder{c, s, wait, r.meter.built}
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
	if err := b.wait(ctx); err != nil {
		return err
	}
	if _, err := b.conn.Exec(ctx, "USE "+table.Quote(t.Database)); err != nil {
		return fmt.Errorf("use database %s on the target: %w", t.Database, err)
	}
	if _, err := b.conn.Exec(ctx, "ALTER TABLE "+t.Quoted()+" "+strings.Join(clauses, ", ")); err != nil {
		return fmt.Errorf("add %s to %s on the target: %w", what, t, err)
	}
	b.done()
	return hold.Point(ctx, "added "+what+":"+t.String())
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
// may point at any of them. The server does not validate them: foreign_key_checks
// is off, as for the rows.
func (b *builder) foreign(ctx context.Context, t *table.Table) error {
	return b.alter(ctx, t, "foreign keys", t.Part(true).Foreign, foreignOf)
}

// buildIndexes makes the non-unique indexes that are still missing once all
// tables are copied, and ties components together.
func (r *run) buildIndexes(ctx context.Context) error {
	if err := r.enter(ctx, state.PhaseIndexes); err != nil {
		return err
	}
	b, err := r.newBuilder(ctx)
	if err != nil {
		return err
	}
	defer b.close()
	tables := r.structures(state.TableCopied)
	for _, t := range tables {
		if err := b.plain(ctx, t); err != nil {
			return err
		}
	}
	return b.tie(ctx, tables)
}

// buildConstraints makes what had to wait for the target to be consistent,
// validates it, and so ends the work on the tables' structures. Where the source
// has to be asked again, it returns the place that the target must have reached
// before.
func (r *run) buildConstraints(ctx context.Context, at state.Position, seen map[string]*suspects) (again *state.Position, err error) {
	b, err := r.newBuilder(ctx)
	if err != nil {
		return nil, err
	}
	defer b.close()
	tables := r.structures(state.TableCopied)
	for _, t := range tables {
		if err := b.unique(ctx, t); err != nil {
			return nil, r.asDuplicate(t, err)
		}
	}
	for _, t := range tables {
		if err := b.foreign(ctx, t); err != nil {
			return nil, err
		}
	}
	v := &validator{r: r, at: at, look: b.look, suspects: seen}
	defer v.close()
	if err := r.validateAll(ctx, v, b.conn, tables); err != nil {
		return nil, err
	}
	return v.again, r.checkpoint()
}

// validateAll validates the tables and keeps which of them are done, of those
// that take no time many at once.
func (r *run) validateAll(ctx context.Context, v *validator, c *mysqlconn.Control, tables []*table.Table) error {
	var done []table.Name
	began := time.Now()
	save := func() error {
		err := r.saveTables(ctx, done, func(t *state.Table) { t.Status = state.TableIndexed })
		done, began = nil, time.Now()
		return err
	}
	for _, t := range tables {
		clear, err := v.validate(ctx, c, t)
		if err != nil {
			return err
		}
		if clear {
			done = append(done, t.FullName())
		}
		if time.Since(began) > time.Second {
			if err := save(); err != nil {
				return err
			}
		}
	}
	return save()
}

// duplicateIn finds the index in a server's message about a duplicate value,
// behind the value itself.
var duplicateIn = regexp.MustCompile(`(?s)^.*for key '(?:[^'.]*\.)?([^']*)'`)

// asDuplicate says what is to be done about rows that a unique index finds
// equal. The target is an image of the source there, which has the index.
func (r *run) asDuplicate(t *table.Table, err error) error {
	if !mysqlconn.IsDuplicateKey(err) {
		return err
	}
	var names []string
	for i := range t.Keys {
		names = append(names, t.Keys[i].Name)
	}
	if f := duplicateIn.FindStringSubmatch(err.Error()); f != nil && slices.Contains(names, f[1]) {
		names = []string{f[1]}
	}
	e := &Error{Code: ExitResumable, Where: t.String(),
		Message: fmt.Sprintf("unique index %s cannot be made on the target: rows there have the same values in it (error %d)", strings.Join(names, " or "), mysqlconn.ErrorNumber(err)),
		Next:    "put right what was changed on the target by hand, then resume: " + r.resumeCommand() + "; or begin again: " + r.overCommand()}
	for i := range t.Keys {
		if list := t.ListDuplicates(&t.Keys[i]); len(names) == 1 && t.Keys[i].Name == names[0] && list != "" {
			e.Next = "list them on the target with: " + list + "; " + e.Next
		}
	}
	return e
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

// structureOf returns the structure of a table of the run, or nil. The catalogue
// may write a parent's name in another case where the source folds names.
func (r *run) structureOf(n table.Name) *table.Table {
	r.mu.Lock()
	defer r.mu.Unlock()
	if tr := r.tables[n]; tr != nil {
		return tr.structure
	}
	for known, tr := range r.tables {
		if r.facts.FoldCase && strings.EqualFold(known.Database, n.Database) && strings.EqualFold(known.Table, n.Table) {
			return tr.structure
		}
	}
	return nil
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
