package harness

import (
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

const (
	// RunTimeout bounds Run and Resume.
	RunTimeout = 3 * time.Minute
	pollEvery  = 10 * time.Millisecond
	shownBytes = 6 << 10 // of each stream, when a test fails
)

// Command says how a process is started.
type Command struct {
	Build  Build
	Dir    string   // working directory; empty: a new folder
	Env    []string // besides the test's own environment without COPYDB_*
	Stdin  string
	Prefix []string // a program and its arguments that calls the binary, as in nohup

	// Stdout and Stderr, if not nil, are given to the process in place of what
	// the harness collects; the harness closes them once it has started.
	Stdout, Stderr *os.File
	// Secrets must not be in the output; Password is always looked for.
	Secrets []string
}

// Process is one run of the binary.
type Process struct {
	t       testing.TB
	args    []string
	cmd     *exec.Cmd
	began   time.Time
	took    time.Duration // valid once done is closed
	done    chan struct{}
	out     output
	err     output
	secrets []string
	checked sync.Once
}

// Start starts the binary. The process is killed when the test ends, and its
// output shown if the test failed.
func (c Command) Start(t testing.TB, args ...string) *Process {
	t.Helper()
	argv := append(append(append([]string{}, c.Prefix...), Binary(t, c.Build)), args...)
	p := &Process{t: t, args: args, cmd: exec.Command(argv[0], argv[1:]...), done: make(chan struct{}),
		secrets: append([]string{Password}, c.Secrets...)}
	p.cmd.Dir = c.Dir
	if c.Dir == "" {
		p.cmd.Dir = t.TempDir()
	}
	p.cmd.Env = append(cleanEnviron(), c.Env...)
	p.cmd.Stdin = strings.NewReader(c.Stdin)
	p.cmd.Stdout, p.cmd.Stderr = writer(c.Stdout, &p.out), writer(c.Stderr, &p.err)
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	dieWithParent(p.cmd.SysProcAttr)
	// The pipes are ours; a grandchild that keeps one open must not hold Wait.
	p.cmd.WaitDelay = 2 * time.Second
	if err := p.start(); err != nil {
		t.Fatalf("start copydb: %v", err)
	}
	for _, f := range []*os.File{c.Stdout, c.Stderr} {
		if f != nil {
			_ = f.Close() // the process has its own
		}
	}
	t.Cleanup(p.cleanup)
	return p
}

func writer(given *os.File, ours *output) io.Writer {
	if given != nil {
		return given
	}
	return ours
}

// start keeps the thread that started the process until it ends: the kernel
// ties the process to it.
func (p *Process) start() error {
	p.began = time.Now()
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := p.cmd.Start()
		started <- err
		if err == nil {
			_ = p.cmd.Wait() // how it ended is read from ProcessState
			p.took = time.Since(p.began)
			close(p.done)
		}
	}()
	return <-started
}

// cleanEnviron is the environment without variables that copydb would read.
func cleanEnviron() []string {
	var env []string
	for _, e := range os.Environ() {
		if !strings.HasPrefix(e, "COPYDB_") {
			env = append(env, e)
		}
	}
	return env
}

func (p *Process) cleanup() {
	if p.Running() {
		_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL)
		<-p.done
	}
	p.check()
	if p.t.Failed() {
		p.t.Logf("copydb %s\nexit code %d after %s\nstdout:\n%s\nstderr:\n%s", strings.Join(p.args, " "), p.cmd.ProcessState.ExitCode(),
			p.took.Round(time.Millisecond), tail(p.Stdout()), tail(p.Stderr()))
	}
}

// check looks for what must be in no output. It runs once, after the end.
func (p *Process) check() {
	p.t.Helper()
	p.checked.Do(func() {
		for name, text := range map[string]string{"stdout": p.Stdout(), "stderr": p.Stderr()} {
			for _, bad := range []string{"WARNING: DATA RACE", "panic:", "\ngoroutine ", "runtime error"} {
				if strings.Contains(text, bad) {
					p.t.Errorf("%q on %s of copydb %s", bad, name, strings.Join(p.args, " "))
				}
			}
			for _, secret := range p.secrets {
				if strings.Contains(text, secret) {
					p.t.Errorf("a password on %s of copydb %s", name, strings.Join(p.args, " "))
				}
			}
		}
	})
}

// PID returns the process id.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Running tells whether the process has not ended.
func (p *Process) Running() bool {
	select {
	case <-p.done:
		return false
	default:
		return true
	}
}

// Signal sends a signal; one to a process that has ended is no error.
func (p *Process) Signal(sig syscall.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		p.t.Fatalf("send %s: %v", sig, err)
	}
}

// Kill9 ends the process at once and waits for it.
func (p *Process) Kill9() {
	p.t.Helper()
	p.Signal(syscall.SIGKILL)
	<-p.done
}

// Wait waits for the end and returns the exit code, -1 after a signal that the
// process did not catch. If it does not end in time, the test fails with the
// stacks of all its goroutines.
func (p *Process) Wait(timeout time.Duration) int {
	p.t.Helper()
	select {
	case <-p.done:
		p.check()
		return p.cmd.ProcessState.ExitCode()
	case <-time.After(timeout):
	}
	p.checked.Do(func() {}) // the stacks below are wanted
	p.Signal(syscall.SIGQUIT)
	select {
	case <-p.done:
	case <-time.After(5 * time.Second):
		p.Kill9()
	}
	p.t.Fatalf("copydb %s has not ended after %s", strings.Join(p.args, " "), timeout)
	return -1
}

// Ended returns a channel that is closed when the process has ended.
func (p *Process) Ended() <-chan struct{} { return p.done }

// ExitCode returns the exit code of a process that has ended.
func (p *Process) ExitCode() int { return p.cmd.ProcessState.ExitCode() }

// Took returns how long the process has run, once it has ended.
func (p *Process) Took() time.Duration { return p.took }

// RequireExit waits for the end and fails the test unless the exit code is one
// of those.
func (p *Process) RequireExit(timeout time.Duration, codes ...int) int {
	p.t.Helper()
	got := p.Wait(timeout)
	for _, c := range codes {
		if got == c {
			return got
		}
	}
	p.t.Fatalf("copydb %s: exit code %d, want %v", strings.Join(p.args, " "), got, codes)
	return got
}

// Stdout returns what the process has written to stdout so far.
func (p *Process) Stdout() string { return p.out.String() }

// Stderr returns what the process has written to stderr so far.
func (p *Process) Stderr() string { return p.err.String() }

// WaitFor waits until the condition holds and fails the test if it does not in
// time, or if the process ends before.
func (p *Process) WaitFor(what string, timeout time.Duration, holds func() bool) {
	p.t.Helper()
	for deadline := time.Now().Add(timeout); !holds(); time.Sleep(pollEvery) {
		if !p.Running() && !holds() {
			p.t.Fatalf("copydb ended (exit code %d) before: %s", p.ExitCode(), what)
		}
		if time.Now().After(deadline) {
			p.t.Fatalf("after %s still not: %s", timeout, what)
		}
	}
}

// WaitForStderr waits until the text is on stderr.
func (p *Process) WaitForStderr(text string, timeout time.Duration) {
	p.t.Helper()
	p.WaitFor("stderr has "+text, timeout, func() bool { return strings.Contains(p.Stderr(), text) })
}

func tail(text string) string {
	if len(text) > shownBytes {
		return "...\n" + text[len(text)-shownBytes:]
	}
	return text
}

// output collects a stream.
type output struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

// Write implements io.Writer.
func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.Write(b)
}

// String returns what was written so far.
func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.String()
}
