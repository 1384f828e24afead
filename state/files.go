package state

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// The names beside a state file, and its mode: it holds bounds of key ranges.
const (
	backupSuffix  = ".bak"
	lockSuffix    = ".lock"
	schemasSuffix = ".schemas"
	tempSuffix    = ".tmp"
	fileMode      = 0o600
)

// maxLinks is how many symbolic links the kernel follows, too.
const maxLinks = 40

// resolve follows the symbolic links that path ends in, so that a rename to the
// result keeps them. What the last one names need not exist.
func resolve(path string) (string, error) {
	for range maxLinks {
		info, err := os.Lstat(path)
		if errors.Is(err, fs.ErrNotExist) || err == nil && info.Mode()&fs.ModeSymlink == 0 {
			return path, nil
		}
		if err != nil {
			return "", err
		}
		link, err := os.Readlink(path)
		if err != nil {
			return "", err
		}
		if !filepath.IsAbs(link) {
			dir, err := filepath.EvalSymlinks(filepath.Dir(path))
			if err != nil {
				return "", err
			}
			link = filepath.Join(dir, link)
		}
		path = link
	}
	return "", &fs.PathError{Op: "follow", Path: path, Err: syscall.ELOOP}
}

// writeSynced makes a file of mode 0600 whose content is on the disk when it
// returns nil, and returns what the file is. A file that it could not finish is
// removed.
func writeSynced(path string, content io.Reader) (info fs.FileInfo, err error) {
	if err := removeIfThere(path); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, fileMode)
	if err != nil {
		return nil, err
	}
	defer func() {
		if closeErr := f.Close(); err == nil {
			err = closeErr
		}
		if err != nil {
			err = both(err, removeIfThere(path))
		}
	}()
	if err := f.Chmod(fileMode); err != nil { // a umask may have taken more
		return nil, err
	}
	if _, err := io.Copy(f, content); err != nil {
		return nil, err
	}
	if err := f.Sync(); err != nil {
		return nil, err
	}
	return f.Stat()
}

func removeIfThere(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// isThere reports whether anything has that name; what cannot be looked at
// counts as there, so that nobody writes over it.
func isThere(path string) bool {
	_, err := os.Lstat(path)
	return !errors.Is(err, fs.ErrNotExist)
}

// syncDir makes the names in a folder durable, where its file system can.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	err = d.Sync()
	if errors.Is(err, syscall.EINVAL) || errors.Is(err, syscall.ENOTSUP) {
		err = nil
	}
	return both(err, d.Close())
}

// linkOrCopy gives a second name to the content of from, with mode 0600. Where
// the file system knows no links, or the mode is another's to change, that is a
// copy.
func linkOrCopy(from, to string, info fs.FileInfo) error {
	if err := removeIfThere(to); err != nil {
		return err
	}
	if info.Mode().Perm() == fileMode && os.Link(from, to) == nil {
		return nil
	}
	f, err := os.Open(from)
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := writeSynced(to, f); err != nil {
		return fmt.Errorf("copy %s: %w", from, err)
	}
	return nil
}
