package harness

import (
	"os"

	"github.com/copydb/copydb/test/lab"
)

// PeakMemory watches the largest resident memory (VmHWM) of a process and
// returns a function that waits for its end and says how many bytes it was. The
// last 20 ms may be missing.
func (p *Process) PeakMemory() func() int64 {
	p.t.Helper()
	if _, err := os.Stat("/proc/self/status"); err != nil {
		p.t.Skipf("the memory of processes cannot be seen here: %v", err)
	}
	peak := make(chan int64, 1)
	go func() { peak <- lab.WatchPeak(p.PID(), p.done) }()
	return func() int64 { return <-peak }
}
