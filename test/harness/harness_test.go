package harness

import (
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/copydb/copydb/internal/testdb"
	"github.com/copydb/copydb/state"
	"github.com/copydb/copydb/test/servers"
)

func TestMain(m *testing.M) { Main(m) }

// A migration of one table with a hold in its middle: the harness starts, holds,
// signals, resumes, and reads records and state.
func TestHoldSignalResume(t *testing.T) {
	source, target := testdb.Pair(t, servers.MariaDB118, testdb.WithFast())
	testdb.CreateLoadTables(t, source, "shop", 1, 50)
	m := New(t, source, target, Config{Include: []string{"shop.*"}, Build: HoldPoints, Env: []string{ChunkRows(10)}})
	hold := HoldChunkWritten("shop.load1")
	m.Hold(hold)
	p := m.Start("--json")
	m.WaitReached(p, hold)
	p.Signal(syscall.SIGINT)
	p.RequireExit(10*time.Second, 130)
	if m.Phase() != state.PhaseSnapshot || p.Last("summary").Number("exit_code") != 130 {
		t.Errorf("phase %s, summary %v", m.Phase(), p.Last("summary"))
	}
	m.Release(hold)
	m.RequireResume()
	testdb.RequireEqual(t, source, target, []string{"shop"})
	m.RequireClean()
}

func TestConfigIsQuoted(t *testing.T) {
	c := Config{Include: []string{Literal("a`b")}, User: "u", Password: `p"x`, Extra: []string{"stop_timeout: 2s"}}
	got := c.yaml("127.0.0.1:1", "127.0.0.1:2")
	for _, want := range []string{`password: "p\"x"`, "port: 2\n", "include: [\"`a``b`.*\"]", "stop_timeout: 2s\n"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is missing in\n%s", want, got)
		}
	}
}
