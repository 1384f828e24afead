package state

import (
	"fmt"
	"os"
	"path/filepath"
)

// MoveAside renames the state file, its backup, its structures and its spill
// files, as far as they are there, to STATE.old, STATE.old.bak,
// STATE.old.schemas and STATE.old.spill-…, or to STATE.old.2 and so on where an earlier one stands, and returns the new paths.
// The store then stands for a state file that does not exist; the lock stays.
// Called again after an error it moves what is left.
func (s *Store) MoveAside() ([]string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, ErrClosed
	}
	// Structures come last: left behind alone they do no harm, whereas a state
	// without them looks whole and is not.
	suffixes := []string{"", backupSuffix, schemasSuffix}
	if err := s.schemas.close(); err != nil {
		return nil, fmt.Errorf("close schemas: %w", err)
	}
	s.schemas = schemas{path: s.path + schemasSuffix}
	s.known = nil
	spills, err := Spills(s.path)
	if err != nil {
		return nil, fmt.Errorf("move state aside: %w", err)
	}
	for _, name := range spills {
		suffixes = append(suffixes, "."+name)
	}
	target := freeName(s.path+".old", suffixes)
	var moved []string
	for _, suffix := range suffixes {
		if !isThere(s.path + suffix) {
			continue
		}
		if err := os.Rename(s.path+suffix, target+suffix); err != nil {
			return moved, fmt.Errorf("move state aside: %w", err)
		}
		moved = append(moved, target+suffix)
	}
	if err := syncDir(filepath.Dir(s.path)); err != nil {
		return moved, fmt.Errorf("move state aside: %w", err)
	}
	return moved, nil
}

// freeName returns base, or the first of base.2, base.3, … that nothing has with
// any of the suffixes.
func freeName(base string, suffixes []string) string {
	free := func(name string) bool {
		for _, suffix := range suffixes {
			if isThere(name + suffix) {
				return false
			}
		}
		return true
	}
	name := base
	for n := 2; !free(name); n++ {
		name = fmt.Sprintf("%s.%d", base, n)
	}
	return name
}
