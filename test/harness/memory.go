package harness

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"
)

// PeakMemory watches the largest resident memory (VmHWM) of a process and
// returns a function that waits for its end and says how many bytes it was. The
// last 20 ms may be missing.
func (p *Process) PeakMemory() func() int64 {
	p.t.Helper()
	name := fmt.Sprintf("/proc/%d/status", p.PID())
	if _, err := os.Stat(name); err != nil {
		p.t.Skipf("the memory of processes cannot be seen here: %v", err)
	}
	peak := make(chan int64)
	go func() {
		var most int64
		defer func() { peak <- most }()
		for p.Running() {
			status, err := os.ReadFile(name)
			if err != nil {
				return // it has ended
			}
			most = max(most, highWater(p.t, status))
			time.Sleep(20 * time.Millisecond)
		}
	}()
	return func() int64 { return <-peak }
}

// highWater returns VmHWM in bytes; 0 where the process has no memory any more.
func highWater(t testing.TB, status []byte) int64 {
	for line := range bytes.Lines(status) {
		rest, ok := strings.CutPrefix(string(line), "VmHWM:")
		if !ok {
			continue
		}
		kib, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(rest), "kB")), 10, 64)
		if err != nil {
			t.Errorf("VmHWM: %v", err)
		}
		return kib << 10
	}
	return 0
}
