package harness

import (
	"os"
	"strconv"
)

// HoldAt is Hold that lets all but the n-th arrival of each run pass, counted
// from 1.
func (m *Migration) HoldAt(name string, n int) {
	m.t.Helper()
	m.Hold(name)
	if err := os.WriteFile(m.holdFile(name, ".hold"), []byte(strconv.Itoa(n)), 0o600); err != nil {
		m.t.Fatal(err)
	}
}
