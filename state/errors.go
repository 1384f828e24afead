package state

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// The kinds of a FileError, to be asked for with errors.Is.
var (
	ErrMissing      = errors.New("state file is missing")
	ErrOnlyBackup   = errors.New("only the backup of the state file is there")
	ErrEmpty        = errors.New("state file is empty")
	ErrCut          = errors.New("state file is cut off")
	ErrCorrupt      = errors.New("state file is not valid JSON")
	ErrTrailing     = errors.New("state file has trailing garbage")
	ErrUnknownField = errors.New("state file has an unknown field")
	ErrType         = errors.New("state file has a value of the wrong type")
	ErrNoFormat     = errors.New("state file names no format version")
	ErrNewer        = errors.New("state file is of a newer format")
	ErrInconsistent = errors.New("state file contradicts itself")
	ErrUnreadable   = errors.New("state file cannot be read")
	ErrNotAFile     = errors.New("state file is not a regular file")
	ErrNotWritable  = errors.New("state file's folder cannot be written")
	ErrHeld         = errors.New("state file is held by another run")
	ErrSchemas      = errors.New("structure cannot be had from the schemas file")
)

// ErrClosed is returned by the methods of a Store after Close.
var ErrClosed = errors.New("state store is closed")

// FileError says why a run may not start from a state file. The file is as it
// was.
type FileError struct {
	Path   string  // the file, as the user named it where it is the state file
	Kind   error   // one of the sentinels above
	Detail string  // one line about the file, without its path and without row values
	Next   string  // a shell command that helps; may be empty
	Holder *Holder // who holds the file; only with ErrHeld, and nil if it has not said
	Err    error   // the cause; may be nil; Detail tells it already
}

// Error returns path, detail and the command that helps on one line.
func (e *FileError) Error() string {
	msg := fmt.Sprintf("state file %s %s", e.Path, e.Detail)
	if e.Next != "" {
		msg += "; to go on from the state before it: " + e.Next
	}
	return msg
}

// Unwrap returns the kind and the cause.
func (e *FileError) Unwrap() []error {
	if e.Err == nil {
		return []error{e.Kind}
	}
	return []error{e.Kind, e.Err}
}

// Holder is who holds the lock of a state file.
type Holder struct {
	Host      string    `json:"host"`
	PID       int       `json:"pid"`
	StartedAt time.Time `json:"started_at"`
	RunID     string    `json:"run_id,omitempty"` // known from the first Save on
}

// String returns the holder in words.
func (h *Holder) String() string {
	s := fmt.Sprintf("process %d on host %s since %s", h.PID, h.Host, h.StartedAt.UTC().Format(time.RFC3339))
	if h.RunID != "" {
		s += " (run " + h.RunID + ")"
	}
	return s
}

// SaveError says why a state was not saved and what is on the disk instead.
type SaveError struct {
	Path    string // the state file
	Outcome string // what is there now, in words
	Err     error  // the cause
}

// Error returns cause and outcome on one line.
func (e *SaveError) Error() string {
	return fmt.Sprintf("save state %s: %v; %s", e.Path, e.Err, e.Outcome)
}

// Unwrap returns the cause.
func (e *SaveError) Unwrap() error { return e.Err }

// both returns err, and what failed while cleaning up after it, on one line.
func both(err, cleanup error) error {
	switch {
	case cleanup == nil:
		return err
	case err == nil:
		return cleanup
	}
	return fmt.Errorf("%w; and then: %w", err, cleanup)
}

// ShellQuote returns s as one word of a POSIX shell.
func ShellQuote(s string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("/._-+:@%,=", r)
	}
	if s != "" && strings.TrimFunc(s, plain) == "" && !strings.HasPrefix(s, "-") {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
