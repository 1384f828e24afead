package state

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// Store is the one writer of a state file and of the files beside it. All
// methods may be called from several goroutines; they take turns.
type Store struct {
	path string // symbolic links resolved
	now  func() time.Time

	mu      sync.Mutex
	closed  bool
	lock    *lockFile
	schemas schemas
	known   fs.FileInfo // the state file as this store wrote it; nil before the first Save
}

// Open takes the lock of the state file at path, which need not exist yet, and
// removes what a killed run has left half written. The lock is held until Close
// or the end of the process. A symbolic link is followed once, here. Every
// error is a *FileError; of kind ErrHeld it names the holder.
func Open(path string) (*Store, error) { return open(path, time.Now) }

func open(path string, now func() time.Time) (*Store, error) {
	resolved, err := resolve(path)
	if err != nil {
		return nil, notWritable(path, err)
	}
	s := &Store{path: resolved, now: now, schemas: schemas{path: resolved + schemasSuffix}}
	if s.lock, err = acquire(resolved, s.now()); err != nil {
		return nil, err
	}
	if err := s.clean(); err != nil {
		return nil, both(notWritable(resolved, err), s.lock.release())
	}
	return s, nil
}

// clean removes temporary files and proves that one can be made.
func (s *Store) clean() error {
	if err := removeIfThere(s.path + backupSuffix + tempSuffix); err != nil {
		return err
	}
	if _, err := writeSynced(s.path+tempSuffix, bytes.NewReader(nil)); err != nil {
		return err
	}
	return os.Remove(s.path + tempSuffix)
}

// Path returns the path of the state file, symbolic links resolved.
func (s *Store) Path() string { return s.path }

// Exists reports whether there is a state file, valid or not.
func (s *Store) Exists() bool { return isThere(s.path) }

// BackupExists reports whether there is a backup, valid or not.
func (s *Store) BackupExists() bool { return isThere(s.path + backupSuffix) }

// Save writes st with the present time and format version, which are not set in
// st itself; st must not change meanwhile. When it returns nil, the state and
// the structures that it names are on the disk, and the state before is the
// backup. On an error, which is ErrClosed or a *SaveError, the state file is a
// whole one: the one before, or, where only its folder could not be synced, st.
func (s *Store) Save(st *State) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return ErrClosed
	}
	out := *st
	out.FormatVersion = formatFor(&out)
	out.UpdatedAt = s.now().UTC()
	if err := s.prepare(&out); err != nil {
		return s.notSaved(err)
	}
	data, err := encode(&out)
	if err != nil {
		return s.notSaved(err)
	}
	if err := s.replace(data); err != nil {
		return err
	}
	// It only helps to word another run's refusal; the state is safe by now.
	_ = s.lock.setRun(out.RunID)
	return nil
}

// prepare makes sure that st can be loaded again, with its structures.
func (s *Store) prepare(st *State) error {
	if err := st.check(); err != nil {
		return fmt.Errorf("check state: %w", err)
	}
	for i := range st.Tables {
		for _, since := range st.Tables[i].Structures {
			if ok, err := s.schemas.has(since.Digest); err != nil {
				return err
			} else if !ok {
				return fmt.Errorf("check state: table %q.%q: structure %s was not stored",
					st.Tables[i].Database, st.Tables[i].Table, since.Digest)
			}
		}
	}
	return s.schemas.sync()
}

func (s *Store) replace(data []byte) error {
	temp := s.path + tempSuffix
	info, err := writeSynced(temp, bytes.NewReader(data))
	if err != nil {
		return s.notSaved(err)
	}
	if err := s.keepBackup(); err != nil {
		return s.notSaved(both(err, removeIfThere(temp)))
	}
	if err := os.Rename(temp, s.path); err != nil {
		return s.notSaved(both(err, removeIfThere(temp)))
	}
	s.known = info
	if err := syncDir(filepath.Dir(s.path)); err != nil {
		return &SaveError{Path: s.path, Err: err,
			Outcome: "the new state is in place, but a crash of the machine may bring back the one before"}
	}
	return nil
}

// keepBackup makes the present state file the backup, and never leaves the
// state file without its name.
func (s *Store) keepBackup() error {
	info, err := os.Lstat(s.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if !s.wrote(info) {
		if _, fail := load(s.path); fail != nil {
			return nil //nolint:nilerr // damaged from outside; the backup there is, is better
		}
	}
	backup := s.path + backupSuffix
	temp := backup + tempSuffix
	if err := linkOrCopy(s.path, temp, info); err != nil {
		return err
	}
	if err := os.Rename(temp, backup); err != nil {
		return both(err, removeIfThere(temp))
	}
	// A rename between two names of one file does nothing, and a run killed
	// just here has left such names.
	return removeIfThere(temp)
}

// wrote reports whether the state file is as this store wrote it.
func (s *Store) wrote(info fs.FileInfo) bool {
	return s.known != nil && os.SameFile(s.known, info) &&
		s.known.Size() == info.Size() && s.known.ModTime().Equal(info.ModTime())
}

// notSaved wraps the cause of a Save that left the file alone.
func (s *Store) notSaved(err error) error {
	outcome := "no state had been saved before"
	if s.Exists() {
		outcome = "the state saved before is intact"
	}
	return &SaveError{Path: s.path, Outcome: outcome, Err: err}
}

// Close lets go of the lock, whose file stays. A second Close does nothing.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	s.closed = true
	if err := both(s.schemas.close(), s.lock.release()); err != nil {
		return fmt.Errorf("close state %s: %w", s.path, err)
	}
	return nil
}
