// Command runner runs `go test` with the arguments behind its own flag and ends
// with a line that counts the tests: "N passed, N failed". It prints what
// `go test` prints for packages, and the output of tests that failed or were
// skipped. It is what `make test` runs.
//
// With -total, the tests are ended when that time is over: each test binary
// under way prints its goroutines.
package main

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"
)

// slowest is how many of the tests that take longest are named at the end.
const slowest = 20

// endWait is how long tests may take to end after a signal.
const endWait = 30 * time.Second

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	ok, err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "runner:", err)
	}
	if err != nil || !ok {
		os.Exit(1)
	}
}

// run returns whether all is well: go test said so, and at least one test
// passed.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) (bool, error) {
	flags := flag.NewFlagSet("runner", flag.ContinueOnError)
	flags.SetOutput(stderr)
	total := flags.Duration("total", 0, "end the tests after this time; 0 = never")
	if err := flags.Parse(args); err != nil {
		return false, err
	}
	tests := ctx
	if *total > 0 {
		var cancel context.CancelFunc
		tests, cancel = context.WithTimeout(ctx, *total)
		defer cancel()
	}
	cmd := command(tests, flags.Args())
	cmd.Stderr = stderr
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		return false, err
	}
	if err := cmd.Start(); err != nil {
		return false, err
	}
	c := &counter{out: stdout, held: map[string][]string{}}
	readErr := c.read(pipe)
	waitErr := cmd.Wait()
	if tests.Err() != nil && ctx.Err() == nil {
		readErr = errors.Join(readErr, fmt.Errorf("the tests took longer than %s", *total))
	}
	fmt.Fprintln(stdout, c.summary(waitErr == nil && readErr == nil))
	return waitErr == nil && c.failed == 0 && c.passed > 0, readErr
}

// command is go test in a process group of its own, so that the signal which
// ends it reaches the test binaries, too: the go command itself waits for them.
func command(ctx context.Context, args []string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "go", append([]string{"test", "-json"}, args...)...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error {
		sig := syscall.SIGINT
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			sig = syscall.SIGQUIT
		}
		return syscall.Kill(-cmd.Process.Pid, sig)
	}
	cmd.WaitDelay = endWait
	return cmd
}

// event is one line of `go test -json`.
type event struct {
	Action  string
	Package string
	Test    string
	Output  string
	Elapsed float64 // seconds
}

// counter counts tests, subtests included, and prints what is worth printing.
type counter struct {
	out                     io.Writer
	passed, failed, skipped int
	held                    map[string][]string // output of tests under way, by package and test
	failures                []string
	slow                    []event // top-level tests that passed
}

func (c *counter) read(r io.Reader) error {
	lines := bufio.NewReader(r)
	for {
		line, err := lines.ReadBytes('\n')
		if len(line) > 0 {
			c.line(line)
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read the output of go test: %w", err)
		}
	}
}

func (c *counter) line(line []byte) {
	var e event
	if json.Unmarshal(line, &e) != nil {
		fmt.Fprint(c.out, string(line)) // of a compiler, say
		return
	}
	key := e.Package + " " + e.Test
	switch {
	case e.Action == "output" && e.Test != "":
		c.held[key] = append(c.held[key], e.Output)
	case e.Action == "output" || e.Action == "build-output":
		if e.Output != "PASS\n" {
			fmt.Fprint(c.out, e.Output)
		}
	case e.Test == "":
	case e.Action == "pass":
		c.passed++
		delete(c.held, key)
		if !strings.Contains(e.Test, "/") {
			c.slow = append(c.slow, e)
		}
	case e.Action == "skip":
		c.skipped++
		c.show(key)
	case e.Action == "fail":
		c.failed++
		c.failures = append(c.failures, key)
		c.show(key)
	}
}

// show prints what a test said, but for the lines that only say that it runs.
func (c *counter) show(key string) {
	for _, text := range c.held[key] {
		if !strings.HasPrefix(text, "=== ") {
			fmt.Fprint(c.out, text)
		}
	}
	delete(c.held, key)
}

// summary is the closing line. A test binary that died has tests that neither
// passed nor failed: they count as failed.
func (c *counter) summary(ok bool) string {
	failed := c.failed
	for key, texts := range c.held {
		if started(texts) {
			failed++
			c.failures = append(c.failures, key+" (did not end)")
			c.show(key)
		}
	}
	if !ok && failed == 0 {
		failed = 1 // a package that did not build, say
	}
	var b strings.Builder
	slices.SortStableFunc(c.slow, func(a, b event) int { return cmp.Compare(b.Elapsed, a.Elapsed) })
	for _, e := range c.slow[:min(len(c.slow), slowest)] {
		if e.Elapsed > 1 {
			fmt.Fprintf(&b, "%6.1f s %s %s\n", e.Elapsed, e.Package, e.Test)
		}
	}
	for _, f := range c.failures {
		fmt.Fprintf(&b, "FAILED %s\n", f)
	}
	fmt.Fprintf(&b, "%d passed, %d failed", c.passed, failed)
	if c.skipped > 0 {
		fmt.Fprintf(&b, ", %d skipped", c.skipped)
	}
	return b.String()
}

func started(texts []string) bool {
	return len(texts) > 0 && strings.HasPrefix(texts[0], "=== RUN")
}
