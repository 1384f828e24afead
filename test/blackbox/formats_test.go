package blackbox

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/copydb/copydb/internal/testdb"
	"github.com/copydb/copydb/state"
	"github.com/copydb/copydb/test/harness"
	"github.com/copydb/copydb/test/servers"
)

// A change of a selected table that is logged in another form than whole rows
// stops the run before its transaction, on each resume at the same place; one of
// another table does not.
func TestB4_10_ForeignFormats(t *testing.T) {
	for name, c := range map[string]struct{ change, reason string }{
		"statement": {"SET SESSION binlog_format=STATEMENT; BEGIN; INSERT INTO %[1]s.t VALUES (5,'{}','s'); INSERT INTO %[1]s.t VALUES (6,'{}','s'); COMMIT", "logged as a statement"},
		"image":     {"SET SESSION binlog_row_image=MINIMAL; UPDATE %[1]s.t SET v='m' WHERE id=1", "lacks columns"},
		"json":      {"SET SESSION binlog_row_value_options=PARTIAL_JSON; UPDATE %[1]s.t SET j=JSON_SET(j,'$.b',2) WHERE id=1", "parts of JSON"},
	} {
		onKinds(t, func(t *testing.T, kind servers.Kind) {
			if name == "json" && kind.IsMariaDB() {
				return
			}
			t.Run(name, func(t *testing.T) { stopsAtFormat(t, kind, c.change, c.reason) })
		})
	}
}

func stopsAtFormat(t *testing.T, kind servers.Kind, change, reason string) {
	t.Helper()
	source, target := sharedPair(t, kind)
	for _, db := range []string{"fmt", "other"} {
		testdb.Exec(t, source, fmt.Sprintf(`CREATE DATABASE %[1]s; CREATE TABLE %[1]s.t (id INT PRIMARY KEY, j JSON, v VARCHAR(9));
			INSERT INTO %[1]s.t VALUES (1,CONCAT('{"a":"',REPEAT('x',500),'","b":1}'),'a')`, db))
	}
	m := harness.New(t, source, target, harness.Config{Include: []string{"fmt.*"}})
	m.RequireRun()
	testdb.Exec(t, source, fmt.Sprintf(change, "other"))
	m.RequireResume()
	testdb.Exec(t, source, "INSERT INTO fmt.t VALUES (2,'{}','b')")
	testdb.Exec(t, source, fmt.Sprintf(change, "fmt")+"; INSERT INTO fmt.t VALUES (9,'{}','c')")
	var first state.Position
	for i := range 3 {
		p := m.Resume()
		if p.ExitCode() != 7 || !strings.Contains(p.Stderr(), "table fmt.t") || !strings.Contains(p.Stderr(), reason) {
			t.Fatalf("exit code %d", p.ExitCode())
		}
		at := m.State().Sources[0].LastResumable
		if i == 0 {
			first = at
		} else if at != first {
			t.Errorf("resume %d stopped at %+v, the first at %+v", i, at, first)
		}
		requireBoundary(t, source, at)
	}
	if got := testdb.Value(t, target, "SELECT GROUP_CONCAT(id, v ORDER BY id) FROM fmt.t"); got != "1a,2b" {
		t.Errorf("the target has %s", got)
	}
	m.RequireClean()
}

// Compressed transactions of MySQL and compressed events of MariaDB, set for the
// server and for some sessions only, under load and through interrupts.
func TestB4_11_Compressed(t *testing.T) {
	onKinds(t, func(t *testing.T, kind servers.Kind) {
		source, target := sharedPair(t, kind)
		on, off := "SET GLOBAL binlog_transaction_compression=ON", "SET GLOBAL binlog_transaction_compression=OFF"
		if kind.IsMariaDB() {
			on, off = "SET GLOBAL log_bin_compress=ON; SET GLOBAL log_bin_compress_min_len=20", "SET GLOBAL log_bin_compress=OFF; SET GLOBAL log_bin_compress_min_len=256"
		}
		testdb.CreateLoadTables(t, source, "loads", 4, 1000)
		m := harness.New(t, source, target, harness.Config{Include: []string{"loads.*"}, Extra: []string{"checkpoint_interval: 10ms"}})
		m.RequireRun()
		plain := testdb.StartLoad(t, source, testdb.LoadOptions{Databases: []string{"loads"}}) // its sessions keep what they began with
		testdb.Exec(t, source, on)
		defer testdb.Exec(t, source, off)
		load := testdb.StartLoad(t, source, testdb.LoadOptions{Databases: []string{"loads"}, BigEvery: 200 * time.Millisecond, BigRows: 1000})
		for range times(3, 20) {
			p := m.StartResume("--json", "--until", "never")
			inPhase(p, state.PhaseCatchUp)
			at(p, time.Second)
			stopRun(t, p, syscall.SIGINT, 130)
			requireBoundary(t, source, m.State().Sources[0].LastResumable)
		}
		plain.Stop()
		finish(t, m, load, []string{"loads"})
	})
}

// A large transaction with savepoints, parts of which the server undoes after it
// has logged them: nothing of that is on the target, whatever interrupts it.
func TestB1_14_LargeTransactionRollsBackAPart(t *testing.T) {
	onKinds(t, func(t *testing.T, kind servers.Kind) {
		source, target := testdb.Pair(t, kind, testdb.WithFast(), testdb.WithBinlogSize(servers.LoadBinlog))
		testdb.Exec(t, source, "CREATE DATABASE sp; CREATE TABLE sp.t (id INT PRIMARY KEY, b LONGTEXT); CREATE TABLE sp.plain (id INT); CREATE TABLE sp.m (id INT PRIMARY KEY) ENGINE=MyISAM;"+
			"INSERT INTO sp.t VALUES (1, REPEAT('x', 1000000)); INSERT INTO sp.m VALUES (1)")
		m := harness.New(t, source, target, harness.Config{Include: []string{"sp.*"}, Build: harness.HoldPoints})
		m.RequireRun()
		grow := func(from int) string {
			return fmt.Sprintf("INSERT INTO sp.t SELECT %d + s.n, b FROM sp.t, (SELECT 0 AS n UNION SELECT 1 UNION SELECT 2 UNION SELECT 3 UNION SELECT 4 UNION SELECT 5 UNION SELECT 6 UNION SELECT 7 UNION SELECT 8 UNION SELECT 9) AS s WHERE id = 1; INSERT INTO sp.plain VALUES (%[1]d);", from)
		}
		mix := "UPDATE sp.m, sp.t SET sp.m.id = sp.m.id + 10, sp.t.b = 'mixed' WHERE sp.t.id = 100;"
		if kind == servers.MySQL {
			mix = "" // with GTIDs it does not mix engines
		}
		testdb.Exec(t, source, "BEGIN;"+grow(100)+"SAVEPOINT one;"+grow(200)+mix+"SAVEPOINT two;"+grow(300)+"ROLLBACK TO two;"+grow(400)+"ROLLBACK TO one;"+grow(500)+"COMMIT;"+
			"BEGIN;"+grow(600)+mix+"ROLLBACK")
		for _, event := range []int{10, 24} {
			m.HoldAt(harness.HoldEvent, event)
			p := m.StartResume("--json")
			m.WaitReached(p, harness.HoldEvent)
			stopRun(t, p, syscall.SIGINT, 130)
			m.Release(harness.HoldEvent)
		}
		m.RequireResume()
		testdb.RequireEqual(t, source, target, []string{"sp"})
		if left, err := state.Spills(m.StatePath); err != nil || len(left) > 0 {
			t.Errorf("left behind: %v, %v", left, err)
		}
	}, servers.MySQL, servers.MySQLNoGTID, servers.MariaDB118)
}
