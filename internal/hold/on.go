//go:build holdpoints

package hold

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Point stops here if the folder named by COPYDB_TEST_HOLD has a file
// "<name>.hold": it makes "<name>.reached" and waits until the first file is
// gone. A "/" in the name becomes "_". A number in the file lets all but that
// arrival of this process pass: "3" stops at the third one; empty means the
// next one.
func Point(ctx context.Context, name string) error {
	dir := os.Getenv("COPYDB_TEST_HOLD")
	if dir == "" {
		return nil
	}
	base := filepath.Join(dir, strings.ReplaceAll(name, "/", "_"))
	which, err := os.ReadFile(base + ".hold")
	n := arrived(name)
	if err != nil {
		return nil
	}
	if want, err := strconv.Atoi(strings.TrimSpace(string(which))); err == nil && n != want {
		return nil
	}
	if err := os.WriteFile(base+".reached", nil, 0o600); err != nil {
		return err
	}
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		if _, err := os.Stat(base + ".hold"); err != nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
		}
	}
}

var (
	mu       sync.Mutex
	arrivals = map[string]int{}
)

// arrived counts an arrival at a point and returns how many there were.
func arrived(name string) int {
	mu.Lock()
	defer mu.Unlock()
	arrivals[name]++
	return arrivals[name]
}

// ChunkRows returns how many rows a chunk may have at most, from
// COPYDB_TEST_CHUNK_ROWS; 0 for no such limit.
func ChunkRows() int64 { return number("COPYDB_TEST_CHUNK_ROWS") }

// CutRows returns how many rows must be left of a segment for another worker to
// take half of it, from COPYDB_TEST_CUT_ROWS; 0 for the usual number.
func CutRows() int64 { return number("COPYDB_TEST_CUT_ROWS") }

func number(name string) int64 {
	n, _ := strconv.ParseInt(os.Getenv(name), 10, 64)
	return n
}
