package state

import (
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
)

func TestDiskFullWhileSaving(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mount("none", dir, "tmpfs", 0, "size=128k"); err != nil {
		t.Skipf("NOT TESTED on a full disk: cannot mount a tmpfs: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	path := filepath.Join(dir, "STATE")
	s := openStore(t, path)
	mustSave(t, s, withRows(1))
	mustSave(t, s, withRows(2))
	if err := checkFailedSave(s, path, syscall.ENOSPC); err != nil {
		t.Fatal(err)
	}
	wantRows(t, path, 2)
	wantRows(t, path+".bak", 1)
	mustSave(t, s, withRows(3)) // there is room for a small one
	wantRows(t, path, 3)
}

// asNobody runs f without the rights of root, which may read everything.
func asNobody(t *testing.T, f func()) {
	t.Helper()
	if os.Geteuid() != 0 {
		f()
		return
	}
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread ends with it
		err := syscall.Setfsuid(65534)
		if err == nil {
			f()
		}
		done <- err
	}()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}

func TestWithoutRights(t *testing.T) {
	dir := t.TempDir()
	if err := os.Chmod(filepath.Dir(dir), 0o755); err != nil { // let nobody in
		t.Fatal(err)
	}
	path := filepath.Join(dir, "STATE")
	mustWrite(t, path, golden(t))
	for name, mode := range map[string]os.FileMode{path: 0, dir: 0o555} {
		if err := os.Chmod(name, mode); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { _ = os.Chmod(dir, 0o755) })
	var loadErr, openErr error
	asNobody(t, func() {
		_, loadErr = Load(path)
		_, openErr = Open(path)
	})
	if fe := asFileError(t, loadErr, ErrUnreadable); fe.Detail != "cannot be read: permission denied" {
		t.Errorf("detail is %q", fe.Detail)
	}
	asFileError(t, openErr, ErrNotWritable)
	if got := names(t, dir); len(got) != 1 {
		t.Errorf("folder has %v", got)
	}
}
