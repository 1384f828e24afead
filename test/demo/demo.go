package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/copydb/copydb/test/lab"
	"github.com/copydb/copydb/test/servers"
)

const (
	stateFile     = "copydb-state.json"
	exitInterrupt = 130
	interruptAt   = 0.4 // of the rows
	watchEvery    = 50 * time.Millisecond
)

// demo is one run of the demo. It belongs to one goroutine.
type demo struct {
	options
	out, err io.Writer
	began    time.Time
	lab      *lab.Lab
	writes   *writes
	rows     int64 // that the shop began with
}

func (d *demo) run(ctx context.Context) error {
	d.began = time.Now()
	for _, step := range []func(context.Context) error{
		d.startServers, d.load, d.beginWrites, d.copyAndInterrupt, d.resume, d.stopWrites, d.lastResume, d.compare,
	} {
		if err := step(ctx); err != nil {
			return err
		}
		if err := context.Cause(ctx); err != nil {
			return err
		}
	}
	d.say("Done: the copy was interrupted, resumed, and is complete. The servers are stopped and their data removed.")
	return nil
}

// close stops what is left.
func (d *demo) close() error {
	var errs []error
	if d.writes != nil {
		_, err := d.writes.stop()
		errs = append(errs, err)
	}
	if d.lab != nil {
		errs = append(errs, d.lab.Close())
	}
	return errors.Join(errs...)
}

// say prints the headline of a step.
func (d *demo) say(format string, args ...any) {
	fmt.Fprintf(d.out, "\n==> [%5.1fs] %s\n", time.Since(d.began).Seconds(), fmt.Sprintf(format, args...))
}

func (d *demo) note(format string, args ...any) {
	fmt.Fprintf(d.out, "    %s\n", fmt.Sprintf(format, args...))
}

func (d *demo) startServers(ctx context.Context) (err error) {
	d.say("Starting a source and a target (%s; the first time they are fetched)", d.kind)
	d.lab, err = lab.New(ctx, d.copydb, servers.Options{Kind: d.kind, BinlogSize: 16 << 20, BufferPool: "256M"})
	if err != nil {
		return err
	}
	d.note("source  %s %s at %s", d.kind.Family(), d.lab.Source.Version, d.lab.Source.Addr())
	d.note("target  %s %s at %s", d.kind.Family(), d.lab.Target.Version, d.lab.Target.Addr())
	return nil
}

func (d *demo) load(ctx context.Context) error {
	d.say("Loading a sample shop into the source")
	began := time.Now()
	if err := loadShop(ctx, d.lab.Source, d.orders); err != nil {
		return fmt.Errorf("load the shop: %w", err)
	}
	counts, err := tableCounts(ctx, d.lab.Source.DB())
	if err != nil {
		return err
	}
	for _, t := range shopTables {
		d.rows += counts[t]
		d.note("%-12s %9s rows", t, number(counts[t]))
	}
	d.note("%-12s %9s rows in %.1f s", "together", number(d.rows), time.Since(began).Seconds())
	if err := d.lab.Accounts(ctx, shopDatabase); err != nil {
		return err
	}
	return d.lab.WriteConfig(shopDatabase, "snapshot: {chunk_size: "+d.chunk+"}", "checkpoint_interval: 200ms", "state: "+stateFile)
}

func (d *demo) beginWrites(ctx context.Context) (err error) {
	d.say("The shop opens: orders come in, change and are deleted until the last step")
	d.writes, err = startWrites(ctx, d.lab.Source)
	return err
}

// copydb prints a call of copydb as its user would type it.
func (d *demo) command(args []string) []string {
	d.note("$ copydb %s", strings.Join(args, " "))
	fmt.Fprintln(d.out)
	return args
}

// copyAndInterrupt begins the copy and sends SIGINT in its middle.
func (d *demo) copyAndInterrupt(ctx context.Context) error {
	d.say("Copying, until Ctrl-C in the middle")
	p, err := d.lab.Start(ctx, d.out, d.err, d.command([]string{"--config", "copydb.yaml", "--progress-interval", "2s"})...)
	if err != nil {
		return err
	}
	rows, err := d.waitForMiddle(ctx, p)
	if err != nil {
		return errors.Join(err, stop(p))
	}
	sent := time.Now()
	if err := p.Interrupt(); err != nil {
		return fmt.Errorf("interrupt copydb: %w", err)
	}
	code, _, err := p.Wait()
	if err != nil {
		return err
	}
	if code != exitInterrupt {
		return fmt.Errorf("copydb ended with exit code %d after SIGINT, want %d", code, exitInterrupt)
	}
	fmt.Fprintln(d.out)
	d.note("interrupted after %s of %s rows; copydb ended %.1f s later with exit code %d", number(rows), number(d.rows), time.Since(sent).Seconds(), code)
	left, err := sessionsOf(ctx, d.lab.Source, lab.User)
	if err != nil {
		return err
	}
	if left > 0 {
		return fmt.Errorf("copydb left %d sessions on the source", left)
	}
	d.note("no session, transaction or lock of it is left on the source")
	return nil
}

// waitForMiddle returns as soon as the state file knows of enough rows.
func (d *demo) waitForMiddle(ctx context.Context, p *lab.Process) (int64, error) {
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return 0, context.Cause(ctx)
		case <-p.Done():
			code, _, err := p.Wait()
			return 0, errors.Join(fmt.Errorf("copydb ended with exit code %d before its middle", code), err)
		case <-tick.C:
		}
		s, err := d.lab.State(stateFile)
		if err != nil {
			return 0, fmt.Errorf("read the state file: %w", err)
		}
		if s.Phase == "snapshot" && s.Rows() >= int64(interruptAt*float64(d.rows)) {
			return s.Rows(), nil
		}
	}
}

func stop(p *lab.Process) error {
	_ = p.Interrupt() // it may have ended
	_, _, err := p.Wait()
	return err
}

func (d *demo) resume(ctx context.Context) error {
	d.say("Where it stands, and on from there")
	if err := d.run0(ctx, "status", "--state", stateFile); err != nil {
		return err
	}
	return d.run0(ctx, "--config", "copydb.yaml", "--resume-state", stateFile, "--progress-interval", "2s")
}

// run0 runs copydb, which has to end with exit code 0.
func (d *demo) run0(ctx context.Context, args ...string) error {
	code, took, err := d.lab.Run(ctx, d.out, d.err, d.command(args)...)
	if err != nil {
		return err
	}
	fmt.Fprintln(d.out)
	d.note("exit code %d after %.1f s", code, took.Seconds())
	if code != 0 {
		return fmt.Errorf("copydb %s ended with exit code %d", strings.Join(args, " "), code)
	}
	return nil
}

func (d *demo) stopWrites(context.Context) error {
	d.say("The shop closes for the move")
	n, err := d.writes.stop()
	if err != nil {
		return fmt.Errorf("write to the shop: %w", err)
	}
	d.note("written meanwhile: %s transactions: %s new orders, %s changed, %s deleted",
		number(n.transactions()), number(n.placed), number(n.changed), number(n.deleted))
	if n.placed == 0 {
		return errors.New("no order was placed meanwhile: the demo shows nothing")
	}
	return nil
}

func (d *demo) lastResume(ctx context.Context) error {
	d.say("The last seconds of the move: whatever was written since")
	return d.run0(ctx, "--config", "copydb.yaml", "--resume-state", stateFile, "--progress-interval", "2s")
}

// compare prints what both sides hold and fails where they differ.
func (d *demo) compare(ctx context.Context) error {
	d.say("Comparing both sides")
	sides, err := digests(ctx, d.lab.Source, d.lab.Target)
	if err != nil {
		return fmt.Errorf("compare: %w", err)
	}
	differ := 0
	d.note("%-12s %11s %11s   %-16s %-16s", "table", "source", "target", "source", "target")
	for _, t := range shopTables {
		source, target := sides[0][t], sides[1][t]
		verdict := "equal"
		if source != target {
			verdict, differ = "DIFFERENT", differ+1
			if source.structure != target.structure {
				verdict += " in structure"
			}
		}
		d.note("%-12s %11s %11s   %-16s %-16s %s", t, number(source.rows), number(target.rows), source.sum, target.sum, verdict)
	}
	if differ > 0 {
		return fmt.Errorf("%d tables differ", differ)
	}
	return nil
}
