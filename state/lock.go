package state

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
	"time"
)

// lockFile is an flock and the file it is held on. The kernel lets go of it when
// the process dies; the file stays, since a run that waits at the removed file
// and one that makes a new file would both hold a lock.
type lockFile struct {
	file *os.File
	self Holder
}

// maxLockTries bounds the race with somebody who removes the lock file.
const maxLockTries = 100

// acquire takes the lock of the state file at path, or says who has it.
func acquire(path string, now time.Time) (*lockFile, error) {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	l := &lockFile{self: Holder{Host: host, PID: os.Getpid(), StartedAt: now.UTC().Truncate(time.Second)}}
	name := path + lockSuffix
	for range maxLockTries {
		if l.file, err = tryLock(path, name); err != nil {
			return nil, err
		}
		if l.file != nil {
			break
		}
	}
	if l.file == nil {
		return nil, notWritable(path, fmt.Errorf("lock %s: the file is replaced again and again", name))
	}
	if err := l.write(); err != nil {
		return nil, both(notWritable(path, err), l.release())
	}
	return l, nil
}

// tryLock returns neither file nor error if the name has come to stand for
// another file in the meantime.
func tryLock(path, name string) (*os.File, error) {
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW|syscall.O_CLOEXEC, fileMode)
	if err != nil {
		return nil, notWritable(path, err)
	}
	switch err := flock(f); {
	case errors.Is(err, syscall.EWOULDBLOCK):
		return nil, both(held(path, f), f.Close())
	case err != nil:
		err = &os.PathError{Op: "lock", Path: name, Err: err}
		return nil, both(notWritable(path, err), f.Close())
	}
	mine, err := f.Stat()
	if err != nil {
		return nil, both(notWritable(path, err), f.Close())
	}
	if named, err := os.Lstat(name); err != nil || !os.SameFile(mine, named) {
		return nil, f.Close()
	}
	return f, nil
}

func flock(f *os.File) error {
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}

func notWritable(path string, err error) error {
	return &FileError{Path: path, Kind: ErrNotWritable, Err: err,
		Detail: fmt.Sprintf("cannot be written: %v", err)}
}

// held names the holder. There is none to name for the instant between its lock
// and its first write.
func held(path string, f *os.File) error {
	e := &FileError{Path: path, Kind: ErrHeld, Detail: "is held by another run that has not given its name yet"}
	var h Holder
	// One value only: the rest of a longer, older one may still follow.
	err := json.NewDecoder(io.NewSectionReader(f, 0, 1<<16)).Decode(&h)
	if err == nil && h.PID != 0 {
		e.Holder = &h
		e.Detail = "is held by another run: " + h.String()
	}
	return e
}

// setRun adds the run to what the file says of its holder.
func (l *lockFile) setRun(id string) error {
	if l.self.RunID == id {
		return nil
	}
	l.self.RunID = id
	return l.write()
}

// write puts the holder into the file, and cuts it afterwards so that a reader
// always finds a value.
func (l *lockFile) write() error {
	b, err := json.Marshal(l.self)
	if err != nil {
		return err
	}
	b = append(b, '\n')
	if _, err := l.file.WriteAt(b, 0); err != nil {
		return err
	}
	return l.file.Truncate(int64(len(b)))
}

func (l *lockFile) release() error { return l.file.Close() }
