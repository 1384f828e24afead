package lab

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// stopWait is how long copydb may take to end after SIGINT: more than its own
// stop_timeout.
const stopWait = 20 * time.Second

// Process is a call of copydb under way.
type Process struct {
	cmd  *exec.Cmd
	done chan struct{}
	err  error // valid once done is closed
	took time.Duration
	use  Usage
}

// command prepares a call of copydb in the Lab's folder. SIGINT stops it when
// ctx ends. It is in a process group of its own, so that Ctrl-C on a terminal
// reaches it once: from here.
func (l *Lab) command(ctx context.Context, stdout, stderr io.Writer, args []string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, l.Binary, args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = l.Dir, stdout, stderr
	cmd.Env = append(os.Environ(), "COPYDB_SOURCE_PASSWORD="+password, "COPYDB_TARGET_PASSWORD="+password)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = stopWait
	return cmd
}

// Start starts copydb.
func (l *Lab) Start(ctx context.Context, stdout, stderr io.Writer, args ...string) (*Process, error) {
	p := &Process{cmd: l.command(ctx, stdout, stderr, args), done: make(chan struct{})}
	began := time.Now()
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start copydb: %w", err)
	}
	ended, peak := make(chan struct{}), make(chan int64)
	go func() { peak <- WatchPeak(p.cmd.Process.Pid, ended) }()
	go func() {
		p.err = p.cmd.Wait()
		p.took = time.Since(began)
		close(ended)
		p.use = Usage{CPU: p.cmd.ProcessState.UserTime() + p.cmd.ProcessState.SystemTime(), Peak: <-peak}
		close(p.done)
	}()
	return p, nil
}

// Usage waits for the end and returns what the process took.
func (p *Process) Usage() Usage {
	<-p.done
	return p.use
}

// Done is closed when the process has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Interrupt sends SIGINT, as Ctrl-C does.
func (p *Process) Interrupt() error { return p.cmd.Process.Signal(os.Interrupt) }

// Wait waits for the end and returns the exit code and how long the process
// lived. A process that a signal killed is an error.
func (p *Process) Wait() (code int, took time.Duration, err error) {
	<-p.done
	var exit *exec.ExitError
	if errors.As(p.err, &exit) && exit.Exited() {
		return exit.ExitCode(), p.took, nil
	}
	if code := p.cmd.ProcessState; p.err != nil && code != nil && code.Exited() {
		return code.ExitCode(), p.took, nil // it ended by itself after its context had
	}
	return 0, p.took, p.err
}

// Run runs copydb to its end.
func (l *Lab) Run(ctx context.Context, stdout, stderr io.Writer, args ...string) (code int, took time.Duration, err error) {
	p, err := l.Start(ctx, stdout, stderr, args...)
	if err != nil {
		return 0, 0, err
	}
	return p.Wait()
}

// State is what the demo and the benchmark read of a state file.
type State struct {
	Phase  string `json:"phase"`
	Tables []struct {
		Rows int64 `json:"rows"`
	} `json:"tables"`
}

// State reads a state file of the Lab's folder; the zero State where there is
// none yet.
func (l *Lab) State(name string) (State, error) {
	var s State
	raw, err := os.ReadFile(filepath.Join(l.Dir, name))
	if errors.Is(err, os.ErrNotExist) {
		return s, nil
	}
	if err != nil {
		return s, err
	}
	return s, json.Unmarshal(raw, &s)
}

// Rows is how many rows of all tables are copied.
func (s State) Rows() int64 {
	var n int64
	for _, t := range s.Tables {
		n += t.Rows
	}
	return n
}
