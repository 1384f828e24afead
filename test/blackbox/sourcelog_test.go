package blackbox

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/copydb/copydb/internal/testdb"
	"github.com/copydb/copydb/test/harness"
	"github.com/copydb/copydb/test/servers"
)

// A source whose log was reset keeps its identity and gives the same file names
// again. A state that was made before must not be gone on from, in catch-up or
// in the snapshot.
func TestLogReset(t *testing.T) {
	onKinds(t, func(t *testing.T, kind servers.Kind) {
		source, target := testdb.Pair(t, kind, testdb.WithFast(), testdb.WithBinlogSize(servers.LoadBinlog))
		testdb.CreateLoadTables(t, source, "loads", 1, 200)
		m := harness.New(t, source, target, harness.Config{Include: []string{"loads.*"}, Build: harness.HoldPoints, Env: []string{harness.ChunkRows(50)}})
		if kind == servers.MySQL || kind == servers.MariaDB118 {
			hold := harness.HoldChunkWritten("loads.load1")
			m.Hold(hold)
			p := m.Start("--json")
			m.WaitReached(p, hold)
			stopRun(t, p, syscall.SIGINT, 130)
			m.Release(hold)
		} else {
			m.RequireRun()
		}
		at := m.State().Sources[0]
		if !strings.Contains(at.LogFingerprint, at.ServerUUID) {
			t.Errorf("fingerprint %q", at.LogFingerprint)
		}
		file, _, _ := strings.Cut(at.LogFingerprint, "@")
		resetLog(t, source)
		rewrite(t, source, file)
		refusedAsLost(t, m, "is not the one that was read")
	})
}

// A source that is restored from an older copy of its data folder has shorter
// files, or none, or others under the names that were read.
func TestOlderCopyOfSource(t *testing.T) {
	kinds := []servers.Kind{servers.MySQLNoGTID, servers.MariaDB118}
	if long {
		kinds = servers.Kinds()
	}
	onKinds(t, func(t *testing.T, kind servers.Kind) {
		source, target := testdb.Pair(t, kind, testdb.WithFast(), testdb.WithBinlogSize(servers.LoadBinlog))
		testdb.CreateLoadTables(t, source, "loads", 1, 200)
		m := harness.New(t, source, target, harness.Config{Include: []string{"loads.*"}})
		older := filepath.Join(t.TempDir(), "data")
		stopped(t, source, func() { copyFolder(t, source.DataDir, older) })
		m.WriteConfig()
		for range 2 { // the copy's next file is another one than ours of that name
			testdb.Exec(t, source, "FLUSH BINARY LOGS; UPDATE loads.load1 SET k = k + 1")
		}
		m.RequireRun()
		file, _, _ := strings.Cut(m.State().Sources[0].LogFingerprint, "@")
		stopped(t, source, func() {
			if err := os.RemoveAll(source.DataDir); err != nil {
				t.Fatal(err)
			}
			copyFolder(t, older, source.DataDir)
		})
		m.WriteConfig()
		refusedAsLost(t, m, "lost its history")
		rewrite(t, source, file)
		refusedAsLost(t, m, "is not the one that was read")
	}, kinds...)
}

// stopped does something while the server is stopped.
func stopped(t *testing.T, srv *servers.Server, do func()) {
	t.Helper()
	if err := srv.Stop(); err != nil {
		t.Fatal(err)
	}
	do()
	if err := srv.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// resetLog begins the log anew, in another second: the time of a file's begin
// has no fractions.
func resetLog(t *testing.T, srv *servers.Server) {
	t.Helper()
	now := func() string { return testdb.Value(t, srv, "SELECT UNIX_TIMESTAMP()") }
	was := now()
	eventually(t, "another second", 5*time.Second, func() bool { return now() != was })
	reset := "RESET BINARY LOGS AND GTIDS"
	if srv.Kind.IsMariaDB() {
		reset = "RESET MASTER"
	}
	testdb.Exec(t, srv, reset)
}

// rewrite writes until the log has files up to the named one, each with more in
// it than a test wrote before.
func rewrite(t *testing.T, srv *servers.Server, file string) {
	t.Helper()
	var script strings.Builder
	for i := range 150 {
		fmt.Fprintf(&script, "REPLACE INTO loads.load1 (id) VALUES (%d);", 900000+i)
	}
	script.WriteString("CREATE TABLE loads.filler (b LONGTEXT); INSERT INTO loads.filler VALUES (REPEAT('x', 300000)); DROP TABLE loads.filler")
	for range 20 {
		testdb.Exec(t, srv, script.String())
		if hasFile(t, srv, file) {
			return
		}
		testdb.Exec(t, srv, "FLUSH BINARY LOGS")
	}
	t.Fatalf("the source never got to %s", file)
}

func hasFile(t *testing.T, srv *servers.Server, file string) bool {
	t.Helper()
	_, err := srv.DB().ExecContext(t.Context(), "SHOW BINLOG EVENTS IN '"+file+"' LIMIT 1")
	return err == nil
}

// refusedAsLost resumes and wants exit 5 with the reason and the way on, and the
// state as it was.
func refusedAsLost(t *testing.T, m *harness.Migration, reason string) {
	t.Helper()
	before, err := os.ReadFile(m.StatePath)
	if err != nil {
		t.Fatal(err)
	}
	p := m.StartResume("--json")
	p.RequireExit(harness.RunTimeout, 5)
	last := p.Last("exit_error")
	if !strings.Contains(last.Text("next"), "--start-over") || !strings.Contains(last.Text("message"), reason) {
		t.Errorf("%v, want %q", last, reason)
	}
	after, err := os.ReadFile(m.StatePath)
	if err != nil || !bytes.Equal(before, after) {
		t.Errorf("the state was changed (%v):\n%s", err, after)
	}
}

// An account without RELOAD on a source without GTIDs: the copy starts at the
// begin of the current log file. What that has of before a table's last DDL is
// of another structure, or of another table of that name, and is passed over.
func TestStartOfFile(t *testing.T) {
	source, target := testdb.Pair(t, servers.MySQLNoGTID, testdb.WithFast(), testdb.WithBinlogSize(servers.DefaultBinlog))
	testdb.CreateLoadTables(t, source, "loads", 2, 500)
	testdb.Exec(t, source, `CREATE DATABASE d; USE d;
		CREATE TABLE altered (id INT PRIMARY KEY, a INT, b VARCHAR(20)); INSERT INTO altered VALUES (1,1,'x'),(2,2,'y'); UPDATE altered SET a=9;
		ALTER TABLE altered DROP COLUMN a, ADD COLUMN c DATETIME NULL FIRST; INSERT INTO altered VALUES (NULL,3,'z'); DELETE FROM altered WHERE id=1;
		CREATE TABLE emptied (id INT PRIMARY KEY); INSERT INTO emptied VALUES (1),(2); TRUNCATE emptied; INSERT INTO emptied VALUES (3);
		CREATE TABLE p (id INT PRIMARY KEY, v INT); CREATE TABLE q (id INT PRIMARY KEY, w VARCHAR(9), x INT);
		INSERT INTO p VALUES (1,1); INSERT INTO q VALUES (1,'one',1),(2,'two',2); RENAME TABLE p TO swap, q TO p, swap TO q;
		INSERT INTO p VALUES (3,'three',3); INSERT INTO q VALUES (4,4);
		CREATE TABLE again (id INT PRIMARY KEY, v INT); INSERT INTO again VALUES (1,1),(5,5); DROP TABLE again;
		CREATE TABLE again (id INT PRIMARY KEY, t TEXT); INSERT INTO again VALUES (1,'new');
		CREATE TABLE gone (id INT PRIMARY KEY); INSERT INTO gone VALUES (1); DROP TABLE gone;
		CREATE TABLE mixed (id INT PRIMARY KEY, v INT); SET SESSION binlog_format=STATEMENT; INSERT INTO mixed VALUES (1,1);
		SET SESSION binlog_format=ROW; ALTER TABLE mixed COMMENT='done'; INSERT INTO mixed VALUES (2,2);
		ALTER DATABASE d CHARACTER SET latin1`)
	m := harness.New(t, source, target, harness.Config{Include: []string{"d.*", "loads.*"}})
	testdb.Exec(t, source, "REVOKE RELOAD ON *.* FROM '"+harness.User+"'@'%'")
	load := testdb.StartLoad(t, source, testdb.LoadOptions{Databases: []string{"loads"}, BigEvery: -1})
	eventually(t, "the load writes", time.Minute, func() bool { return load.Result().Changes > 100 })
	p := m.RequireRun("--json")
	if got := p.Last("plan").Text("position_method"); got != "file_start" {
		t.Errorf("the plan starts by %q", got)
	}
	finish(t, m, load, []string{"d", "loads"})
	for _, table := range m.State().Tables {
		if table.Start.Pos <= 4 { // each was made in this file
			t.Errorf("the copy of %s starts at %s", table.Table, table.Start)
		}
	}
}

// What cannot be applied behind a table's last DDL is said before anything is
// written, with the way out.
func TestStartOfFileForeign(t *testing.T) {
	source, target := testdb.Pair(t, servers.MySQLNoGTID, testdb.WithFast(), testdb.WithBinlogSize(servers.DefaultBinlog))
	testdb.Exec(t, source, `CREATE DATABASE d; CREATE TABLE d.t (id INT PRIMARY KEY, v INT, j JSON); CREATE TABLE d.u (id INT PRIMARY KEY, v INT, j JSON)`)
	m := harness.New(t, source, target, harness.Config{Include: []string{"d.*"}})
	testdb.Exec(t, source, "REVOKE RELOAD ON *.* FROM '"+harness.User+"'@'%'")
	for name, change := range map[string]string{
		"statement": "SET SESSION binlog_format=STATEMENT; INSERT INTO d.t VALUES (1,1,NULL)",
		"image":     "INSERT INTO d.t VALUES (2,2,NULL); SET SESSION binlog_row_image=MINIMAL; UPDATE d.t SET v=3 WHERE id=2",
		"json": `INSERT INTO d.t VALUES (3,3,CONCAT('{"a":"',REPEAT('x',500),'","b":1}'));` +
			" SET SESSION binlog_row_value_options=PARTIAL_JSON; UPDATE d.t SET j=JSON_SET(j,'$.b',2) WHERE id=3",
	} {
		testdb.Exec(t, source, "FLUSH BINARY LOGS; "+change)
		p := m.Run("--json")
		found := ""
		for _, r := range p.Records() {
			if r.Type() == "finding" && r.Text("severity") == "error" {
				found += r.Text("id") + " " + r.Text("object") + " " + r.Text("fix")
			}
		}
		if p.Wait(time.Second) != 3 || !strings.HasPrefix(found, "log_before_start d.t ") || !strings.Contains(found, "FLUSH BINARY LOGS") {
			t.Errorf("%s: exit code %d, findings %q", name, p.Wait(time.Second), found)
		}
	}
	testdb.Exec(t, source, "FLUSH BINARY LOGS; INSERT INTO d.u VALUES (1,1,NULL)")
	m.RequireRun()
	testdb.RequireEqual(t, source, target, []string{"d"})
}

// The source's address leads to another server while a run goes on, for new
// connections only, as behind a proxy. Nothing of that server gets to the
// target.
func TestOtherServerInBetween(t *testing.T) {
	onKinds(t, func(t *testing.T, kind servers.Kind) {
		source, target := testdb.Pair(t, kind, testdb.WithFast(), testdb.WithBinlogSize(servers.LoadBinlog))
		other := testdb.One(t, kind, testdb.WithFast(), testdb.WithBinlogSize(servers.LoadBinlog))
		for _, srv := range []*servers.Server{source, other} {
			testdb.CreateLoadTables(t, srv, "loads", 1, 200)
		}
		proxy := testdb.Proxy(t, source.Addr())
		m := harness.New(t, source, target, harness.Config{Include: []string{"loads.*"}, SourceAddr: proxy.Addr(), Build: harness.HoldPoints})
		harness.New(t, other, target, harness.Config{Include: []string{"loads.*"}}) // the account is there, too
		m.Hold(harness.HoldCatchUp)
		p := m.Start("--json")
		m.WaitReached(p, harness.HoldCatchUp)
		testdb.Exec(t, other, "UPDATE loads.load1 SET c = 'of the other server'")
		proxy.Redirect(other.Addr())
		m.Release(harness.HoldCatchUp)
		p.RequireExit(harness.RunTimeout, 4)
		if text := p.Last("exit_error").Text("message"); !strings.Contains(text, "another server") {
			t.Errorf("message: %q", text)
		}
		proxy.Redirect(source.Addr())
		m.RequireResume()
		testdb.RequireEqual(t, source, target, []string{"loads"})
	})
}
