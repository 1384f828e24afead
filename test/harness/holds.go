package harness

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// The hold points of a run; those of a chunk take "database.table".
const (
	HoldStartTaken = "start_taken" // a batch of start positions is kept
	HoldSchemaMade = "schema_made" // all tables are on the target, no row is
	HoldCatchUp    = "catch_up"    // before the first event is read
	HoldEvent      = "event"       // an event of the log is read and not taken in

	// Of a window whose rows are written over several sessions:
	HoldWindowBegun   = "window_begun"   // high-water is moved, nothing is written
	HoldWindowRemoved = "window_removed" // the deletes are committed
	HoldWindowWritten = "window_written" // all rows are, the position is not
)

// HoldChunkRead names the moment when a chunk of the table is read and its
// transaction on the source still open.
func HoldChunkRead(databaseTable string) string { return "chunk_read:" + databaseTable }

// HoldChunkWritten names the moment when a chunk of the table is committed on
// the target.
func HoldChunkWritten(databaseTable string) string { return "chunk_written:" + databaseTable }

// ChunkRows is the variable of Config.Env that limits the rows of a chunk, in
// the build HoldPoints.
func ChunkRows(n int) string { return "COPYDB_TEST_CHUNK_ROWS=" + strconv.Itoa(n) }

func (m *Migration) holdFile(name, kind string) string {
	return filepath.Join(m.holds, strings.ReplaceAll(name, "/", "_")+kind)
}

// Hold lets runs of the migration (Config.Build must be HoldPoints) stop at the
// hold point until Release.
func (m *Migration) Hold(name string) {
	m.t.Helper()
	if m.config.Build != HoldPoints {
		m.t.Fatal("hold points need Config.Build: HoldPoints")
	}
	if err := os.Remove(m.holdFile(name, ".reached")); err != nil && !os.IsNotExist(err) {
		m.t.Fatal(err)
	}
	if err := os.WriteFile(m.holdFile(name, ".hold"), nil, 0o600); err != nil {
		m.t.Fatal(err)
	}
}

// Reached tells whether a run has stopped at the hold point since Hold.
func (m *Migration) Reached(name string) bool {
	_, err := os.Stat(m.holdFile(name, ".reached"))
	return err == nil
}

// WaitReached waits until the process stands at the hold point.
func (m *Migration) WaitReached(p *Process, name string) {
	m.t.Helper()
	p.WaitFor("hold point "+name, time.Minute, func() bool { return m.Reached(name) })
}

// Release lets the run go on from the hold point, and pass it from now on.
func (m *Migration) Release(name string) {
	m.t.Helper()
	if err := os.Remove(m.holdFile(name, ".hold")); err != nil && !os.IsNotExist(err) {
		m.t.Fatal(err)
	}
}
