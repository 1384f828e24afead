package copydb

import (
	"testing"
	"time"
)

func TestForecast(t *testing.T) {
	tests := []struct {
		name   string
		at     func(second int) int64
		left   time.Duration // 0 = not known
		outrun bool
	}{
		{"coming closer", func(s int) int64 { return int64(1000 - 5*s) }, 120 * time.Second, false},
		{"falling behind", func(s int) int64 { return int64(1000 + 5*s) }, 0, true},
		{"standing still", func(int) int64 { return 1000 }, 0, false},
		{"caught up", func(s int) int64 { return int64(max(80-s, 0)) }, 0, false},
		{"not known", func(int) int64 { return -1 }, 0, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var f forecast
			begin := time.Now()
			for s := range 81 {
				f.add(begin.Add(time.Duration(s)*time.Second), tt.at(s))
			}
			now := begin.Add(80 * time.Second)
			if left, _ := f.left(); left.Round(time.Second) != tt.left {
				t.Errorf("%v left, want %v", left, tt.left)
			}
			if got := f.outrun(now); got != tt.outrun {
				t.Errorf("outrun: %t", got)
			}
			if f.outrun(now.Add(time.Minute)) {
				t.Error("said again within a minute")
			}
		})
	}
	var short forecast
	short.add(time.Now(), 100)
	short.add(time.Now().Add(2*time.Second), 50)
	if left, ok := short.left(); ok {
		t.Errorf("a forecast of %v after two seconds", left)
	}
}
