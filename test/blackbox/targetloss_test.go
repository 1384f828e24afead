package blackbox

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/copydb/copydb/internal/testdb"
	"github.com/copydb/copydb/state"
	"github.com/copydb/copydb/test/harness"
	"github.com/copydb/copydb/test/servers"
)

// image copies the data folder of a server that stands still for a moment: what a
// crash at that moment would leave on the disk.
func image(t *testing.T, srv *servers.Server) string {
	t.Helper()
	if err := srv.Pause(); err != nil {
		t.Fatal(err)
	}
	to := filepath.Join(t.TempDir(), "data")
	copyFolder(t, srv.DataDir, to)
	if err := srv.Resume(); err != nil {
		t.Fatal(err)
	}
	return to
}

// crashTo kills the server and starts it on the image: all that it has committed
// since is lost. With innodb_flush_log_at_trx_commit=0 alone it is left to chance
// how much that is.
func crashTo(t *testing.T, srv *servers.Server, image string) {
	t.Helper()
	srv.Kill9()
	if err := os.RemoveAll(srv.DataDir); err != nil {
		t.Fatal(err)
	}
	copyFolder(t, image, srv.DataDir)
	if err := srv.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func copyFolder(t *testing.T, from, to string) {
	t.Helper()
	if out, err := exec.Command("cp", "-a", from, to).CombinedOutput(); err != nil {
		t.Fatalf("copy %s: %v\n%s", from, err, out)
	}
}

// A target that is killed and comes back without commits that it had
// acknowledged: in either phase, and with the run stopped before or going on.
func TestB1_18_TargetLosesCommits(t *testing.T) {
	onKinds(t, func(t *testing.T, kind servers.Kind) {
		source, target := testdb.Pair(t, kind, testdb.WithFast())
		for _, phase := range []state.Phase{state.PhaseSnapshot, state.PhaseCatchUp} {
			for _, how := range []string{"stopped", "running"} {
				t.Run(string(phase)+"/"+how, func(t *testing.T) { loseCommits(t, source, target, phase, how == "stopped") })
			}
		}
	})
}

func loseCommits(t *testing.T, source, target *servers.Server, phase state.Phase, stopped bool) {
	t.Helper()
	database := strings.NewReplacer("/", "_", "-", "_", ".", "_").Replace(t.Name())
	database = "d" + database[len(database)-20:]
	testdb.CreateLoadTables(t, source, database, 4, 3000)
	m := harness.New(t, source, target, harness.Config{Include: []string{database + ".*"}, Extra: []string{"snapshot: {chunk_size: 32KiB}", "checkpoint_interval: 100ms"}})
	load := testdb.StartLoad(t, source, testdb.LoadOptions{Databases: []string{database}, BigEvery: -1})
	p := m.Start("--json", "--until", "never")
	inPhase(p, phase)
	before := highest(t, target, database)
	p.WaitFor("the target gets rows", time.Minute, func() bool { return highest(t, target, database) > before+50 })
	old, then := image(t, target), highest(t, target, database)
	p.WaitFor("the target gets more rows", time.Minute, func() bool { return highest(t, target, database) > then+50 })
	if stopped {
		stopRun(t, p, syscall.SIGINT, 130)
	}
	before = highest(t, target, database)
	crashTo(t, target, old)
	if stopped {
		if highest(t, target, database) >= before {
			t.Error("no commit was lost")
		}
		p = m.StartResume("--json", "--until", "never")
	}
	arrives(t, p, source, target, database)
	stopRun(t, p, syscall.SIGINT, 130)
	if stopped && phase == state.PhaseCatchUp && !strings.Contains(p.Stderr(), "going on from") {
		t.Error("the loss is not mentioned")
	}
	finish(t, m, load, []string{database})
}

// highest sums the highest ids of the tables that are there; it grows with the
// copy and with the load.
func highest(t *testing.T, srv *servers.Server, database string) int {
	t.Helper()
	sum := 0
	for _, table := range names(t, srv, "SELECT table_name FROM information_schema.tables WHERE table_schema = '"+database+"' AND table_name LIKE 'load%'") {
		n, err := strconv.Atoi(testdb.Value(t, srv, "SELECT COALESCE(MAX(id), 0) FROM "+database+"."+table))
		if err != nil {
			t.Fatal(err)
		}
		sum += n
	}
	return sum
}

// arrives writes a row on the source and waits until the run has brought it to
// the target. A load may change the row before that: then it is written again.
func arrives(t *testing.T, p *harness.Process, source, target *servers.Server, database string) {
	t.Helper()
	mark := strconv.FormatInt(time.Now().UnixNano(), 36)
	has := func(srv *servers.Server) bool {
		var n int
		err := srv.DB().QueryRowContext(t.Context(), "SELECT COUNT(*) FROM "+database+".load1 WHERE pad = '"+mark+"'").Scan(&n)
		return err == nil && n > 0
	}
	p.WaitFor("a row arrives", 2*time.Minute, func() bool {
		if !has(source) { // a load that moves ids gets in the way of AUTO_INCREMENT
			_, _ = source.DB().ExecContext(t.Context(), "INSERT INTO "+database+".load1 (pad) VALUES ('"+mark+"')")
		}
		return has(target)
	})
}

// A target that forgets even that the run has taken the migration: no other run
// has, so that this one takes it again.
func TestB1_18_TargetForgetsTheRun(t *testing.T) {
	onKinds(t, func(t *testing.T, kind servers.Kind) {
		source, target := testdb.Pair(t, kind, testdb.WithFast())
		testdb.Load(t, source, "CREATE DATABASE forgot; USE forgot; CREATE TABLE a (id INT PRIMARY KEY); INSERT INTO a VALUES (1)")
		m := harness.New(t, source, target, harness.Config{Include: []string{"forgot.*"}, Build: harness.HoldPoints})
		m.RequireRun()
		before := image(t, target)
		testdb.Exec(t, source, "INSERT INTO forgot.a VALUES (2)")
		m.Hold(harness.HoldCatchUp)
		p := m.StartResume()
		m.WaitReached(p, harness.HoldCatchUp)
		crashTo(t, target, before)
		m.Release(harness.HoldCatchUp)
		p.RequireExit(harness.RunTimeout, 0)
		testdb.RequireEqual(t, source, target, []string{"forgot"})
		m.RequireClean()
	})
}
