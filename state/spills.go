package state

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// SpillPrefix begins the names of spill files; State.SpillFiles has such names.
const SpillPrefix = "spill-"

// SpillPath is where the spill file of that name stands beside a state file.
func SpillPath(statePath, name string) string { return statePath + "." + name }

// KeepSpill gives a finished file beside a state file its name as a spill file,
// on the disk for good.
func KeepSpill(temp, statePath, name string) error {
	path := SpillPath(statePath, name)
	if err := os.Rename(temp, path); err != nil {
		return err
	}
	return syncDir(filepath.Dir(path))
}

// Spills returns the names of all spill files beside a state file, those that no
// state names included.
func Spills(statePath string) ([]string, error) {
	base := filepath.Base(statePath) + "."
	entries, err := os.ReadDir(filepath.Dir(statePath))
	if err != nil {
		return nil, err
	}
	var out []string
	for _, e := range entries {
		if name, ok := strings.CutPrefix(e.Name(), base); ok && strings.HasPrefix(name, SpillPrefix) {
			out = append(out, name)
		}
	}
	return out, nil
}

// RemoveSpills removes the spill files of those names beside a state file, as
// far as they are there.
func RemoveSpills(statePath string, names []string) error {
	var errs []error
	for _, name := range names {
		errs = append(errs, removeIfThere(SpillPath(statePath, name)))
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("remove spill files: %w", err)
	}
	return nil
}
