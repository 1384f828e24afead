package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/copydb/copydb/test/lab"
)

// The two lines of the impact on the source.
const (
	aloneWay  = "nobody beside"
	besideWay = "beside copydb"
)

// impacts measures how many transactions the source takes by itself and while
// copydb reads its tables.
func (b *bench) impacts(ctx context.Context) error {
	if b.impact == 0 {
		return nil
	}
	for round := range b.rounds {
		for _, w := range []struct {
			name string
			do   func(context.Context) (written, used, error)
		}{{aloneWay, b.alone}, {besideWay, b.beside}} {
			wrote, u, err := w.do(ctx)
			if err != nil {
				return fmt.Errorf("%s: %w", w.name, err)
			}
			b.say("%-20s %7.0f transactions/s", w.name, float64(wrote.transactions)/u.seconds)
			r := b.record(impactMeasure, w.name, round+1, u)
			r.Load, r.Transactions, r.Changes = loads[0].name, wrote.transactions, wrote.changes
			if err := b.keep(r); err != nil {
				return err
			}
		}
	}
	return b.reread(ctx)
}

func (b *bench) alone(ctx context.Context) (written, used, error) {
	began := time.Now()
	w, err := b.writeWhile(ctx, loads[0], func() bool { return time.Since(began) < b.impact })
	return w, used{seconds: time.Since(began).Seconds()}, err
}

// beside writes until copydb has copied all rows, lets it end and looks whether
// the target has all.
func (b *bench) beside(ctx context.Context) (w written, u used, err error) {
	if err := b.clear(ctx); err != nil {
		return w, u, err
	}
	var out bytes.Buffer
	began := time.Now()
	p, err := b.lab.Start(ctx, &out, &out, "--config", "copydb.yaml")
	if err != nil {
		return w, u, err
	}
	var over atomic.Bool
	watched := make(chan error, 1)
	go func() {
		watched <- b.copied(ctx, p)
		over.Store(true)
	}()
	w, err = b.writeWhile(ctx, loads[0], func() bool { return !over.Load() })
	took := time.Since(began)
	err = errors.Join(err, <-watched)
	code, _, waitErr := p.Wait()
	if err = errors.Join(err, waitErr); err == nil && code != 0 {
		err = fmt.Errorf("exit code %d:\n%s", code, out.String())
	}
	if err != nil {
		return w, u, err
	}
	// What was written behind the stop point.
	if _, err := b.copydbCall(ctx, "--config", "copydb.yaml", "--resume-state", stateFile); err != nil {
		return w, u, err
	}
	return w, used{took.Seconds(), p.Usage()}, b.sameRows(ctx)
}

// copied waits until the rows and the indexes of a run are there.
func (b *bench) copied(ctx context.Context, p *lab.Process) error {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		s, err := b.lab.State(stateFile)
		if err != nil {
			return err
		}
		switch s.Phase {
		case "catch_up", "finish", "done":
			return nil
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-p.Done():
			return nil
		case <-tick.C:
		}
	}
}

// reread notes what the source holds now.
func (b *bench) reread(ctx context.Context) (err error) {
	b.full, err = b.data.contents(ctx, b.lab.Source.DB())
	b.base.Rows, b.base.Bytes = b.full.rows, b.full.bytes
	return err
}
