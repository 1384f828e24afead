package copydb

import (
	"math"
	"testing"
	"time"
)

func TestETA(t *testing.T) {
	for _, c := range []struct {
		name        string
		left, moved amount
		since       time.Duration
		want        float64
	}{
		{"nothing moved", amount{100, 1000}, amount{}, time.Second, -1},
		{"nothing left", amount{}, amount{100, 1000}, time.Second, -1},
		{"half", amount{100, 100_000}, amount{100, 100_000}, 10 * time.Second, 10},
		{"wide rows left", amount{10, 1 << 30}, amount{10, 1 << 20}, time.Second, 1024},
	} {
		if got := eta(c.left, c.moved, c.since); math.Abs(got-c.want) > 0.01*math.Abs(c.want) {
			t.Errorf("%s: %g s, want %g", c.name, got, c.want)
		}
	}
}
