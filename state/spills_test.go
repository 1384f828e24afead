package state

import (
	"reflect"
	"slices"
	"testing"
)

// Spill files belong to the state file of their name, move aside with it, and
// are no others' business.
func TestSpills(t *testing.T) {
	path := newPath(t)
	s := openStore(t, path)
	mustSave(t, s, withRows(1))
	for _, name := range []string{path + ".spill-one", path + ".spill-tmp", path + ".old.spill-three", path + "2.spill-four"} {
		mustWrite(t, name, "x")
	}
	wantSpills(t, path, "spill-one", "spill-tmp")
	if err := RemoveSpills(path, []string{"spill-tmp", "spill-gone"}); err != nil {
		t.Error(err)
	}
	wantSpills(t, path, "spill-one")
	moved, err := s.MoveAside()
	if want := []string{path + ".old", path + ".old.spill-one"}; err != nil || !reflect.DeepEqual(moved, want) {
		t.Errorf("moved to %v, %v, want %v", moved, err, want)
	}
	wantSpills(t, path)
	wantSpills(t, path+".old", "spill-one", "spill-three")
	mustSave(t, s, withRows(2))
	mustWrite(t, path+".spill-three", "y")
	if moved, err = s.MoveAside(); err != nil || !slices.Contains(moved, path+".old.2.spill-three") {
		t.Errorf("moved to %v, %v", moved, err)
	}
}

func wantSpills(t *testing.T, path string, want ...string) {
	t.Helper()
	got, err := Spills(path)
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("beside %s: %v, %v, want %v", path, got, err, want)
	}
}
