// Command servers starts a throwaway source and target of one kind, prints
// how to reach them, waits for Ctrl-C and stops them. It is what `make servers`
// runs.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/copydb/copydb/test/servers"
	"golang.org/x/sync/errgroup"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "servers:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, stdout io.Writer) error {
	flags := flag.NewFlagSet("servers", flag.ContinueOnError)
	name := flags.String("kind", string(servers.MySQL), "kind of both servers")
	binlog := flags.Int("binlog-size", servers.DefaultBinlog, "max_binlog_size of both in bytes, 0 for the default")
	if err := flags.Parse(args); err != nil {
		return err
	}
	kind, err := servers.ParseKind(*name)
	if err != nil {
		return err
	}
	fmt.Fprintf(stdout, "starting two %s servers (the first time they are fetched)\n", kind)
	var pair [2]*servers.Server
	group, startCtx := errgroup.WithContext(ctx)
	for i := range pair {
		group.Go(func() (err error) {
			pair[i], err = servers.Start(startCtx, servers.Options{Kind: kind, BinlogSize: *binlog})
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return errors.Join(err, closeAll(pair[:]))
	}
	show(stdout, "source", pair[0])
	show(stdout, "target", pair[1])
	fmt.Fprintf(stdout, "copy    bin/copydb --source mysql://%[1]s@%[2]s --target mysql://%[3]s@%[4]s --include 'DATABASE.*'\n",
		pair[0].RootUser, pair[0].Addr(), pair[1].RootUser, pair[1].Addr())
	fmt.Fprintln(stdout, "Ctrl-C stops both and removes their data")
	<-ctx.Done()
	return closeAll(pair[:])
}

func show(w io.Writer, role string, s *servers.Server) {
	fmt.Fprintf(w, "%s  %s@%s  (%s %s, no password)\n        %s\n", role, s.RootUser, s.Addr(), s.Kind.Family(), s.Version,
		strings.Join(append(s.Tool("mysql"), s.ConnArgs()...), " "))
}

func closeAll(all []*servers.Server) error {
	var errs []error
	for _, s := range all {
		if s != nil {
			errs = append(errs, s.Close())
		}
	}
	return errors.Join(errs...)
}
