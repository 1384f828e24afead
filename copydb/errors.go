package copydb

import (
	"context"
	"errors"
	"fmt"
)

// The exit codes of the command; see docs/exit-codes.md.
const (
	ExitOK         = 0
	ExitFailed     = 1
	ExitCrash      = 2
	ExitPreflight  = 3
	ExitState      = 4
	ExitLogGone    = 5
	ExitDiffers    = 6
	ExitResumable  = 7
	ExitUsage      = 64
	ExitDeadline   = 75
	ExitInterrupt  = 130
	ExitTerminated = 143
)

// Error is an error for the user: what failed, where, and what to do next. Code
// is the exit code.
type Error struct {
	Code    int
	Where   string // table, chunk, position, file or key; may be empty
	Key     string // the key of the row that it is about; only with Options.ShowKeys
	Message string // may be empty: then Err speaks
	Next    string // what to do next; may be empty
	Err     error  // the cause; may be nil
}

// Error returns the message and its cause on one line.
func (e *Error) Error() string {
	msg := e.Message
	switch {
	case msg == "" && e.Err != nil:
		msg = e.Err.Error()
	case e.Err != nil:
		msg = fmt.Sprintf("%s: %v", msg, e.Err)
	}
	if e.Where != "" {
		return e.Where + ": " + msg
	}
	return msg
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// StopError is the cause of a context that was cancelled to stop a run from
// outside: a signal or the deadline.
type StopError struct {
	Reason string // SIGINT, SIGTERM, SIGHUP, deadline
	Code   int
}

// Error implements error.
func (e *StopError) Error() string { return "stopped by " + e.Reason }

// Stopped returns the StopError that ended ctx, or nil.
func Stopped(ctx context.Context) *StopError {
	var stop *StopError
	if ctx.Err() != nil && errors.As(context.Cause(ctx), &stop) {
		return stop
	}
	return nil
}

// ExitCode returns the exit code that stands for err.
func ExitCode(err error) int {
	if err == nil {
		return ExitOK
	}
	var stop *StopError
	if errors.As(err, &stop) {
		return stop.Code
	}
	var e *Error
	if errors.As(err, &e) {
		return e.Code
	}
	return ExitFailed
}
