package blackbox

import (
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/copydb/copydb/internal/testdb"
	"github.com/copydb/copydb/state"
	"github.com/copydb/copydb/test/harness"
	"github.com/copydb/copydb/test/servers"
)

const chunkOfLoad1 = "loads.load1"

// fastLoad is a migration of two tables with target.fast_load, whose runs can be
// held behind a chunk.
func fastLoad(t *testing.T, source, target *servers.Server) *harness.Migration {
	t.Helper()
	testdb.CreateLoadTables(t, source, "loads", 2, 1000)
	m := harness.New(t, source, target, harness.Config{Include: []string{"loads.*"}, TargetExtra: []string{"fast_load: true"},
		Build: harness.HoldPoints, Env: []string{harness.ChunkRows(100)}, Extra: []string{"retry_timeout: 3s"}})
	return m
}

// held starts a run and stops it behind a chunk of the first table, where the
// redo log is off.
func held(t *testing.T, m *harness.Migration, start func(...string) *harness.Process, args ...string) *harness.Process {
	t.Helper()
	at := harness.HoldChunkWritten(chunkOfLoad1)
	m.Hold(at)
	p := start(args...)
	m.WaitReached(p, at)
	wantRedo(t, m, "OFF")
	m.Release(at)
	return p
}

// wantRedo fails the test unless the target's redo log is as said, and the state
// names it where it is off.
func wantRedo(t *testing.T, m *harness.Migration, want string) {
	t.Helper()
	if got := statusOf(t, m.Target, "Innodb_redo_log_enabled"); got != want {
		t.Errorf("the redo log is %s, want %s", got, want)
	}
	listed := m.State().SwitchedOnTarget
	if want == "OFF" && (len(listed) != 1 || listed[0] != state.Setting{Name: "innodb_redo_log", Was: "ON"}) || want == "ON" && len(listed) != 0 {
		t.Errorf("the redo log is %s, and the state lists %v", want, listed)
	}
}

// The redo log is off while rows are loaded, and on again on every way out: at
// the end of the copy, after a signal and an error, by the resume and the
// clean-up after a run that was killed, and where a run begins again.
func TestFastLoad(t *testing.T) {
	source, target := sharedPair(t, servers.MySQL)
	m := fastLoad(t, source, target)

	p := held(t, m, m.Start, "--json")
	stopRun(t, p, syscall.SIGINT, 130)
	wantRedo(t, m, "ON")
	m.RequireClean()

	p = held(t, m, m.StartResume, "--json")
	p.Kill9()
	wantRedo(t, m, "OFF")
	status := m.Command().Start(t, "status", "--state", m.StatePath)
	status.RequireExit(time.Minute, 0)
	if !strings.Contains(status.Stdout(), "innodb_redo_log, was ON") {
		t.Errorf("status:\n%s", status.Stdout())
	}

	m.Hold(harness.HoldCatchUp)
	p = m.StartResume("--json")
	m.WaitReached(p, harness.HoldCatchUp)
	wantRedo(t, m, "ON")
	m.Release(harness.HoldCatchUp)
	p.RequireExit(harness.RunTimeout, 0)
	wantRedo(t, m, "ON")
	testdb.RequireEqual(t, source, target, []string{"loads"})
	m.RequireClean()

	t.Run("error", func(t *testing.T) {
		wipeTables(t, target)
		m, at := m.In(t), harness.HoldChunkWritten(chunkOfLoad1)
		m.Hold(at)
		p := m.Start("--json")
		m.WaitReached(p, at)
		testdb.Exec(t, target, "CREATE TRIGGER loads.refuses BEFORE INSERT ON loads.load1 FOR EACH ROW SIGNAL SQLSTATE '45000'")
		m.Release(at)
		p.RequireExit(time.Minute, 7)
		wantRedo(t, m, "ON")
		m.RequireClean()
	})
	t.Run("hanging target", func(t *testing.T) {
		wipeTables(t, target)
		m := m.In(t)
		p := held(t, m, m.Start, "--json")
		if err := target.Pause(); err != nil {
			t.Fatal(err)
		}
		stopRun(t, p, syscall.SIGINT, 130)
		requireReleased(t, source, "loads")
		if err := target.Resume(); err != nil {
			t.Fatal(err)
		}
		if left := p.Last("summary")["left_behind"].([]any); len(left) != 2 || !strings.Contains(left[1].(string), "redo log") {
			t.Errorf("left behind: %v", left)
		}
		m.RequireResume()
		wantRedo(t, m, "ON")
		testdb.RequireEqual(t, source, target, []string{"loads"})
	})
	for _, end := range []string{"resume", "cleanup", "start over"} {
		t.Run(end, func(t *testing.T) {
			wipeTables(t, target)
			m := m.In(t)
			held(t, m, m.Start).Kill9()
			wantRedo(t, m, "OFF")
			switch end {
			case "resume":
				m.RequireResume("--set", "target.fast_load=false")
			case "cleanup":
				p := m.Command().Start(t, "cleanup", "--config", m.ConfigPath, "--state", m.StatePath)
				p.RequireExit(time.Minute, 0)
			case "start over":
				m.RequireRun("--start-over", "--set", "target.fast_load=false")
			}
			wantRedo(t, m, "ON")
			if end != "cleanup" {
				testdb.RequireEqual(t, source, target, []string{"loads"})
			}
		})
	}
}

// A target that was restarted while its redo log was off is not gone on with, by
// this run and any other, until the copy begins again.
func TestFastLoadTargetRestarted(t *testing.T) {
	source, target := testdb.Pair(t, servers.MySQL, testdb.WithFast())
	m := fastLoad(t, source, target)
	m.SetConfig(func(c *harness.Config) { c.Extra = []string{"retry_timeout: 2m"} })
	at := harness.HoldChunkWritten(chunkOfLoad1)
	m.Hold(at)
	p := m.Start("--json")
	m.WaitReached(p, at)
	if err := target.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	m.Release(at)
	p.RequireExit(harness.RunTimeout, 4)
	for range 2 {
		if got := statusOf(t, target, "Innodb_redo_log_enabled"); got != "ON" {
			t.Errorf("the redo log is %s", got)
		}
		p = m.Resume("--json")
		if p.ExitCode() != 4 || !strings.Contains(p.Stderr(), "restarted while its redo log was off") || !strings.Contains(p.Stderr(), "--start-over") {
			t.Fatalf("exit code %d, stderr:\n%s", p.ExitCode(), p.Stderr())
		}
	}
	m.RequireRun("--start-over")
	wantRedo(t, m, "ON")
	testdb.RequireEqual(t, source, target, []string{"loads"})
	m.RequireClean()
}

// A target that dies while its redo log is off does not start again: run and
// resume say so.
func TestFastLoadTargetKilled(t *testing.T) {
	source, target := testdb.Pair(t, servers.MySQL, testdb.WithFast())
	m := fastLoad(t, source, target)
	p := held(t, m, m.Start, "--json")
	target.Kill9()
	p.RequireExit(time.Minute, 7)
	resume := m.Resume()
	for _, p := range []*harness.Process{p, resume} {
		if !strings.Contains(p.Stderr(), "set it up anew, then begin again: ") {
			t.Errorf("stderr:\n%s", p.Stderr())
		}
	}
	if resume.ExitCode() != 3 {
		t.Errorf("exit code %d", resume.ExitCode())
	}
	requireReleased(t, source, "loads")
}
