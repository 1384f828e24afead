package state

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"syscall"
	"testing"
)

func withRows(rows int64) *State {
	st := sample(1)
	st.Throughput.Rows = rows
	return st
}

func wantRows(t *testing.T, path string, want int64) {
	t.Helper()
	if got := mustLoad(t, path).Throughput.Rows; got != want {
		t.Errorf("%s has the state of save %d, want %d", path, got, want)
	}
}

func TestSaveKeepsStateBefore(t *testing.T) {
	path := newPath(t)
	s := openStore(t, path)
	if s.Exists() || s.BackupExists() {
		t.Error("state or backup is there before the first save")
	}
	st := withRows(1)
	st.FormatVersion = 0
	mustSave(t, s, st)
	if !s.Exists() || s.BackupExists() {
		t.Error("want a state and no backup after the first save")
	}
	if st.FormatVersion != 0 {
		t.Error("Save changed its argument")
	}
	if got := mustLoad(t, path); !got.UpdatedAt.Equal(testTime) || got.FormatVersion != plainFormat {
		t.Errorf("saved at %s in format %d", got.UpdatedAt, got.FormatVersion)
	}
	mustSave(t, s, withRows(2))
	mustSave(t, s, withRows(3))
	wantRows(t, path, 3)
	wantRows(t, path+".bak", 2)
	if got, want := names(t, filepath.Dir(path)), []string{"STATE", "STATE.bak", "STATE.lock"}; !reflect.DeepEqual(got, want) {
		t.Errorf("folder has %v, want %v", got, want)
	}
	for _, name := range []string{path, path + ".bak", path + ".lock"} {
		if info, _ := os.Stat(name); info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %o", name, info.Mode().Perm())
		}
	}
}

func TestSaveRefusesContradiction(t *testing.T) {
	path := newPath(t)
	s := openStore(t, path)
	mustSave(t, s, withRows(1))
	for name, change := range map[string]func(*State){
		"no source":         func(st *State) { st.Sources = nil },
		"unknown phase":     func(st *State) { st.Phase = "" },
		"unstored digest":   func(st *State) { st.Tables[0].Structures = []StructureSince{{Digest: digestOf([]byte("1"))}} },
		"spill file latin1": func(st *State) { st.SpillFiles = []string{"caf\xe9"} },
	} {
		st := withRows(2)
		change(st)
		err := s.Save(st)
		var se *SaveError
		if !errors.As(err, &se) || !strings.Contains(err.Error(), "the state saved before is intact") {
			t.Errorf("%s: error is %v", name, err)
		}
	}
	wantRows(t, path, 1)
}

func TestSaveOverOtherModes(t *testing.T) {
	path := newPath(t)
	s := openStore(t, path)
	mustSave(t, s, withRows(1))
	if err := os.Chmod(path, 0o644); err != nil {
		t.Fatal(err)
	}
	old := syscall.Umask(0o777)
	mustSave(t, s, withRows(2))
	syscall.Umask(old)
	for _, name := range []string{path, path + ".bak"} {
		if info, _ := os.Stat(name); info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %o", name, info.Mode().Perm())
		}
	}
	wantRows(t, path+".bak", 1)
}

func TestSaveKeepsGoodBackupFromBrokenState(t *testing.T) {
	path := newPath(t)
	s := openStore(t, path)
	mustSave(t, s, withRows(1))
	mustSave(t, s, withRows(2))
	mustWrite(t, path, "{ half")
	mustSave(t, s, withRows(3))
	wantRows(t, path, 3)
	wantRows(t, path+".bak", 1)

	// A state that somebody put there is whole: it is the one before.
	mustWrite(t, path+".new", mustRead(t, path+".bak"))
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
	mustSave(t, s, withRows(4))
	wantRows(t, path+".bak", 1)
}

// A run killed between the two renames leaves one file under three names.
func TestOpenAndSaveAfterKilledRun(t *testing.T) {
	path := newPath(t)
	first := openStore(t, path)
	mustSave(t, first, withRows(1))
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	leave := func() {
		for _, name := range []string{path + ".bak", path + ".bak.tmp"} {
			if err := os.Link(path, name); err != nil && !errors.Is(err, os.ErrExist) {
				t.Fatal(err)
			}
		}
		mustWrite(t, path+".tmp", "{ half")
	}
	leave()
	s := openStore(t, path)
	want := []string{"STATE", "STATE.bak", "STATE.lock"}
	if got := names(t, filepath.Dir(path)); !reflect.DeepEqual(got, want) {
		t.Errorf("Open left %v, want %v", got, want)
	}
	leave()
	mustSave(t, s, withRows(2))
	if got := names(t, filepath.Dir(path)); !reflect.DeepEqual(got, want) {
		t.Errorf("Save left %v, want %v", got, want)
	}
	wantRows(t, path, 2)
	wantRows(t, path+".bak", 1)
}

func TestSaveFailsWithoutLosingState(t *testing.T) {
	path := newPath(t)
	s := openStore(t, path)
	if err := os.Mkdir(path+".bak", 0o700); err != nil { // no rename can replace it
		t.Fatal(err)
	}
	mustSave(t, s, withRows(1))
	err := s.Save(withRows(2))
	var se *SaveError
	if !errors.As(err, &se) || strings.Contains(err.Error(), "\n") {
		t.Errorf("error is %v", err)
	}
	wantRows(t, path, 1)
	want := []string{"STATE", "STATE.bak", "STATE.lock"}
	if got := names(t, filepath.Dir(path)); !reflect.DeepEqual(got, want) {
		t.Errorf("Save left %v, want %v", got, want)
	}
}

func TestStateBehindSymlink(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "data", "real")
	if err := os.MkdirAll(filepath.Join(dir, "data"), 0o700); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(dir, "link")
	for name, to := range map[string]string{link: "middle", filepath.Join(dir, "middle"): "data/real"} {
		if err := os.Symlink(to, name); err != nil {
			t.Fatal(err)
		}
	}
	s := openStore(t, link) // the file need not exist
	mustSave(t, s, withRows(1))
	mustSave(t, s, withRows(2))
	if to, err := os.Readlink(link); err != nil || to != "middle" {
		t.Errorf("link is %q, %v", to, err)
	}
	wantRows(t, link, 2)
	wantRows(t, file+".bak", 1)
	_, err := Open(file)
	asFileError(t, err, ErrHeld)

	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	_, err = Load(link)
	fe := asFileError(t, err, ErrOnlyBackup)
	if !strings.HasPrefix(fe.Next, "cp -p "+file+".bak ") {
		t.Errorf("next is %q", fe.Next)
	}

	loop := filepath.Join(dir, "loop")
	if err := os.Symlink("loop", loop); err != nil {
		t.Fatal(err)
	}
	_, err = Open(loop)
	asFileError(t, err, ErrNotWritable)
}

func TestOpenWithoutFolder(t *testing.T) {
	_, err := Open(filepath.Join(t.TempDir(), "none", "STATE"))
	asFileError(t, err, ErrNotWritable)
}

func TestSaveFromSeveralGoroutines(t *testing.T) {
	path := newPath(t)
	s := openStore(t, path)
	var wg sync.WaitGroup
	shared := withRows(0)
	errs := make(chan error, 64)
	for i := range 8 {
		wg.Go(func() {
			for j := range 4 {
				_, err := s.PutStructure(fmt.Appendf(nil, `[%d]`, j))
				errs <- errors.Join(err, s.Save(withRows(int64(i*4+j))), s.Save(shared))
			}
		})
	}
	wg.Wait()
	close(errs)
	for err := range errs {
		if err != nil {
			t.Error(err)
		}
	}
	mustLoad(t, path)
	mustLoad(t, path+".bak")
}

func TestClose(t *testing.T) {
	path := newPath(t)
	s := openStore(t, path)
	mustSave(t, s, withRows(1))
	for range 2 {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	_, putErr := s.PutStructure([]byte("1"))
	_, getErr := s.Structure("x")
	_, moveErr := s.MoveAside()
	for _, err := range []error{s.Save(withRows(2)), putErr, getErr, moveErr} {
		if !errors.Is(err, ErrClosed) {
			t.Errorf("error after Close is %v", err)
		}
	}
	wantRows(t, path, 1)
	openStore(t, path)
}

func TestMoveAside(t *testing.T) {
	path := newPath(t)
	s := openStore(t, path)
	if moved, err := s.MoveAside(); err != nil || len(moved) != 0 {
		t.Errorf("moved %v, %v where nothing is", moved, err)
	}
	put := func(raw string) string {
		digest, err := s.PutStructure([]byte(raw))
		if err != nil {
			t.Fatal(err)
		}
		return digest
	}
	digest := put(`"one"`)
	mustSave(t, s, withRows(1))
	mustSave(t, s, withRows(2))
	moved, err := s.MoveAside()
	if want := []string{path + ".old", path + ".old.bak", path + ".old.schemas"}; err != nil || !reflect.DeepEqual(moved, want) {
		t.Errorf("moved to %v, %v, want %v", moved, err, want)
	}
	wantRows(t, path+".old", 2)
	wantRows(t, path+".old.bak", 1)
	if s.Exists() || s.BackupExists() {
		t.Error("state or backup is still there")
	}
	if _, err := s.Structure(digest); !errors.Is(err, ErrSchemas) {
		t.Errorf("structure of the old state: %v", err)
	}

	put(`"two"`)
	mustSave(t, s, withRows(3))
	mustWrite(t, path+".old.2.bak", "mine") // half a name is taken
	moved, err = s.MoveAside()
	if want := []string{path + ".old.3", path + ".old.3.schemas"}; err != nil || !reflect.DeepEqual(moved, want) {
		t.Errorf("moved to %v, %v, want %v", moved, err, want)
	}
	wantRows(t, path+".old", 2)

	mustWrite(t, path, "broken")
	if moved, err = s.MoveAside(); err != nil || len(moved) != 1 {
		t.Errorf("moved %v, %v of a broken state", moved, err)
	}
}
