package copydb

import "time"

const (
	autoFirst  = 2
	autoMost   = 8
	tuneEvery  = 3 * time.Second
	worthwhile = 1.08 // how much faster one more worker must make the copy
)

// tuner chooses the number of workers where it is auto: it begins with two and
// adds one as long as that made the copy faster.
type tuner struct {
	fixed int
	moved func() int64 // bytes so far
}

func newTuner(fixed int, moved func() int64) *tuner { return &tuner{fixed, moved} }

func (t *tuner) first() int {
	if t.fixed > 0 {
		return t.fixed
	}
	return autoFirst
}

// run adds workers until that brings nothing more, or no work is left; pause
// waits and reports whether there is some.
func (t *tuner) run(pause func(time.Duration) (bool, error), add func()) error {
	if t.fixed > 0 {
		return nil
	}
	before, rate := t.moved(), 0.0
	for n := autoFirst; n < autoMost; n++ {
		if more, err := pause(tuneEvery); err != nil || !more {
			return err
		}
		now := t.moved()
		got := float64(now-before) / tuneEvery.Seconds()
		if rate > 0 && got < rate*worthwhile {
			return nil
		}
		before, rate = now, got
		add()
	}
	return nil
}
