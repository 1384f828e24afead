package lab

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// Usage is what a process took of the machine.
type Usage struct {
	CPU  time.Duration // of the program and of the kernel for it
	Peak int64         // largest resident memory in bytes, 0 where that cannot be seen
}

// peakEvery is how often a process is asked for its largest memory. The kernel
// keeps the figure, so that only what is new in the last moment is missed.
const peakEvery = 20 * time.Millisecond

// WatchPeak asks for the largest resident memory of a process (VmHWM) until
// done is closed. ru_maxrss would be that of the parent if that was larger when
// the process was started.
func WatchPeak(pid int, done <-chan struct{}) (peak int64) {
	tick := time.NewTicker(peakEvery)
	defer tick.Stop()
	name := fmt.Sprintf("/proc/%d/status", pid)
	for {
		status, err := os.ReadFile(name)
		if err != nil {
			return peak // it has ended, or this is no Linux
		}
		peak = max(peak, highWater(status))
		select {
		case <-done:
			return peak
		case <-tick.C:
		}
	}
}

// highWater returns VmHWM in bytes; 0 where the process has no memory any more.
func highWater(status []byte) int64 {
	for line := range bytes.Lines(status) {
		rest, ok := strings.CutPrefix(string(line), "VmHWM:")
		if !ok {
			continue
		}
		kib, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(rest), "kB")), 10, 64)
		if err != nil {
			return 0
		}
		return kib << 10
	}
	return 0
}
