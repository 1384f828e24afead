package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"github.com/copydb/copydb/copydb"
	"github.com/copydb/copydb/internal/group"
)

const (
	// abortTime is how long work may go on after the second signal; the process
	// has to be gone within a second.
	abortTime = 600 * time.Millisecond
	// lastWords is kept back of stop_timeout for the final report.
	lastWords = 300 * time.Millisecond
)

// supervisor lets work run until it ends, is stopped by a signal or by the
// deadline, or does not heed them in time.
type supervisor struct {
	signals     <-chan os.Signal
	stopTimeout time.Duration
	deadline    time.Time    // when stopping begins; zero: never
	saved       string       // what becomes of the state: "the state is saved in FILE"; may be empty
	say         func(string) // prints a line
	report      func()       // answers SIGUSR1

	stop    *copydb.StopError // why the run was stopped; nil: it was not
	signal  os.Signal         // the first signal
	abort   chan struct{}     // closed by the second signal
	aborted bool
	cancel  context.CancelCauseFunc
	last    <-chan time.Time // when to give up waiting for work
}

// run calls work and returns its error, or one that says that it did not end.
func (s *supervisor) run(ctx context.Context, work func(ctx context.Context, abort <-chan struct{}) error) error {
	ctx, s.cancel = context.WithCancelCause(ctx)
	defer s.cancel(nil)
	s.abort = make(chan struct{})
	done := make(chan error, 1)
	go func() { done <- group.Call("the work", func() error { return work(ctx, s.abort) }) }()
	var deadline <-chan time.Time
	if !s.deadline.IsZero() {
		deadline = time.After(time.Until(s.deadline))
	}
	for {
		select {
		case err := <-done:
			return s.settle(err)
		case sig := <-s.signals:
			if s.caught(sig) {
				return s.gaveUp()
			}
		case <-deadline:
			s.begin(&copydb.StopError{Reason: "deadline", Code: copydb.ExitDeadline}, "deadline: stopping")
		case <-s.last:
			return s.gaveUp()
		}
	}
}

// caught answers a signal, and reports whether to wait no more.
func (s *supervisor) caught(sig os.Signal) bool {
	name, code := signalCode(sig)
	switch {
	case sig == syscall.SIGUSR1:
		within(lastWords/3, s.report)
	case s.signal == nil:
		s.signal = sig
		again := "press Ctrl-C again to cut the connections"
		if sig != syscall.SIGINT {
			again = "send it again to cut the connections"
		}
		s.begin(&copydb.StopError{Reason: name, Code: code}, name+" received: stopping", again)
	case sig == syscall.SIGHUP && s.signal == sig:
		// A terminal that goes away sends it twice: the kernel and the shell.
	case !s.aborted:
		s.aborted = true
		close(s.abort)
		s.last = time.After(abortTime)
		s.tell(name + " received again: cutting the connections; the last checkpoint stays valid")
	default:
		return true
	}
	return false
}

// begin stops the run, unless it is being stopped already.
func (s *supervisor) begin(why *copydb.StopError, what string, more ...string) {
	line := what
	if s.saved != "" {
		line += "; " + s.saved
	}
	for _, m := range more {
		line += "; " + m
	}
	if s.stop == nil {
		s.stop = why
		s.cancel(why)
		s.last = time.After(s.stopTimeout - lastWords)
	}
	s.tell(line)
}

// tell prints a line, but does not wait for long where nobody reads it.
func (s *supervisor) tell(line string) { within(lastWords/3, func() { s.say(line) }) }

// settle makes sure that a stopped run ends with the code of what stopped it,
// unless it has a reason of its own.
func (s *supervisor) settle(err error) error {
	var own *copydb.Error
	if err == nil || s.stop == nil || errors.As(err, &own) || isA[*group.PanicError](err) {
		return err
	}
	if errors.Is(err, context.Canceled) && !isA[*copydb.StopError](err) {
		return s.stop
	}
	return err
}

func (s *supervisor) gaveUp() error {
	msg := fmt.Sprintf("stopped by %s, but the run did not end in time; the last checkpoint is valid", s.stop.Reason)
	if s.aborted {
		msg = fmt.Sprintf("stopped by %s, connections cut; the last checkpoint is valid", s.stop.Reason)
	}
	return &copydb.Error{Code: s.stop.Code, Message: msg}
}

// within calls fn and waits for it, but no longer than d: what fn writes to may
// be a pipe that nobody reads.
func within(d time.Duration, fn func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = group.Call("printing", func() error { fn(); return nil })
	}()
	select {
	case <-done:
	case <-time.After(d):
	}
}
