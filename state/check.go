package state

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"unicode/utf8"
)

var digestForm = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)

var phases = []Phase{PhaseSchema, PhaseSnapshot, PhaseIndexes, PhaseCatchUp, PhaseFinish, PhaseDone}

var statuses = []TableStatus{TablePending, TableCopying, TableCopied, TableIndexed, TableRestart}

// check returns the first contradiction in s, whoever made it: a file is
// refused by it, and so is a state to be saved.
func (s *State) check() error {
	switch {
	case s.MigrationID == "":
		return errors.New("migration_id is missing")
	case s.RunID == "":
		return errors.New("run_id is missing")
	case !slices.Contains(phases, s.Phase):
		return fmt.Errorf("phase %q is unknown", s.Phase)
	}
	if err := checkSources(s.Sources); err != nil {
		return err
	}
	if err := checkTables(s.Tables); err != nil {
		return err
	}
	for _, name := range s.SpillFiles {
		if !utf8.ValidString(name) { // JSON would name another file
			return fmt.Errorf("name of spill file %q is not UTF-8", name)
		}
	}
	return nil
}

func checkSources(sources []Source) error {
	if len(sources) == 0 {
		return errors.New("sources is empty")
	}
	seen := map[string]bool{}
	for i := range sources {
		s := &sources[i]
		if seen[s.Name] {
			return fmt.Errorf("source %q is there twice", s.Name)
		}
		seen[s.Name] = true
		if err := s.check(); err != nil {
			return fmt.Errorf("source %q: %w", s.Name, err)
		}
	}
	return nil
}

func (s *Source) check() error {
	for _, p := range []struct {
		name string
		at   *Position
	}{
		{"snapshot_start", &s.SnapshotStart}, {"last_streamed", &s.LastStreamed},
		{"last_resumable", &s.LastResumable}, {"consistent_at", s.ConsistentAt},
		{"snapshot_seen", s.SnapshotSeen}, {"table_list_at", s.TableListAt}, {"stop_point", s.StopPoint},
	} {
		if err := p.at.check(p.name); err != nil {
			return err
		}
	}
	if s.LastResumable.Pos > math.MaxUint32 { // a dump command has 32 bits for it
		return fmt.Errorf("last_resumable %s lies beyond 4 GiB", s.LastResumable)
	}
	return nil
}

func (p *Position) check(name string) error {
	switch {
	case p == nil:
		return nil
	case p.File != "" && p.Pos == 0:
		return fmt.Errorf("%s has the file %q but no pos", name, p.File)
	case p.File == "" && p.Pos != 0:
		return fmt.Errorf("%s has the pos %d but no file", name, p.Pos)
	}
	return nil
}

func checkTables(tables []Table) error {
	type key struct{ database, table Text }
	seen := make(map[key]bool, len(tables))
	for i := range tables {
		t := &tables[i]
		k := key{t.Database, t.Table}
		if t.Database == "" || t.Table == "" {
			return fmt.Errorf("table number %d has no name", i+1)
		}
		if seen[k] {
			return fmt.Errorf("table %q.%q is there twice", t.Database, t.Table)
		}
		seen[k] = true
		if err := t.check(); err != nil {
			return fmt.Errorf("table %q.%q: %w", t.Database, t.Table, err)
		}
	}
	return nil
}

func (t *Table) check() error {
	switch {
	case !slices.Contains(statuses, t.Status):
		return fmt.Errorf("status %q is unknown", t.Status)
	case t.Class != ClassConverging && t.Class != ClassExact:
		return fmt.Errorf("class %q is unknown", t.Class)
	case t.Rows < 0 || t.Bytes < 0:
		return errors.New("rows or bytes is negative")
	}
	for _, err := range []error{
		t.Start.check("start"), t.FirstChunk.check("first_chunk"), t.LastChunk.check("last_chunk"),
		checkRanges(t.Done), checkStructures(t.Structures),
	} {
		if err != nil {
			return err
		}
	}
	return nil
}

// checkRanges sees to it that all bounds are of one key.
func checkRanges(ranges []Range) error {
	columns := 0
	for _, r := range ranges {
		for _, n := range []int{len(r.After), len(r.To)} {
			if n != 0 && columns != 0 && n != columns {
				return fmt.Errorf("done has bounds of %d and of %d columns", columns, n)
			}
			columns = max(columns, n)
		}
	}
	return nil
}

func checkStructures(list []StructureSince) error {
	for i := range list {
		if err := list[i].From.check("structures"); err != nil {
			return err
		}
		if !digestForm.MatchString(list[i].Digest) {
			return fmt.Errorf("structure digest %q is malformed", list[i].Digest)
		}
	}
	return nil
}

// checkLists finds lists that a file lacks. Save writes each of them, so that a
// missing one was lost; an open end of a range must not come about by that.
func (s *State) checkLists() error {
	for _, l := range []struct {
		name    string
		missing bool
	}{
		{"sources", s.Sources == nil}, {"tables", s.Tables == nil},
		{"selection.include", s.Selection.Include == nil}, {"selection.exclude", s.Selection.Exclude == nil},
		{"selection.routes", s.Selection.Routes == nil}, {"objects_created", s.ObjectsCreated == nil},
		{"switched_on_target", s.SwitchedOnTarget == nil}, {"spill_files", s.SpillFiles == nil},
	} {
		if l.missing {
			return fmt.Errorf("%s is missing", l.name)
		}
	}
	for i := range s.Sources {
		if s.Sources[i].Sessions == nil {
			return fmt.Errorf("source %q: sessions is missing", s.Sources[i].Name)
		}
	}
	for i := range s.Tables {
		if name := s.Tables[i].missingList(); name != "" {
			return fmt.Errorf("table %q.%q: %s is missing", s.Tables[i].Database, s.Tables[i].Table, name)
		}
	}
	return nil
}

func (t *Table) missingList() string {
	switch {
	case t.Done == nil:
		return "done"
	case t.Structures == nil:
		return "structures"
	}
	for _, r := range t.Done {
		if r.After == nil || r.To == nil {
			return "a bound in done"
		}
	}
	return ""
}
