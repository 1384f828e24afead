package blackbox

import (
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

// forgetful are options with which a server that is killed loses the commits of
// minutes. MySQL's own threads would hand them to the kernel at once.
func forgetful(kind servers.Kind) testdb.Option {
	args := []string{"--innodb-flush-log-at-trx-commit=0", "--innodb-flush-log-at-timeout=300", "--sync-binlog=0"}
	if !kind.IsMariaDB() {
		args = append(args, "--innodb-log-writer-threads=OFF")
	}
	return testdb.WithArgs(args...)
}

// A target that is killed and comes back without commits that it had
// acknowledged: in either phase, and with the run stopped before or going on.
func TestB1_18_TargetLosesCommits(t *testing.T) {
	onKinds(t, func(t *testing.T, kind servers.Kind) {
		source, target := testdb.Pair(t, kind, forgetful(kind))
		lost, noticed := 0, 0
		for _, phase := range []state.Phase{state.PhaseSnapshot, state.PhaseCatchUp} {
			for _, how := range []string{"stopped", "running"} {
				t.Run(string(phase)+"/"+how, func(t *testing.T) {
					l, n := loseCommits(t, source, target, phase, how == "stopped")
					t.Logf("%s: commits lost %v, noticed %v", kind, l, n)
					if l {
						lost++
					}
					if n {
						noticed++
					}
				})
			}
		}
		if lost == 0 || noticed == 0 {
			t.Errorf("commits were lost in %d and the loss noticed in %d cases of 4: the test tests nothing", lost, noticed)
		}
	})
}

func loseCommits(t *testing.T, source, target *servers.Server, phase state.Phase, stopped bool) (lost, noticed bool) {
	database := strings.NewReplacer("/", "_", "-", "_", ".", "_").Replace(t.Name())
	database = "d" + database[len(database)-20:]
	testdb.CreateLoadTables(t, source, database, 4, 3000)
	m := harness.New(t, source, target, harness.Config{Include: []string{database + ".*"}, Extra: []string{"snapshot: {chunk_size: 32KiB}", "checkpoint_interval: 100ms"}})
	load := testdb.StartLoad(t, source, testdb.LoadOptions{Databases: []string{database}, BigEvery: -1})
	p := m.Start("--json", "--until", "never")
	inPhase(p, phase)
	before := highest(t, target, database)
	p.WaitFor("the target gets rows", time.Minute, func() bool { return highest(t, target, database) > before+50 })
	if stopped {
		stopRun(t, p, syscall.SIGINT, 130)
	}
	before = highest(t, target, database)
	target.Kill9()
	if err := target.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	lost = highest(t, target, database) < before // with the run going on, it may have made up for it
	if stopped {
		p = m.StartResume("--json", "--until", "never")
	}
	arrives(t, p, source, target, database)
	stopRun(t, p, syscall.SIGINT, 130)
	noticed = strings.Contains(p.Stderr(), "going on from")
	if stopped && lost && phase == state.PhaseCatchUp && !noticed {
		t.Error("the loss is not mentioned")
	}
	finish(t, m, load, []string{database})
	return lost, noticed
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
// the target.
func arrives(t *testing.T, p *harness.Process, source, target *servers.Server, database string) {
	t.Helper()
	mark := strconv.FormatInt(time.Now().UnixNano(), 36)
	// A load that moves ids gets in the way of AUTO_INCREMENT.
	eventually(t, "the row is written", time.Minute, func() bool {
		_, err := source.DB().ExecContext(t.Context(), "INSERT INTO "+database+".load1 (pad) VALUES ('"+mark+"')")
		return err == nil
	})
	p.WaitFor("a row arrives", 2*time.Minute, func() bool {
		var n int
		err := target.DB().QueryRowContext(t.Context(), "SELECT COUNT(*) FROM "+database+".load1 WHERE pad = '"+mark+"'").Scan(&n)
		return err == nil && n > 0
	})
}
