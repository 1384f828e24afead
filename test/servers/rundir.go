package servers

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"syscall"
)

// runs holds this process's folder for data of servers: one per process, with
// a lock on it for as long as the process lives.
var runs struct {
	sync.Mutex
	dir  string
	lock *os.File
	next int
}

// newRunDir makes a folder for one server. The first call also removes the
// folders of processes that are gone without having done so.
func newRunDir(ctx context.Context) (string, error) {
	runs.Lock()
	defer runs.Unlock()
	if runs.dir == "" {
		if err := openRuns(ctx); err != nil {
			return "", err
		}
	}
	runs.next++
	dir := filepath.Join(runs.dir, fmt.Sprintf("s%d", runs.next))
	if err := os.Mkdir(dir, 0o755); err != nil {
		return "", fmt.Errorf("make folder for a server: %w", err)
	}
	return dir, nil
}

func openRuns(ctx context.Context) error {
	cache, err := cacheDir()
	if err != nil {
		return err
	}
	base := filepath.Join(cache, "run")
	if err := os.MkdirAll(base, 0o755); err != nil {
		return fmt.Errorf("make folder for servers: %w", err)
	}
	guard, err := lockFile(ctx, filepath.Join(cache, "run.lock"))
	if err != nil {
		return err
	}
	defer guard.Close()
	if err := sweepRuns(base); err != nil {
		return err
	}
	dir, err := os.MkdirTemp(base, "")
	if err != nil {
		return fmt.Errorf("make folder for servers: %w", err)
	}
	lock, err := tryLock(filepath.Join(dir, "lock"))
	if err != nil {
		return err
	}
	runs.dir, runs.lock = dir, lock
	return nil
}

func sweepRuns(base string) error {
	entries, err := os.ReadDir(base)
	if err != nil {
		return fmt.Errorf("list folders of servers: %w", err)
	}
	for _, e := range entries {
		dir := filepath.Join(base, e.Name())
		lock, err := tryLock(filepath.Join(dir, "lock"))
		if errors.Is(err, syscall.EWOULDBLOCK) {
			continue
		}
		if err != nil {
			return err
		}
		err = os.RemoveAll(dir)
		_ = lock.Close() // the file is gone
		if err != nil {
			return fmt.Errorf("remove folder of a dead process: %w", err)
		}
	}
	return nil
}

// dropRunDir removes a server's folder, and the process's own with the last.
func dropRunDir(dir string) error {
	runs.Lock()
	defer runs.Unlock()
	err := os.RemoveAll(dir)
	left, readErr := filepath.Glob(filepath.Join(runs.dir, "s*"))
	if readErr == nil && len(left) == 0 {
		err = errors.Join(err, os.RemoveAll(runs.dir), runs.lock.Close())
		runs.dir, runs.lock = "", nil
	}
	return err
}
