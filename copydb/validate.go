package copydb

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/copydb/copydb/dumper"
	"github.com/copydb/copydb/internal/hold"
	"github.com/copydb/copydb/internal/mysqlconn"
	"github.com/copydb/copydb/internal/table"
	"github.com/copydb/copydb/state"
)

const (
	// orphanBatch is how many values the source is asked about at a time.
	orphanBatch = 100
	// keptOrphans bounds the values of one foreign key that are remembered.
	keptOrphans = 1000
	// orphanRounds is how often a value must be found without a parent on the
	// target, and not so on the source, for rows to be called lost. One that comes
	// and goes on the source is found so in a quarter of the rounds.
	orphanRounds = 12
)

// validator looks for rows on the target that violate constraints which the
// servers never look at again. It works where the target is an image of the
// source at one position. The source is newer: what it has meanwhile is told
// from what was lost by looking again once the target is past that.
type validator struct {
	r        *run
	at       state.Position // of the target
	look     *mysqlconn.Session
	probe    *dumper.Probe // opened with the first question
	suspects map[string]*suspects
	warnings []string        // of the table in hand
	again    *state.Position // from where to look again; nil where all is clear
}

// suspects are the values of one foreign key whose rows have a parent on the
// source, or are gone there, in each of some rounds from the first one on.
type suspects struct {
	rounds int
	values map[string]bool
	cut    bool // there were more in the first round than are remembered
	// clear says that none is left, which is not asked again while the table's
	// other foreign keys are; warnings is what there was to say.
	clear    bool
	warnings []string
}

// orphans is what one foreign key has on the target.
type orphans struct {
	rows, values int64
	missing      map[string]bool // those values that are no orphans on the source
	known        map[string]bool // the suspects: none of them is left out of missing
}

// add notes a value that is no orphan on the source.
func (o *orphans) add(value string) {
	if len(o.missing) < keptOrphans || o.known[value] {
		o.missing[value] = true
	}
}

func (v *validator) close() {
	if v.probe != nil {
		v.probe.Close()
	}
}

// foreignKeys looks at the foreign keys of t. It reports whether all are clear;
// else again says from where on to ask once more.
func (v *validator) foreignKeys(ctx context.Context, t *table.Table) (bool, error) {
	v.warnings = nil
	clear := true
	for i := range t.Foreign {
		fk := &t.Foreign[i]
		if s := v.suspects[suspectName(t, fk)]; s != nil && s.clear {
			v.warnings = append(v.warnings, s.warnings...)
			continue
		}
		said := len(v.warnings)
		ok, err := v.foreignKey(ctx, t, fk)
		if err != nil {
			return false, err
		}
		if ok {
			v.suspects[suspectName(t, fk)] = &suspects{clear: true, warnings: slices.Clone(v.warnings[said:])}
		}
		clear = clear && ok
		v.r.meter.built()
	}
	return clear, nil
}

func (v *validator) foreignKey(ctx context.Context, t *table.Table, fk *table.ForeignKey) (bool, error) {
	parent := v.r.structureOf(fk.Parent())
	for i := range fk.Columns {
		if t.ColumnFold(fk.Columns[i]) == nil || parent != nil && parent.ColumnFold(fk.ParentColumns[i]) == nil {
			return false, fmt.Errorf("validate foreign key %s of %s: its columns are not known", fk.Name, t)
		}
	}
	found, err := v.find(ctx, t, fk, parent)
	if mysqlconn.IsAccessDenied(err) && parent == nil {
		v.warn("foreign key %s of table %s could not be validated: table %s of the target may not be read", fk.Name, t, fk.Parent())
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("validate foreign key %s of %s: %w", fk.Name, t, err)
	}
	switch list := "list them on the target with: " + t.ListOrphans(fk); {
	case found.rows == 0:
	case parent == nil:
		v.warn("foreign key %s of table %s: %d rows have no parent in the target's own table %s, which was not copied; %s", fk.Name, t, found.rows, fk.Parent(), list)
	default:
		if cleared, err := v.suspect(ctx, t, fk, found); err != nil || !cleared {
			return false, err
		}
		v.warn("foreign key %s of table %s: %d rows have no parent in %s, on the source as on the target; %s", fk.Name, t, found.rows, fk.Parent(), list)
	}
	return true, nil
}

func (v *validator) warn(format string, args ...any) {
	v.warnings = append(v.warnings, fmt.Sprintf(format, args...))
}

// find reads the orphans of the target, and asks the source about each of their
// values, unless parent is nil: then the target's parent table is its own.
func (v *validator) find(ctx context.Context, t *table.Table, fk *table.ForeignKey, parent *table.Table) (orphans, error) {
	found := orphans{missing: map[string]bool{}}
	if s := v.suspects[suspectName(t, fk)]; s != nil {
		found.known = s.values
	}
	var batch [][][]byte
	ask := func() error {
		err := v.ask(ctx, t, fk, parent, batch, &found)
		batch = batch[:0]
		return err
	}
	err := v.look.Query(ctx, t.Orphans(fk), func(f [][]byte) error {
		n, err := strconv.ParseInt(string(f[len(fk.Columns)]), 10, 64)
		if err != nil {
			return fmt.Errorf("parse a count: %w", err)
		}
		found.rows, found.values = found.rows+n, found.values+1
		if parent == nil {
			return nil
		}
		batch = append(batch, cloneRow(f[:len(fk.Columns)]))
		if len(batch) < orphanBatch {
			return nil
		}
		return ask()
	})
	if err == nil && len(batch) > 0 {
		err = ask()
	}
	return found, err
}

func cloneRow(f [][]byte) [][]byte {
	out := make([][]byte, len(f))
	for i, v := range f {
		out[i] = append([]byte{}, v...)
	}
	return out
}

// ask notes those values that are no orphans on the source now.
func (v *validator) ask(ctx context.Context, t *table.Table, fk *table.ForeignKey, parent *table.Table, values [][][]byte, found *orphans) (err error) {
	if v.probe == nil {
		if v.probe, err = v.r.dump.OpenProbe(ctx, v.at); err != nil {
			return err
		}
	}
	tests := make([]string, len(values))
	for i := range values {
		tests[i] = t.OrphanTest(fk, parent, values[i])
	}
	answers, err := v.probe.Ask(ctx, tests)
	if err != nil {
		return err
	}
	for i, orphan := range answers {
		if !orphan {
			found.add(valuesKey(values[i]))
		}
	}
	return nil
}

// valuesKey is one string for a list of values.
func valuesKey(values [][]byte) string {
	var b strings.Builder
	for _, v := range values {
		fmt.Fprintf(&b, "%d:%s", len(v), v)
	}
	return b.String()
}

func suspectName(t *table.Table, fk *table.ForeignKey) string { return t.String() + "." + fk.Name }

// suspect remembers values that are orphans on the target and not on the source.
// The same ones, found again each time after the target was brought to where the
// source had been, are an error: their parents are lost. It reports whether none
// of the first round's is left; what later rounds find beside them has come
// since, and on a source where parents come and go there is always some.
func (v *validator) suspect(ctx context.Context, t *table.Table, fk *table.ForeignKey, found orphans) (cleared bool, err error) {
	s := v.suspects[suspectName(t, fk)]
	if s != nil {
		maps.DeleteFunc(s.values, func(k string, _ bool) bool { return !found.missing[k] })
	}
	if s == nil || len(s.values) == 0 && s.cut {
		s = &suspects{values: found.missing, cut: len(found.missing) >= keptOrphans}
		v.suspects[suspectName(t, fk)] = s
	}
	if len(s.values) == 0 {
		return true, nil
	}
	if s.rounds++; s.rounds >= orphanRounds {
		return false, v.r.lostRows(t, fk, len(s.values))
	}
	end, err := v.probe.End(ctx)
	if err != nil {
		return false, err
	}
	v.again = &end
	return false, nil
}

func (r *run) lostRows(t *table.Table, fk *table.ForeignKey, values int) error {
	return &Error{Code: ExitResumable, Where: t.String(),
		Message: fmt.Sprintf("foreign key %s: the target has rows without a parent in %s (%d values of %s), the source has not: rows of the target were lost or changed",
			fk.Name, fk.Parent(), values, strings.Join(fk.Columns, ", ")),
		Next: "list them on the target with: " + t.ListOrphans(fk) + "; put right there what was changed by hand, then resume: " + r.resumeCommand() +
			"; or begin again: " + r.overCommand()}
}

// checks counts the rows that violate CHECK constraints. MariaDB's are off while
// rows are written; MySQL enforces its own with each row.
func (v *validator) checks(ctx context.Context, c *mysqlconn.Control, t *table.Table) error {
	checks := t.Checks()
	if v.r.facts.Target.Identity.Version.Flavor != mysqlconn.MariaDB || len(checks) == 0 {
		return nil
	}
	sums, counts, into := make([]string, len(checks)), make([]int64, len(checks)), make([]any, len(checks))
	for i, check := range checks {
		sums[i], into[i] = "COALESCE(SUM(NOT "+check.Condition+"), 0)", &counts[i]
	}
	err := c.QueryRow(ctx, into, "SELECT "+strings.Join(sums, ", ")+" FROM "+t.Quoted())
	if mysqlconn.ErrorNumber(err) != 0 && !retriable(err) {
		v.warn("the CHECK constraints of table %s could not be checked: %s", t, mysqlconn.Redact(err.Error()))
		return nil
	}
	if err != nil {
		return fmt.Errorf("check the constraints of %s: %w", t, err)
	}
	for i, n := range counts {
		if n > 0 {
			v.warn("constraint %s of table %s: %d rows violate CHECK %s; list them with: SELECT * FROM %s WHERE NOT %s",
				checks[i].Name, t, n, checks[i].Condition, t.Quoted(), checks[i].Condition)
		}
	}
	v.r.meter.built()
	return nil
}

// validate looks at the constraints of a table that has all of them. It reports
// whether nothing is left to be asked again.
func (v *validator) validate(ctx context.Context, c *mysqlconn.Control, t *table.Table) (bool, error) {
	clear, err := v.foreignKeys(ctx, t)
	if err != nil || !clear {
		return false, err
	}
	if err := v.checks(ctx, c, t); err != nil {
		return false, err
	}
	if err := hold.Point(ctx, "validated:"+t.String()); err != nil {
		return false, err
	}
	for _, w := range v.warnings {
		v.r.warn("%s", w)
	}
	return true, nil
}
