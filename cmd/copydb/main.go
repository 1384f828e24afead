package main

import (
	"context"
	"io"
	"os"
	"runtime/debug"
	"time"

	"github.com/copydb/copydb/copydb"
	"github.com/copydb/copydb/internal/group"
)

// started is when the process began; --deadline counts from here.
var started = time.Now()

// memoryAim is the memory that the garbage collector tries to stay under, in
// bytes: what is in use is bounded by budgets, garbage of large rows is not.
const memoryAim = 320 << 20

func main() {
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(memoryAim)
	}
	os.Exit(run(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// run executes one command line and returns its exit code.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	ignoreBrokenPipes()
	p := &program{
		stdin: stdin, console: newConsole(stdout, stderr), environ: os.Environ(), started: started, notify: notifySignals,
		work: work{run: copydb.Run, check: copydb.Check, cleanup: copydb.Cleanup},
	}
	return p.execute(ctx, args)
}

// work is what the command hands over to.
type work struct {
	run     func(context.Context, copydb.Options) error
	check   func(context.Context, copydb.Options) (*copydb.CheckResult, error)
	cleanup func(context.Context, copydb.Options) error
}

// program is one call of the command.
type program struct {
	stdin   io.Reader
	console *console
	environ []string
	started time.Time
	notify  func() (signals <-chan os.Signal, release func())
	work    work

	flags  flags
	origin map[string]string // where a flag's value came from, by the flag's name

	envSets int // how many of flags.set, the first ones, come from the environment
}

func (p *program) execute(ctx context.Context, args []string) int {
	root := p.rootCommand()
	root.SetArgs(args)
	root.SetIn(p.stdin)
	root.SetOut(p.console.stdout())
	root.SetErr(p.console)
	err := group.Call("the command", func() error { return root.ExecuteContext(ctx) })
	p.complain(err)
	return exitCode(err)
}
