package main

import (
	"fmt"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
)

// panicError is a panic of our own code, with its place.
type panicError struct {
	value any
	place string
	stack []byte
}

// Error names the place but shows no trace.
func (e *panicError) Error() string {
	return fmt.Sprintf("a bug in copydb: %v (in %s); please report it", e.value, e.place)
}

// guard calls fn and turns its panic into an error.
func guard(fn func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &panicError{value: v, place: panicPlace(), stack: debug.Stack()}
		}
	}()
	return fn()
}

// panicPlace finds the function that panicked, from within a deferred call.
func panicPlace() string {
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
