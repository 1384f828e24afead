package servers

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

const (
	cacheName    = "copydb-servers"
	pollInterval = 20 * time.Millisecond
)

// cacheDir returns the project's folder below the user's cache, which it makes.
func cacheDir() (string, error) {
	base, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("find cache folder: %w", err)
	}
	dir := filepath.Join(base, cacheName)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", fmt.Errorf("make cache folder: %w", err)
	}
	return dir, nil
}

// lockFile takes an exclusive lock that other processes (and other calls in
// this one) respect, and waits for it until ctx is done. Closing the file
// releases it; so does the death of the process.
func lockFile(ctx context.Context, path string) (*os.File, error) {
	for {
		f, err := tryLock(path)
		if err == nil || !errors.Is(err, syscall.EWOULDBLOCK) {
			return f, err
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("wait for lock %s: %w", path, context.Cause(ctx))
		case <-time.After(5 * pollInterval):
		}
	}
}

// tryLock is lockFile without waiting: it fails with EWOULDBLOCK.
func tryLock(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, fmt.Errorf("open lock: %w", err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		_ = f.Close() // nothing was written
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	return f, nil
}

// makeOnce makes a folder whole or not at all: fill fills a temporary folder
// beside it, which is then renamed. Any number of processes may call it.
func makeOnce(ctx context.Context, dir string, fill func(tmp string) error) error {
	if _, err := os.Stat(dir); err == nil {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return err
	}
	lock, err := lockFile(ctx, dir+".lock")
	if err != nil {
		return err
	}
	defer lock.Close()
	if _, err := os.Stat(dir); err == nil {
		return nil
	}
	tmp := dir + ".tmp"
	if err := os.RemoveAll(tmp); err != nil {
		return err
	}
	if err := os.Mkdir(tmp, 0o755); err != nil {
		return err
	}
	if err := fill(tmp); err != nil {
		return errors.Join(err, os.RemoveAll(tmp))
	}
	return os.Rename(tmp, dir)
}
