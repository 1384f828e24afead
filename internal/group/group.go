// Package group starts goroutines that have an owner: a Group waits for them,
// cancels all when one fails, and turns a panic into an error.
package group

import (
	"context"
	"fmt"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"

	"golang.org/x/sync/errgroup"
)

// PanicError is a panic of a goroutine, with its stack for the log.
type PanicError struct {
	Goroutine string
	Value     any
	Place     string // function, file:line
	Stack     []byte
}

// Error names the goroutine, the panic's value and its place.
func (e *PanicError) Error() string {
	return fmt.Sprintf("crash in %s: %v (a bug, in %s)", e.Goroutine, e.Value, e.Place)
}

// Group is an errgroup whose goroutines have names.
type Group struct{ g *errgroup.Group }

// WithContext returns a Group and the context its goroutines should use: it
// ends when one of them fails, with that error as its cause, or with ctx.
func WithContext(ctx context.Context) (*Group, context.Context) {
	g, ctx := errgroup.WithContext(ctx)
	return &Group{g}, ctx
}

// Go runs fn in a goroutine.
func (g *Group) Go(name string, fn func() error) {
	g.g.Go(func() error { return Call(name, fn) })
}

// Wait returns when all have ended, with the first error.
func (g *Group) Wait() error { return g.g.Wait() }

// Call runs fn and returns its panic, if it has one, as a *PanicError.
func Call(name string, fn func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &PanicError{Goroutine: name, Value: v, Place: place(), Stack: debug.Stack()}
		}
	}()
	return fn()
}

// place finds the function that panicked, from within a deferred call.
func place() string {
	pcs := make([]uintptr, 64)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs)])
	for panicked := false; ; {
		f, more := frames.Next()
		switch {
		case f.Function == "runtime.gopanic":
			panicked = true
		case panicked && !strings.HasPrefix(f.Function, "runtime."):
			return fmt.Sprintf("%s, %s:%d", filepath.Base(f.Function), filepath.Base(f.File), f.Line)
		}
		if !more {
			return "an unknown place"
		}
	}
}
