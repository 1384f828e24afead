package blackbox

import (
	"context"
	"fmt"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/copydb/copydb/internal/testdb"
	"github.com/copydb/copydb/test/harness"
	"github.com/copydb/copydb/test/servers"
)

// Everything that can happen to the two servers in one run, which goes on by
// itself over all of it.
func TestB1_06_Outages(t *testing.T) {
	kinds := families
	if long {
		kinds = servers.Kinds()
	}
	onKinds(t, func(t *testing.T, kind servers.Kind) {
		source, target := testdb.Pair(t, kind)
		testdb.CreateLoadTables(t, source, "loads", 4, 2000)
		load := testdb.StartLoad(t, source, testdb.LoadOptions{Databases: []string{"loads"}, BigEvery: -1})
		m := harness.New(t, source, target, harness.Config{Include: []string{"loads.*"}, Build: harness.HoldPoints, Env: []string{harness.ChunkRows(100)}})
		hold := harness.HoldChunkWritten("loads.load1")
		m.Hold(hold)
		p := m.Start("--json", "--until", "never")
		m.WaitReached(p, hold)
		outage(t, "source killed in the snapshot", func() { killAndRestart(t, source) })
		m.Release(hold)
		arrives(t, p, source, target, "loads")
		outage(t, "source killed in catch-up", func() { killAndRestart(t, source) })
		arrives(t, p, source, target, "loads")
		outage(t, "target restarted", func() {
			if err := target.Restart(t.Context()); err != nil {
				t.Fatal(err)
			}
		})
		arrives(t, p, source, target, "loads")
		outage(t, "target read only", func() { readOnlyFor(t, target, time.Duration(times(3, 20))*time.Second) })
		arrives(t, p, source, target, "loads")
		outage(t, "connections killed", func() { killSessions(t, times(10, 50), source, target) })
		arrives(t, p, source, target, "loads")
		stopRun(t, p, syscall.SIGINT, 130)
		requireReleased(t, source, "loads")
		finish(t, m, load, []string{"loads"})
	}, kinds...)
}

func outage(t *testing.T, name string, make func()) {
	t.Helper()
	began := time.Now()
	make()
	t.Logf("%s: %.1f s", name, time.Since(began).Seconds())
}

func killAndRestart(t *testing.T, srv *servers.Server) {
	t.Helper()
	srv.Kill9()
	if err := srv.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func readOnlyFor(t *testing.T, srv *servers.Server, d time.Duration) {
	t.Helper()
	testdb.Exec(t, srv, "SET GLOBAL read_only = 1")
	ctx, cancel := context.WithTimeout(t.Context(), d)
	defer cancel()
	<-ctx.Done()
	testdb.Exec(t, srv, "SET GLOBAL read_only = 0")
}

// killSessions kills all of copydb's sessions again and again, every 200 ms.
func killSessions(t *testing.T, rounds int, all ...*servers.Server) {
	t.Helper()
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	killed := 0
	for range rounds {
		var wait sync.WaitGroup
		for _, srv := range all {
			for _, s := range testdb.Sessions(t, srv, harness.User) {
				killed++
				wait.Go(func() { _, _ = srv.DB().ExecContext(t.Context(), fmt.Sprintf("KILL %d", s.ID)) }) // may have ended by itself
			}
		}
		wait.Wait()
		<-tick.C
	}
	if killed == 0 {
		t.Error("no session was there to kill")
	}
}
