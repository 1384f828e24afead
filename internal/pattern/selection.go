package pattern

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Selection says which tables are copied: those that an include pattern matches
// and no exclude pattern. System schemas are never among them.
type Selection struct {
	include, exclude []matcher
	fold             bool
}

// Compile parses the patterns. foldCase makes them match without regard to
// case, for a source that folds its names. The error names every pattern that
// does not parse.
func Compile(include, exclude []string, foldCase bool) (*Selection, error) {
	in, errIn := compileAll(include, foldCase)
	ex, errEx := compileAll(exclude, foldCase)
	if err := errors.Join(errIn, errEx); err != nil {
		return nil, err
	}
	return &Selection{include: in, exclude: ex, fold: foldCase}, nil
}

func compileAll(texts []string, fold bool) ([]matcher, error) {
	var all []matcher
	var errs []error
	for _, text := range texts {
		m, err := compile(text, fold)
		if err != nil {
			errs = append(errs, fmt.Errorf("pattern %q: %w", text, err))
			continue
		}
		all = append(all, m)
	}
	return all, errors.Join(errs...)
}

// Match reports whether a table is selected.
func (s *Selection) Match(db, table string) bool {
	if s.system(db) {
		return false
	}
	matches := func(m matcher) bool { return m.table(db, table) }
	return slices.ContainsFunc(s.include, matches) && !slices.ContainsFunc(s.exclude, matches)
}

// MatchDatabase reports whether some table of db could be selected. It looks at
// each pattern alone: several exclude patterns that only together cover a
// database do not count.
func (s *Selection) MatchDatabase(db string) bool {
	if s.system(db) {
		return false
	}
	return slices.ContainsFunc(s.include, func(m matcher) bool { return m.someOf(db) }) &&
		!slices.ContainsFunc(s.exclude, func(m matcher) bool { return m.allOf(db) })
}

func (s *Selection) system(db string) bool {
	return System(db) || s.fold && System(strings.ToLower(db))
}

// System reports whether db is a schema that is never copied: one of the
// servers' own, or ours on a target.
func System(db string) bool {
	switch db {
	case "mysql", "sys", "_copydb":
		return true
	}
	// The servers know these two by any spelling, whatever the file system does.
	return strings.EqualFold(db, "information_schema") || strings.EqualFold(db, "performance_schema")
}
