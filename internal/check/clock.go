package check

import (
	"context"
	"fmt"
	"time"
)

// maxSkew is how far clocks may be apart before a lag in seconds says little.
const maxSkew = 10 * time.Second

func checkClock(ctx context.Context, r *runner) (err error) {
	f := &r.in.Facts
	if f.ClockSkew, f.ZoneOffset, err = r.source.clock(ctx); err != nil {
		return err
	}
	if skew := f.ClockSkew.Abs(); skew > maxSkew {
		r.warn("clock_skew", f.ClockSkew.String(), fmt.Sprintf("the source's clock and this machine's are %s apart: the lag that is shown is wrong by as much", skew),
			"synchronise the clocks")
	}
	return nil
}

// checkTargetClock compares the servers' clocks: an application that changes
// over sees time jump by the difference.
func checkTargetClock(ctx context.Context, r *runner) error {
	skew, _, err := r.target.clock(ctx)
	if err != nil {
		return err
	}
	if skew -= r.in.Facts.ClockSkew; skew.Abs() > maxSkew {
		r.warn("target_clock", skew.String(), fmt.Sprintf("the clocks of source and target are %s apart: for applications that change over, time jumps by as much", skew.Abs()),
			"synchronise the clocks")
	}
	return nil
}

// clock returns how far the server's clock is ahead of ours, and the offset of
// its default time zone.
func (s *side) clock(ctx context.Context) (skew, zone time.Duration, err error) {
	var unix float64
	var offset int64
	asked := time.Now()
	err = s.conn.QueryRow(ctx, []any{&unix, &offset},
		"SELECT UNIX_TIMESTAMP(NOW(6)), TIMESTAMPDIFF(SECOND, UTC_TIMESTAMP(), NOW())")
	if err != nil {
		return 0, 0, fmt.Errorf("read the clock of the %s: %w", s.name, err)
	}
	answered := time.Now()
	middle := asked.Add(answered.Sub(asked) / 2)
	return time.UnixMicro(int64(unix * 1e6)).Sub(middle).Round(time.Millisecond), time.Duration(offset) * time.Second, nil
}
