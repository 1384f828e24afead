package blackbox

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/copydb/copydb/internal/testdb"
	"github.com/copydb/copydb/state"
	"github.com/copydb/copydb/test/harness"
	"github.com/copydb/copydb/test/servers"
)

// Interrupts between the events of one long group: the resumable position is
// never inside of it, and each resume can decode what follows.
func TestB1_02_InterruptsInsideAGroup(t *testing.T) {
	onKinds(t, func(t *testing.T, kind servers.Kind) {
		source, target := testdb.Pair(t, kind, testdb.WithFast(), testdb.WithBinlogSize(servers.LoadBinlog), testdb.WithArgs("--binlog-row-event-max-size=256"))
		texts := "SET GLOBAL binlog_rows_query_log_events=ON"
		if kind.IsMariaDB() {
			texts = "SET GLOBAL binlog_annotate_row_events=OFF" // ON is the default there, OFF on MySQL
		}
		m := harness.New(t, source, target, harness.Config{Include: []string{"g.*"}, Build: harness.HoldPoints, Extra: []string{"checkpoint_interval: 10ms"}})
		testdb.Exec(t, source, longGroupTables)
		m.RequireRun()
		events := 0
		for _, script := range []string{"DO 0", texts} {
			testdb.Exec(t, source, script)
			testdb.Exec(t, source, longGroup) // a session of its own, which has what was set
			for range times(4, 50) {
				events += 17
				interruptAt(t, m, events)
			}
			m.RequireResume()
			testdb.RequireEqual(t, source, target, []string{"g"})
			events = 0
		}
	})
}

const longGroupTables = `CREATE DATABASE g; CREATE TABLE g.d (n INT PRIMARY KEY); INSERT INTO g.d VALUES (0),(1),(2),(3),(4),(5),(6),(7),(8),(9);
	CREATE TABLE g.t (id INT PRIMARY KEY, v INT, b LONGBLOB); CREATE TABLE g.plain (id INT, v INT);
	INSERT INTO g.t SELECT a.n*100+b.n*10+c.n, 0, REPEAT('x', 30000) FROM g.d a, g.d b, g.d c; INSERT INTO g.plain SELECT id, v FROM g.t;`

// longGroup has about 1,500 row events, and is applied in several parts.
const longGroup = `BEGIN; UPDATE g.plain SET v = v + 1 WHERE id < 300; UPDATE g.t SET v = v + 1; DELETE FROM g.t WHERE id < 10; INSERT INTO g.t SELECT n, 1, REPEAT('y', 20000) FROM g.d;
	UPDATE g.plain SET v = v + 1; COMMIT`

// interruptAt stops a resume at an event, and looks where the next one begins.
func interruptAt(t *testing.T, m *harness.Migration, event int) {
	t.Helper()
	m.HoldAt(harness.HoldEvent, event)
	p := m.StartResume("--json", "--until", "never")
	m.WaitReached(p, harness.HoldEvent)
	stopRun(t, p, syscall.SIGINT, 130)
	m.Release(harness.HoldEvent)
	requireBoundary(t, m.Source, m.State().Sources[0].LastResumable)
}

// XA transactions prepared while the program follows, and committed or rolled
// back while it is stopped or later: what is committed is there, nothing else.
func TestB4_12_XAAcrossStops(t *testing.T) {
	onKinds(t, func(t *testing.T, kind servers.Kind) {
		source, target := sharedPair(t, kind)
		testdb.Exec(t, source, "CREATE DATABASE xa; CREATE TABLE xa.t (id INT PRIMARY KEY, v VARCHAR(200)); CREATE TABLE xa.plain (id INT); INSERT INTO xa.t VALUES (1,'one')")
		m := harness.New(t, source, target, harness.Config{Include: []string{"xa.*"}})
		m.RequireRun()
		for i, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGKILL} {
			p := m.StartResume("--json", "--until", "never")
			inPhase(p, state.PhaseCatchUp)
			for k, name := range []string{"commit", "rollback", "late"} {
				prepare(t, source, fmt.Sprint(name, i), 1000*i+100*k)
			}
			testdb.Exec(t, source, fmt.Sprintf("INSERT INTO xa.t VALUES (%d,'after')", 5000+i))
			p.WaitFor("what follows the PREPAREs is there", time.Minute, func() bool {
				return testdb.Value(t, target, fmt.Sprintf("SELECT COUNT(*) FROM xa.t WHERE id = %d", 5000+i)) == "1"
			})
			if sig == syscall.SIGKILL {
				p.Kill9()
			} else {
				stopRun(t, p, sig, 130)
				requireSpills(t, m, 3)
			}
			old := readFile(t, m.StatePath)
			testdb.Exec(t, source, fmt.Sprintf("XA COMMIT 'commit%d'; XA ROLLBACK 'rollback%d'", i, i))
			m.RequireResume()
			requireSpills(t, m, 1)
			writeFile(t, m.StatePath, old) // an older copy names files that are gone
			testdb.Exec(t, source, fmt.Sprintf("XA COMMIT 'late%d'", i))
			m.RequireResume()
			requireSpills(t, m, 0)
			testdb.RequireEqual(t, source, target, []string{"xa"})
		}
		spillFileLost(t, m)
	})
}

// spillFileLost: without the file of what is prepared there is no way on, and
// clean-up takes the files with it.
func spillFileLost(t *testing.T, m *harness.Migration) {
	t.Helper()
	prepare(t, m.Source, "lost", 9000)
	defer testdb.Exec(t, m.Source, "XA ROLLBACK 'lost'")
	m.RequireResume()
	requireSpills(t, m, 1)
	path := state.SpillPath(m.StatePath, m.State().SpillFiles[0])
	if err := os.Rename(path, path+"x"); err != nil {
		t.Fatal(err)
	}
	p := m.Resume()
	if p.ExitCode() != 4 || !strings.Contains(p.Stderr(), "spill file") || !strings.Contains(p.Stderr(), "--start-over") {
		t.Errorf("exit code %d without the spill file", p.ExitCode())
	}
	if err := os.Rename(path+"x", path); err != nil {
		t.Fatal(err)
	}
	m.RequireResume()
	p = m.Command().Start(t, "cleanup", "--config", m.ConfigPath, "--state", m.StatePath)
	p.RequireExit(harness.RunTimeout, 0)
	if left, err := state.Spills(m.StatePath); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// prepare leaves an XA transaction prepared.
func prepare(t *testing.T, source *servers.Server, name string, from int) {
	t.Helper()
	testdb.Exec(t, source, fmt.Sprintf("XA START '%s'; INSERT INTO xa.t VALUES (%d,REPEAT('x',200)),(%d,'%s'); INSERT INTO xa.plain VALUES (%d); XA END '%s'; XA PREPARE '%s'",
		name, from+10, from+11, name, from, name, name))
}

// requireSpills fails the test unless the state names that many files, and
// these alone are there.
func requireSpills(t *testing.T, m *harness.Migration, want int) {
	t.Helper()
	named := m.State().SpillFiles
	have, err := state.Spills(m.StatePath)
	if err != nil {
		t.Fatal(err)
	}
	if len(named) != want || len(have) != want {
		t.Errorf("the state names %v, there are %v; want %d", named, have, want)
	}
}

// One transaction of many rows, interrupted in its middle: memory stays bounded
// on both ways through it, and each row is there once.
func TestB1_14_ManyRowsBoundedMemory(t *testing.T) {
	onKinds(t, func(t *testing.T, kind servers.Kind) {
		source, target := testdb.Pair(t, kind, testdb.WithFast(), testdb.WithBinlogSize(servers.LoadBinlog))
		testdb.Exec(t, source, `CREATE DATABASE huge; CREATE TABLE huge.d (n INT PRIMARY KEY); INSERT INTO huge.d VALUES (0),(1),(2),(3),(4),(5),(6),(7),(8),(9);
			CREATE TABLE huge.t (id INT PRIMARY KEY, v INT, pad VARCHAR(200) CHARACTER SET latin1)`)
		m := harness.New(t, source, target, harness.Config{Include: []string{"huge.*"}, Build: harness.HoldPoints})
		m.RequireRun()
		compress := ""
		if !kind.IsMariaDB() {
			compress = "SET SESSION binlog_transaction_compression=ON; "
		}
		rows := times(100_000, 1_000_000)
		testdb.Exec(t, source, compress+fmt.Sprintf(`INSERT INTO huge.t SELECT n, 0, REPEAT(n, 20) FROM (SELECT
			a.n*100000+b.n*10000+c.n*1000+d.n*100+e.n*10+f.n AS n FROM huge.d a, huge.d b, huge.d c, huge.d d, huge.d e, huge.d f) AS s WHERE n < %d`, rows))
		event := times(600, 6000)
		if compress != "" {
			event = 6 // the payload is one
		}
		m.HoldAt(harness.HoldEvent, event)
		p := m.StartResume("--json")
		peak := p.PeakMemory()
		m.WaitReached(p, harness.HoldEvent)
		if compress == "" {
			stopRun(t, p, syscall.SIGINT, 130)
			m.Release(harness.HoldEvent)
		} else {
			m.Release(harness.HoldEvent)
			eventually(t, "a part is there, or all", 5*time.Minute, func() bool { return !p.Running() || testdb.Value(t, target, "SELECT COUNT(*) FROM huge.t") != "0" })
			p.Kill9()
		}
		if n := peak(); n > mostMemory {
			t.Errorf("%d MiB while it was interrupted", n>>20)
		}
		requireBoundary(t, source, m.State().Sources[0].LastResumable)
		p = m.StartResume()
		peak = p.PeakMemory()
		p.RequireExit(10*time.Minute, 0)
		n := peak()
		t.Logf("%s: %d rows in one transaction: %d MiB, %s", kind, rows, n>>20, p.Took().Round(time.Millisecond))
		if n > mostMemory {
			t.Errorf("%d MiB", n>>20)
		}
		testdb.RequireEqual(t, source, target, []string{"huge"})
	})
}

// A source that dies leaves a file without a Rotate event, and one that is
// stopped a file with a Stop event; files are of 4 KiB throughout.
func TestB1_15_FilesWithoutRotate(t *testing.T) {
	onKinds(t, func(t *testing.T, kind servers.Kind) {
		source, target := testdb.Pair(t, kind, testdb.WithBinlogSize(servers.ScenarioBinlog))
		testdb.CreateLoadTables(t, source, "loads", 2, 500)
		m := harness.New(t, source, target, harness.Config{Include: []string{"loads.*"}})
		m.RequireRun()
		for i := range times(2, 6) {
			load := testdb.StartLoad(t, source, testdb.LoadOptions{Databases: []string{"loads"}, BigEvery: 100 * time.Millisecond, BigRows: 500})
			p := m.StartResume("--json", "--until", "never")
			inPhase(p, state.PhaseCatchUp)
			eventually(t, "some changes", time.Minute, func() bool { return load.Result().Changes > 500 })
			end := source.Kill9
			if i%2 == 1 {
				end = func() { _ = source.Stop() } // asked to; how it ends is its own business
			}
			end()
			load.Stop()
			if err := source.Restart(t.Context()); err != nil {
				t.Fatal(err)
			}
			before := testdb.Value(t, source, "SELECT COUNT(*) FROM loads.load1")
			p.WaitFor("the run has found the source again", time.Minute, func() bool {
				return p.Running() && testdb.Value(t, target, "SELECT COUNT(*) FROM loads.load1") == before
			})
			stopRun(t, p, syscall.SIGINT, 130)
			requireBoundary(t, source, m.State().Sources[0].LastResumable)
			m.RequireResume()
			testdb.RequireEqual(t, source, target, []string{"loads"})
		}
	})
}
