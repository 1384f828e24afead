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
	"time"
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

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	o, err := parse(args, stderr)
	if err != nil {
		return err
	}
	var all []record
	if !o.show {
		if all, err = o.series(ctx, stderr); err != nil {
			return err
		}
	}
	if o.results != "" {
		if all, err = readRecords(o.results); err != nil {
			return err
		}
	}
	fmt.Fprint(stdout, report(all))
	if o.svg == "" {
		return nil
	}
	return os.WriteFile(o.svg, []byte(picture(all)), 0o644)
}

// series measures everything on every kind of server.
func (o options) series(ctx context.Context, log io.Writer) ([]record, error) {
	var all []record
	keep := func(r record) error {
		all = append(all, r)
		if o.results == "" {
			return nil
		}
		return r.appendTo(o.results)
	}
	base := record{Run: time.Now().UTC().Format(time.RFC3339), Machine: machine()}
	for _, kind := range o.kinds {
		for _, d := range o.data {
			b := &bench{options: o, kind: kind, data: d, log: log, keep: keep, base: base}
			err := b.run(ctx)
			if err = errors.Join(err, b.close()); err != nil {
				return all, fmt.Errorf("%s, %s: %w", kind, d.name, err)
			}
		}
	}
	return all, nil
}
