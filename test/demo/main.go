package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/copydb/copydb/test/servers"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

// options are the flags.
type options struct {
	copydb string
	kind   servers.Kind
	orders int
	chunk  string
}

func parse(args []string, stderr io.Writer) (options, error) {
	var o options
	flags := flag.NewFlagSet("demo", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.StringVar(&o.copydb, "copydb", "bin/copydb", "the copydb binary")
	kind := flags.String("kind", string(servers.MySQL), "kind of both servers")
	flags.IntVar(&o.orders, "orders", 250_000, "orders that the shop begins with; it has some four rows for each")
	flags.StringVar(&o.chunk, "chunk-size", "2MiB", "snapshot.chunk_size: smaller than the default, so that there is something to see")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if o.orders < 1000 {
		return o, errors.New("-orders must be 1000 or more")
	}
	var err error
	o.kind, err = servers.ParseKind(*kind)
	return o, err
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	o, err := parse(args, stderr)
	if err != nil {
		return err
	}
	d := &demo{options: o, out: stdout, err: stderr}
	return errors.Join(d.run(ctx), d.close())
}
