package check

import (
	"context"
	"fmt"
	"time"
)

// maxSkew is how far clocks may be apart before a lag in seconds says little.
const maxSkew = 10 * time.Second

func checkClock(ctx context.Context, r *runner) error {
	f := &r.in.Facts
	var unix float64
	var offset int64
	asked := time.Now()
	err := r.source.conn.QueryRow(ctx, []any{&unix, &offset},
		"SELECT UNIX_TIMESTAMP(NOW(6)), TIMESTAMPDIFF(SECOND, UTC_TIMESTAMP(), NOW())")
	if err != nil {
		return fmt.Errorf("read the source's clock: %w", err)
	}
	answered := time.Now()
	middle := asked.Add(answered.Sub(asked) / 2)
	f.ClockSkew = time.UnixMicro(int64(unix * 1e6)).Sub(middle).Round(time.Millisecond)
	f.ZoneOffset = time.Duration(offset) * time.Second
	if skew := f.ClockSkew.Abs(); skew > maxSkew {
		r.warn("clock_skew", f.ClockSkew.String(), fmt.Sprintf("the source's clock and this machine's are %s apart: the lag that is shown is wrong by as much", skew),
			"synchronise the clocks")
	}
	return nil
}
