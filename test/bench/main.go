package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"strings"
	"syscall"

	"github.com/copydb/copydb/test/servers"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// options are the flags.
type options struct {
	copydb       string
	kinds        []servers.Kind
	rows         int // of each table
	rounds       int
	transactions int
	copyToo      bool
}

func parse(args []string, stderr io.Writer) (options, error) {
	var o options
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.StringVar(&o.copydb, "copydb", "bin/copydb", "the copydb binary")
	kinds := flags.String("kinds", string(servers.MySQL)+","+string(servers.MariaDB1011), "kinds of servers, with commas")
	flags.IntVar(&o.rows, "rows", 250_000, fmt.Sprintf("rows of each of the %d tables", tables))
	flags.IntVar(&o.rounds, "rounds", 3, "how often each is measured")
	flags.IntVar(&o.transactions, "transactions", 20_000, "transactions of the recorded write load; 0: none")
	flags.BoolVar(&o.copyToo, "copy", true, "measure the copy, too")
	smoke := flags.Bool("smoke", false, "a tiny run that only shows that everything works")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if *smoke {
		o.rows, o.rounds, o.transactions = 1000, 1, 200
	}
	if o.rows < 1 || o.rounds < 1 || o.transactions < 0 {
		return o, errors.New("-rows and -rounds must be 1 or more")
	}
	for _, name := range strings.Split(*kinds, ",") {
		k, err := servers.ParseKind(name)
		if err != nil {
			return o, err
		}
		o.kinds = append(o.kinds, k)
	}
	return o, nil
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	o, err := parse(args, stderr)
	if err != nil {
		return err
	}
	var all []result
	for _, kind := range o.kinds {
		b := &bench{options: o, kind: kind, log: stderr}
		r, err := b.run(ctx)
		if err = errors.Join(err, b.close()); err != nil {
			return fmt.Errorf("%s: %w", kind, err)
		}
		all = append(all, r)
	}
	fmt.Fprintf(stdout, "%d tables of %d rows; %s/%s, %d processors for source, target and both programs; %s\n\n",
		tables, o.rows, runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), runtime.Version())
	fmt.Fprintf(stdout, "%s\n%s", copyTable(all, o.rounds), catchUpTable(all))
	return nil
}
