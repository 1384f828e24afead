package servers

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
)

func TestMakeOnceIsWholeOrNotAtAll(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "made")
	broken := errors.New("broken")
	err := makeOnce(t.Context(), dir, func(tmp string) error {
		return errors.Join(os.WriteFile(filepath.Join(tmp, "half"), nil, 0o644), broken)
	})
	if !errors.Is(err, broken) {
		t.Errorf("error: %v", err)
	}
	if left, _ := filepath.Glob(dir + "*"); len(left) != 1 { // the lock
		t.Errorf("left: %q", left)
	}
	var calls atomic.Int32
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if err := makeOnce(t.Context(), dir, func(string) error { calls.Add(1); return nil }); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if calls.Load() != 1 || !isDir(dir) {
		t.Errorf("made %d times", calls.Load())
	}
}

func TestCopyTemplateKeepsBytesButNotIdentity(t *testing.T) {
	from, to := t.TempDir(), filepath.Join(t.TempDir(), "copy")
	content := bytes.Join([][]byte{make([]byte, 200<<10), []byte("end"), make([]byte, 100<<10)}, nil)
	if err := os.Mkdir(filepath.Join(from, "sub"), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string][]byte{"sub/holes": content, "empty": nil, "auto.cnf": []byte("uuid")} {
		if err := os.WriteFile(filepath.Join(from, name), text, 0o640); err != nil {
			t.Fatal(err)
		}
	}
	if err := copyTemplate(from, to); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(filepath.Join(to, "sub", "holes")); err != nil || !bytes.Equal(got, content) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	if info, err := os.Stat(filepath.Join(to, "empty")); err != nil || info.Size() != 0 || info.Mode().Perm() != 0o640 {
		t.Errorf("empty file: %v, %v", info, err)
	}
	if _, err := os.Stat(filepath.Join(to, "auto.cnf")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("auto.cnf: %v", err)
	}
}

func TestFoldersOfDeadProcessesAreSwept(t *testing.T) {
	base := t.TempDir()
	for _, d := range []string{"dead", "alive"} {
		if err := os.MkdirAll(filepath.Join(base, d, "s1"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	lock, err := tryLock(filepath.Join(base, "alive", "lock"))
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	if err := sweepRuns(base); err != nil {
		t.Fatal(err)
	}
	if isDir(filepath.Join(base, "dead")) || !isDir(filepath.Join(base, "alive", "s1")) {
		t.Error("swept the wrong folder")
	}
}

func TestPortsAreNotGivenTwice(t *testing.T) {
	seen := map[int]bool{}
	for range 50 {
		port, err := freePort()
		if err != nil {
			t.Fatal(err)
		}
		defer releasePort(port)
		if seen[port] || port >= ephemeralStart() {
			t.Errorf("port %d", port)
		}
		seen[port] = true
	}
}
