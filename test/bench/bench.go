package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/copydb/copydb/test/lab"
	"github.com/copydb/copydb/test/servers"
)

const stateFile = "copydb-state.json"

// bench measures one data set on one kind of server. It belongs to one
// goroutine.
type bench struct {
	options
	kind servers.Kind
	data dataset
	log  io.Writer
	keep func(record) error
	base record // what all records have
	lab  *lab.Lab
	full contents // of the source
}

func (b *bench) say(format string, args ...any) {
	fmt.Fprintf(b.log, "%s %s, %s: %s\n", time.Now().Format(time.TimeOnly), b.kind, b.data.name, fmt.Sprintf(format, args...))
}

const (
	bufferPool = "1G"
	binlogOn   = "on"
	binlogOff  = "off"
)

func (b *bench) run(ctx context.Context) error {
	b.say("starting servers")
	var err error
	if b.lab, err = lab.New(ctx, b.copydb, servers.Options{Kind: b.kind, BufferPool: bufferPool, ExtraArgs: b.serverArgs}); err != nil {
		return err
	}
	b.say("making %s", b.data)
	if err := b.data.fill(ctx, b.lab.Source); err != nil {
		return fmt.Errorf("make %s: %w", b.data, err)
	}
	if b.full, err = b.data.contents(ctx, b.lab.Source.DB()); err != nil {
		return err
	}
	if err := b.lab.Accounts(ctx, database); err != nil {
		return err
	}
	if err := b.lab.WriteConfig(database, append([]string{"state: " + stateFile}, b.settings...)...); err != nil {
		return err
	}
	if err := b.describe(ctx); err != nil {
		return err
	}
	return b.measureAll(ctx)
}

// measureAll does what the flags ask for with the target's binary log on, and
// the copies also with it off.
func (b *bench) measureAll(ctx context.Context) error {
	for _, log := range b.binlogs {
		if err := b.switchBinlog(ctx, log); err != nil {
			return err
		}
		if err := b.copies(ctx); err != nil {
			return err
		}
	}
	if b.data.name != mainSet || len(b.loads) == 0 && b.impact == 0 {
		return nil
	}
	if err := b.switchBinlog(ctx, binlogOn); err != nil {
		return err
	}
	if err := b.impacts(ctx); err != nil {
		return fmt.Errorf("impact on the source: %w", err)
	}
	for _, l := range b.loads {
		if err := b.catchUp(ctx, l); err != nil {
			return fmt.Errorf("catch up with %s: %w", l.name, err)
		}
	}
	return nil
}

// switchBinlog restarts the target if its binary log is not as wanted.
func (b *bench) switchBinlog(ctx context.Context, log string) error {
	if b.base.Binlog == log {
		return nil
	}
	b.base.Binlog = log
	return b.lab.Target.Restart(ctx, map[string]string{binlogOn: "--log-bin=binlog", binlogOff: "--skip-log-bin"}[log])
}

func (b *bench) close() error {
	if b.lab == nil {
		return nil
	}
	return b.lab.Close()
}

// way is a contestant: a way to copy everything to the empty target.
type way struct {
	name, variant string
	plan          plan // of the load limit
	run           func(context.Context) (used, error)
}

// used is what a measurement found.
type used struct {
	seconds float64
	lab.Usage
}

// copies lets all copy by turns; who begins changes from round to round.
func (b *bench) copies(ctx context.Context) error {
	ways, err := b.ways(ctx)
	if err != nil {
		return err
	}
	for round := range b.rounds {
		for i := range ways {
			if _, err := b.measure(ctx, ways[(i+round)%len(ways)], round+1); err != nil {
				return err
			}
		}
	}
	return nil
}

// fastest tries each way once.
func (b *bench) fastest(ctx context.Context, ways []way) (best way, seconds float64, err error) {
	for i, w := range ways {
		u, err := b.measure(ctx, w, 0)
		if err != nil {
			return best, 0, err
		}
		if i == 0 || u.seconds < seconds {
			best, seconds = w, u.seconds
		}
	}
	return best, seconds, nil
}

// measure copies once, and compares what is there. Round 0 is a trial.
func (b *bench) measure(ctx context.Context, w way, round int) (used, error) {
	if err := b.clear(ctx); err != nil {
		return used{}, fmt.Errorf("empty the target: %w", err)
	}
	u, err := w.run(ctx)
	if err != nil {
		return u, fmt.Errorf("%s: %w", w.name, err)
	}
	got, err := b.data.contents(ctx, b.lab.Target.DB())
	if err != nil {
		return u, err
	}
	if got != b.full {
		return u, fmt.Errorf("%s (%s) made %d rows of %d, %d bytes of %d, or other rows or indexes", w.name, w.variant, got.rows, b.full.rows, got.bytes, b.full.bytes)
	}
	if err := b.logged(ctx); err != nil {
		return u, fmt.Errorf("%s (%s): %w", w.name, w.variant, err)
	}
	b.say("%-20s %7.2f s  %s", w.name, u.seconds, w.variant)
	r := b.record(copyMeasure, w.name, round, u)
	r.Variant = w.variant
	return u, b.keep(r)
}

// clear makes the target empty again, and its binary log short.
func (b *bench) clear(ctx context.Context) error {
	drop := "DROP DATABASE IF EXISTS " + database + "; DROP DATABASE IF EXISTS _copydb"
	if b.base.Binlog == binlogOn {
		drop += "; " + map[bool]string{false: "RESET BINARY LOGS AND GTIDS", true: "RESET MASTER"}[b.kind.IsMariaDB()]
	}
	if _, err := b.lab.Target.DB().ExecContext(ctx, drop); err != nil {
		return err
	}
	files, err := filepath.Glob(filepath.Join(b.lab.Dir, stateFile+"*"))
	for _, f := range files {
		err = errors.Join(err, os.Remove(f))
	}
	return err
}

// logged returns an error if a copy was kept out of the target's binary log: half
// of the rows' size is less than their row events take.
func (b *bench) logged(ctx context.Context) error {
	if b.base.Binlog == binlogOff {
		return nil
	}
	var size int64
	logs, err := statusRows(ctx, b.lab.Target, "SHOW BINARY LOGS")
	for _, l := range logs {
		n, perr := strconv.ParseInt(l["File_size"], 10, 64)
		size, err = size+n, errors.Join(err, perr)
	}
	if err == nil && size < b.full.bytes/2 {
		err = fmt.Errorf("the target's binary log has %d bytes for %d bytes of rows", size, b.full.bytes)
	}
	return err
}

func (b *bench) sameRows(ctx context.Context) error {
	var found [2]contents
	for i, srv := range []*servers.Server{b.lab.Source, b.lab.Target} {
		var err error
		if found[i], err = b.data.contents(ctx, srv.DB()); err != nil {
			return err
		}
	}
	if found[0] != found[1] {
		return fmt.Errorf("the source has %d rows (%s), the target %d (%s)", found[0].rows, found[0].digest, found[1].rows, found[1].digest)
	}
	return nil
}

// wants tells whether a contestant was asked for.
func (b *bench) wants(name string) bool { return slices.Contains(b.contestants, name) }

// countdown returns a function that is true at its n-th call.
func countdown(n int) func() bool {
	var left atomic.Int64
	left.Store(int64(n))
	return func() bool { return left.Add(-1) == 0 }
}

func (b *bench) describe(ctx context.Context) error {
	var out strings.Builder
	if _, _, err := b.lab.Run(ctx, &out, &out, "version"); err != nil {
		return err
	}
	first, _, _ := strings.Cut(out.String(), "\n")
	b.base.Copydb, b.base.Binlog = first, binlogOn
	b.base.Server = fmt.Sprintf("%s %s", b.kind.Family(), b.lab.Source.Version)
	b.base.Data, b.base.Tables = b.data.name, len(b.data.tables)
	b.base.Rows, b.base.Bytes = b.full.rows, b.full.bytes
	b.base.Settings = strings.Join(append(append([]string{"sync_binlog=1", "innodb_flush_log_at_trx_commit=1",
		"innodb_buffer_pool_size=" + bufferPool, "redo log 64M"}, b.serverArgs...), b.settings...), ", ")
	return nil
}
