package config

import (
	"fmt"
	"strings"
)

// Error is everything that is wrong with a configuration. It holds no password.
type Error struct {
	Problems []Problem
}

// Problem is one thing that is wrong. Where is file:line or the flag or
// variable that brought it; it may be empty.
type Problem struct {
	Where   string
	Message string
}

// Error returns the problems, one on each line.
func (e *Error) Error() string {
	lines := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		lines[i] = p.String()
	}
	return strings.Join(lines, "\n")
}

// String returns the problem on one line.
func (p Problem) String() string {
	if p.Where == "" {
		return p.Message
	}
	return p.Where + ": " + p.Message
}

// problems collects what is wrong.
type problems []Problem

func (p *problems) add(where, format string, args ...any) {
	*p = append(*p, Problem{Where: where, Message: fmt.Sprintf(format, args...)})
}

func (p problems) err() error {
	if len(p) == 0 {
		return nil
	}
	return &Error{Problems: p}
}
