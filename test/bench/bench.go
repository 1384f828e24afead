package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/copydb/copydb/test/lab"
	"github.com/copydb/copydb/test/servers"
)

const stateFile = "copydb-state.json"

// bench measures one kind of server. It belongs to one goroutine.
type bench struct {
	options
	kind servers.Kind
	log  io.Writer
	lab  *lab.Lab
}

// result is what was measured on one kind.
type result struct {
	server      string
	rows, bytes int64
	pipe, ours  []time.Duration
	load        load
	catchUp     map[string][]time.Duration // by contestant
}

func (b *bench) say(format string, args ...any) {
	fmt.Fprintf(b.log, "%s %s: %s\n", time.Now().Format(time.TimeOnly), b.kind, fmt.Sprintf(format, args...))
}

func (b *bench) run(ctx context.Context) (result, error) {
	var r result
	b.say("starting servers")
	var err error
	if b.lab, err = lab.New(ctx, b.copydb, servers.Options{Kind: b.kind, BufferPool: "1G"}); err != nil {
		return r, err
	}
	b.say("loading %d tables of %d rows", tables, b.rows)
	if err := fillTables(ctx, b.lab.Source, b.rows); err != nil {
		return r, fmt.Errorf("load: %w", err)
	}
	r.server = fmt.Sprintf("%s %s", b.kind.Family(), b.lab.Source.Version)
	if r.rows, r.bytes, err = amount(ctx, b.lab.Source.DB()); err != nil {
		return r, err
	}
	if err := b.lab.Accounts(ctx, database); err != nil {
		return r, err
	}
	if err := b.lab.WriteConfig(database, "state: "+stateFile); err != nil {
		return r, err
	}
	if b.copyToo {
		if err := b.copies(ctx, &r); err != nil {
			return r, err
		}
	}
	if b.transactions == 0 {
		return r, nil
	}
	return r, b.catchUp(ctx, &r)
}

func (b *bench) close() error {
	if b.lab == nil {
		return nil
	}
	return b.lab.Close()
}

// copies lets both copy in turn; who begins changes from round to round.
func (b *bench) copies(ctx context.Context, r *result) error {
	ours := func() error { return b.measure(ctx, "copydb", &r.ours, r.rows, b.copydbRun) }
	pipe := func() error { return b.measure(ctx, "dump pipe", &r.pipe, r.rows, b.dumpPipe) }
	for round := range b.rounds {
		turns := []func() error{pipe, ours}
		if round%2 == 1 {
			turns = []func() error{ours, pipe}
		}
		for _, turn := range turns {
			if err := turn(); err != nil {
				return err
			}
		}
	}
	return nil
}

func (b *bench) measure(ctx context.Context, what string, into *[]time.Duration, rows int64, do func(context.Context) (time.Duration, error)) error {
	if err := b.clear(ctx); err != nil {
		return err
	}
	took, err := do(ctx)
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	got, _, err := amount(ctx, b.lab.Target.DB())
	if err != nil {
		return err
	}
	if got != rows {
		return fmt.Errorf("%s copied %d of %d rows", what, got, rows)
	}
	b.say("%-9s %6.2f s", what, took.Seconds())
	*into = append(*into, took)
	return nil
}

// clear makes the target empty again.
func (b *bench) clear(ctx context.Context) error {
	_, err := b.lab.Target.DB().ExecContext(ctx, "DROP DATABASE IF EXISTS "+database+"; DROP DATABASE IF EXISTS _copydb")
	if err != nil {
		return err
	}
	files, err := filepath.Glob(filepath.Join(b.lab.Dir, stateFile+"*"))
	for _, f := range files {
		err = errors.Join(err, os.Remove(f))
	}
	return err
}

func (b *bench) copydbRun(ctx context.Context) (time.Duration, error) {
	return b.copydbCall(ctx, "--config", "copydb.yaml")
}

func (b *bench) copydbCall(ctx context.Context, args ...string) (time.Duration, error) {
	var out bytes.Buffer
	code, took, err := b.lab.Run(ctx, &out, &out, args...)
	if err == nil && code != 0 {
		err = fmt.Errorf("exit code %d:\n%s", code, out.String())
	}
	return took, err
}

// dumpPipe runs the servers' own client tools, as one does by hand.
func (b *bench) dumpPipe(ctx context.Context) (time.Duration, error) {
	source, target := b.lab.Source, b.lab.Target
	dumpArgs := []string{"--single-transaction", "--databases", database}
	if !b.kind.IsMariaDB() {
		dumpArgs = append([]string{"--set-gtid-purged=OFF"}, dumpArgs...)
	}
	dump := command(ctx, source, "mysqldump", dumpArgs...)
	load := command(ctx, target, "mysql")
	r, w, err := os.Pipe()
	if err != nil {
		return 0, err
	}
	var said bytes.Buffer
	dump.Stdout, dump.Stderr, load.Stdin, load.Stderr = w, &said, r, &said
	began := time.Now()
	err = load.Start()
	if err == nil {
		err = dump.Run()
		err = errors.Join(err, w.Close(), r.Close(), load.Wait())
	}
	if err != nil {
		err = fmt.Errorf("%w\n%s", err, said.String())
	}
	return time.Since(began), err
}

func command(ctx context.Context, srv *servers.Server, tool string, args ...string) *exec.Cmd {
	argv := append(append(srv.Tool(tool), srv.ConnArgs()...), args...)
	return exec.CommandContext(ctx, argv[0], argv[1:]...)
}

// catchUp copies once more, writes to the source while nobody follows, and lets
// copydb and the server's own replica apply that by turns, each from the same
// target.
func (b *bench) catchUp(ctx context.Context, r *result) error {
	var once []time.Duration
	if err := b.measure(ctx, "copydb", &once, r.rows, b.copydbRun); err != nil {
		return err
	}
	_, err := b.lab.Source.DB().ExecContext(ctx, "CREATE USER IF NOT EXISTS repl IDENTIFIED BY 'repl'; GRANT REPLICATION SLAVE ON *.* TO repl")
	if err != nil {
		return err
	}
	base, err := b.save(ctx)
	if err != nil {
		return fmt.Errorf("keep the target as it is: %w", err)
	}
	b.say("writing %d transactions to the source", b.transactions)
	if r.load, err = write(ctx, b.lab.Source, b.rows, b.transactions); err != nil {
		return fmt.Errorf("write: %w", err)
	}
	r.catchUp = map[string][]time.Duration{}
	for range b.rounds {
		for _, c := range contestants(b.kind) {
			took, err := base.measure(ctx, c)
			if err != nil {
				return fmt.Errorf("catch up: %w", err)
			}
			r.catchUp[c.name] = append(r.catchUp[c.name], took)
		}
	}
	return nil
}

func (b *bench) sameRows(ctx context.Context) error {
	var sums [2]string
	for i, srv := range []*servers.Server{b.lab.Source, b.lab.Target} {
		var err error
		if sums[i], err = checksum(ctx, srv.DB()); err != nil {
			return err
		}
	}
	if sums[0] != sums[1] {
		return fmt.Errorf("after catch-up the source is %s, the target %s", sums[0], sums[1])
	}
	return nil
}
