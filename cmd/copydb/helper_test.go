package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/copydb/copydb/copydb"
	"github.com/copydb/copydb/state"
)

// asCommand, set in the environment, makes the test binary be the command, with
// the work that it names.
const asCommand = "COPYDB_TEST_COMMAND"

func TestMain(m *testing.M) {
	if name := os.Getenv(asCommand); name != "" {
		ignoreBrokenPipes()
		p := &program{
			stdin: os.Stdin, console: newConsole(os.Stdout, os.Stderr), environ: os.Environ(), started: started, notify: notifySignals,
			work: work{run: fakeRuns[name]},
		}
		os.Exit(p.execute(context.Background(), os.Args[1:]))
	}
	os.Exit(m.Run())
}

// fakeRuns stand in for copydb.Run where the command around it is tested.
var fakeRuns = map[string]func(context.Context, copydb.Options) error{
	// obedient stops when it is told to.
	"obedient": func(ctx context.Context, opt copydb.Options) error {
		begin(opt)
		<-ctx.Done()
		return fmt.Errorf("copy table: %w", ctx.Err())
	},
	// deaf never ends.
	"deaf": func(_ context.Context, opt copydb.Options) error {
		begin(opt)
		select {}
	},
	// cut ends when the second signal comes.
	"cut": func(_ context.Context, opt copydb.Options) error {
		begin(opt)
		<-opt.Abort
		return errStopped
	},
	// talker writes much, whoever listens, then leaves a file that says so.
	"talker": func(ctx context.Context, opt copydb.Options) error {
		begin(opt)
		for range 200 {
			opt.Reporter.Report(copydb.WarningRecord{Message: strings.Repeat("w", 1000)})
			opt.Logger.Warn(strings.Repeat("l", 1000))
		}
		if err := os.WriteFile(opt.StatePath+".finished", nil, 0o600); err != nil {
			return err
		}
		opt.Reporter.Report(copydb.SummaryRecord{StopPoint: &state.Position{File: "b.1", Pos: 4}})
		return ctx.Err()
	},
}

var errStopped = &copydb.StopError{Reason: "SIGINT", Code: copydb.ExitInterrupt}

// begin says that the run has begun, and writes a state.
func begin(opt copydb.Options) {
	_ = os.WriteFile(opt.StatePath, []byte("{}"), 0o600)
	opt.Reporter.Report(copydb.RunRecord{MigrationID: "m1", RunID: "r1", StatePath: opt.StatePath})
	opt.Reporter.Report(copydb.ProgressRecord{Phase: state.PhaseSnapshot, TablesTotal: 3, Rows: 1204, ETASeconds: 80, LagSeconds: -1})
	opt.Logger.Warn("the fake run has begun")
}

// syncBuffer is a bytes.Buffer for several goroutines.
type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *syncBuffer) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(b)
}

func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// called is what one call of the command left.
type called struct {
	code        int
	out, stderr string
	opt         *copydb.Options // what the work was called with
}

type caller struct {
	env   []string
	stdin string
	work  work
}

// call runs a command line in this process, with signals that never come.
func (c caller) call(t *testing.T, args ...string) called {
	t.Helper()
	var out, stderr syncBuffer
	var got called
	w := c.work
	if w.run == nil {
		w.run = func(context.Context, copydb.Options) error { return nil }
	}
	inner := w.run
	w.run = func(ctx context.Context, opt copydb.Options) error { got.opt = &opt; return inner(ctx, opt) }
	p := &program{
		stdin: strings.NewReader(c.stdin), console: newConsole(&out, &stderr), environ: c.env, started: time.Now(),
		notify: noSignals, work: w,
	}
	got.code = p.execute(t.Context(), args)
	got.out, got.stderr = out.String(), stderr.String()
	return got
}

func noSignals() (signals <-chan os.Signal, release func()) { return nil, func() {} }

// small are the arguments of a small copy.
func small(more ...string) []string {
	return append([]string{"--source", "mysql://u@src.example", "--target", "mysql://v@dst.example:33", "--include", "shop.*"}, more...)
}
