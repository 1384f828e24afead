package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"

	"golang.org/x/term"
)

// console is the one way to the two output streams. Its lock keeps a log line
// from tearing the lines of live progress, which stand below everything else
// and are redrawn. A write that fails is dropped: a closed stream ends no run.
type console struct {
	mu       sync.Mutex
	out, err io.Writer
	live     []string // the live lines on the screen
	closed   bool     // no more live lines
}

func newConsole(out, err io.Writer) *console { return &console{out: out, err: err} }

// Write writes whole lines to stderr. It never fails.
func (c *console) Write(b []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.around(c.err, b)
	return len(b), nil
}

// around writes b while the live lines are off the screen.
func (c *console) around(w io.Writer, b []byte) {
	if len(c.live) == 0 {
		_, _ = w.Write(b)
		return
	}
	_, _ = io.WriteString(c.err, erase(len(c.live)))
	_, _ = w.Write(b)
	_, _ = io.WriteString(c.err, draw(c.live))
}

// stdout returns the way to stdout.
func (c *console) stdout() io.Writer { return stdout{c} }

type stdout struct{ c *console }

// Write writes to stdout. It never fails.
func (s stdout) Write(b []byte) (int, error) {
	s.c.mu.Lock()
	defer s.c.mu.Unlock()
	s.c.around(s.c.out, b)
	return len(b), nil
}

// show replaces the live lines.
func (c *console) show(lines []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return
	}
	var b bytes.Buffer
	b.WriteString(erase(len(c.live)))
	b.WriteString(draw(lines))
	_, _ = c.err.Write(b.Bytes())
	c.live = lines
}

// endLive takes the live lines off the screen for good.
func (c *console) endLive() {
	c.show(nil)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
}

// erase moves the cursor up over n lines and clears from there on.
func erase(n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("\r\x1b[%dA\x1b[J", n)
}

func draw(lines []string) string {
	if len(lines) == 0 {
		return ""
	}
	return strings.Join(lines, "\n") + "\n"
}

// width returns the columns of the terminal that stderr is, or 0 if it is none
// that can be redrawn.
func (c *console) width() int {
	f, ok := c.err.(*os.File)
	if !ok || os.Getenv("TERM") == "dumb" || !term.IsTerminal(int(f.Fd())) {
		return 0
	}
	w, _, err := term.GetSize(int(f.Fd()))
	if err != nil || w <= 0 {
		return 80
	}
	return w
}
