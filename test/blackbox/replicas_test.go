package blackbox

import (
	"context"
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

// words of a family's statements about replication.
type words struct{ source, to, replica, key string }

func wordsOf(kind servers.Kind) words {
	if kind.IsMariaDB() {
		return words{"MASTER", "MASTER TO", "SLAVE", ""}
	}
	return words{"SOURCE", "REPLICATION SOURCE TO", "REPLICA", ", SOURCE_SSL = 1"}
}

// replicate makes a fresh server follow another one from now on.
func replicate(t *testing.T, replica, of *servers.Server) {
	t.Helper()
	w := wordsOf(of.Kind)
	testdb.Exec(t, of, "CREATE USER repl IDENTIFIED BY 'r'; GRANT REPLICATION SLAVE ON *.* TO repl")
	at, _ := end(t, of)
	file, pos, _ := strings.Cut(at, ":")
	testdb.Exec(t, replica, fmt.Sprintf("CHANGE %[1]s %[2]s_HOST = '127.0.0.1', %[2]s_PORT = %[3]d, %[2]s_USER = 'repl', %[2]s_PASSWORD = 'r',"+
		" %[2]s_LOG_FILE = '%[4]s', %[2]s_LOG_POS = %[5]s%[6]s; START %[7]s", w.to, w.source, of.Port, file, pos, w.key, w.replica))
}

// applies starts or stops the replica's thread that applies.
func applies(t *testing.T, replica *servers.Server, yes bool) {
	t.Helper()
	verb := map[bool]string{false: "STOP ", true: "START "}[yes]
	testdb.Exec(t, replica, verb+wordsOf(replica.Kind).replica+" SQL_THREAD")
}

// ignore makes the replica leave a database out.
func ignore(t *testing.T, replica *servers.Server, database string) {
	t.Helper()
	set := "CHANGE REPLICATION FILTER REPLICATE_IGNORE_DB = (" + database + ")"
	if replica.Kind.IsMariaDB() {
		set = "SET GLOBAL replicate_ignore_db = '" + database + "'"
	}
	word := wordsOf(replica.Kind).replica
	testdb.Exec(t, replica, fmt.Sprintf("STOP %[1]s; %s; START %[1]s", word, set))
}

// A replica of the target that stops, lags or cannot be reached has copy and
// catch-up pause, and once it goes on, the run does.
func TestThrottleReplicas(t *testing.T) {
	onKinds(t, func(t *testing.T, kind servers.Kind) {
		source, target := testdb.Pair(t, kind, testdb.WithFast(), testdb.WithBinlogSize(servers.LoadBinlog))
		replica := testdb.One(t, kind, testdb.WithFast(), testdb.WithBinlogSize(servers.LoadBinlog))
		replicate(t, replica, target)
		testdb.CreateLoadTables(t, source, "loads", 2, 4000)
		m := harness.New(t, source, target, harness.Config{Include: []string{"loads.*"}, Extra: []string{"snapshot: {threads: 2, chunk_size: 16KiB}",
			fmt.Sprintf("throttle: {target_replicas: ['%s'], target_replica_max_lag: 2s, max_bytes_per_second: 128KiB}", replica.Addr())}})
		rows := func() int { return count(t, target, "loads.load1") + count(t, target, "loads.load2") }

		p := m.Start("--json", "--progress-interval", "200ms")
		inPhase(p, state.PhaseSnapshot)
		p.WaitFor("rows are copied", time.Minute, func() bool { return rows() > 0 })
		applies(t, replica, false)
		throttledFor(p, "does not apply what it receives")
		standsStill(p, "does not apply", "the number of rows", rows)
		testdb.RequireUnlocked(t, source, []string{"loads"})
		applies(t, replica, true)
		p.RequireExit(harness.RunTimeout, 0)
		wantOnce(t, p, "the run pauses", "the run goes on")
		testdb.RequireEqual(t, source, target, []string{"loads"})

		// One that lags is waited for, for longer than retry_timeout.
		m.SetConfig(func(c *harness.Config) {
			c.Extra = []string{"retry_timeout: 2s", fmt.Sprintf("throttle: {target_replicas: ['%s'], target_replica_max_lag: 1s}", replica.Addr())}
		})
		unlock := lockTable(t, replica, "_copydb.migration")
		testdb.Exec(t, source, "UPDATE loads.load1 SET pad = 'lag' WHERE id < 100; INSERT INTO loads.load2 (pad) VALUES ('late')")
		p = m.StartResume("--json", "--progress-interval", "200ms", "--until", "never")
		throttledFor(p, "lags ")
		late := func() int { return count(t, target, "loads.load2 WHERE pad = 'late'") }
		standsStill(p, "lags ", "the number of late rows", late)
		unlock()
		p.WaitFor("a row arrives", time.Minute, func() bool { return late() == 1 })

		// One that does not replicate by itself any more is waited for as long as a
		// lost server is.
		applies(t, replica, false)
		throttledFor(p, "does not apply what it receives")
		p.RequireExit(time.Minute, 7)
		if text := p.Stderr(); !strings.Contains(text, "take it out of throttle.target_replicas, then resume") {
			t.Errorf("stderr:\n%s", text)
		}
		applies(t, replica, true)
		m.RequireResume()
		testdb.RequireEqual(t, source, target, []string{"loads"})
		eventually(t, "the replica has everything", time.Minute, func() bool { return testdb.Diff(t, target, replica, []string{"loads", "_copydb"}) == "" })
		m.RequireClean()
		testdb.RequireClean(t, replica, harness.User)

		ignore(t, replica, "_copydb")
		requireFinding(t, m, "replica_filter", "Replicate_Ignore_DB", "--resume-state", m.StatePath)
		p = m.StartResume("--json", "--until", "never")
		if kind.IsMariaDB() { // what it filters counts as lag there
			p.WaitForStderr("it has not got the first row of _copydb.heartbeat", time.Minute)
			stopRun(t, p, syscall.SIGINT, 130)
		} else {
			p.RequireExit(time.Minute, 7)
			p.WaitForStderr("its filters must let that through", 0)
		}
		ignore(t, replica, "")
		m.RequireResume()

		replicaFindings(t, m, replica)
		replica.Kill9()
		requireFinding(t, m, "replica_connect", "nothing listens there", "--resume-state", m.StatePath)
		m.Command().Start(t, "cleanup", "--config", m.ConfigPath, "--state", m.StatePath).RequireExit(time.Minute, 0)
	}, families...)
}

// replicaFindings: what the preflight says of the servers in
// throttle.target_replicas.
func replicaFindings(t *testing.T, m *harness.Migration, replica *servers.Server) {
	t.Helper()
	set := func(address string) []string {
		return []string{"--resume-state", m.StatePath, "--set", "throttle.target_replicas=['" + address + "']"}
	}
	requireFinding(t, m, "replica", "lists the target itself", set(m.Target.Addr())...)
	requireFinding(t, m, "replica_connect", "cannot connect to the replica", set("127.0.0.1:1")...)
	requireFinding(t, m, "replica_without_log", "nothing of the copy reaches the replicas", append(set(replica.Addr()), "--set", "target.sql_log_bin=false")...)
	requireFinding(t, m, "replica", "is no replica", set(m.Source.Addr())...)
	w := wordsOf(replica.Kind)
	delay := func(seconds int) {
		testdb.Exec(t, replica, fmt.Sprintf("STOP %[1]s; CHANGE %[2]s %[3]s_DELAY = %[4]d; START %[1]s", w.replica, w.to, w.source, seconds))
	}
	delay(3600)
	requireFinding(t, m, "replica_delay", "delayed by 1h0m0s", set(replica.Addr())...)
	delay(0)
	testdb.Exec(t, replica, "STOP "+w.replica)
	requireFinding(t, m, "replica_stopped", "does not replicate at the moment", set(replica.Addr())...)
	right := "REPLICATION CLIENT"
	if replica.Kind.IsMariaDB() {
		right = "SLAVE MONITOR"
	}
	testdb.Exec(t, replica, "REVOKE "+right+" ON *.* FROM "+harness.User)
	requireFinding(t, m, "replica_rights", "may not ask the replica", set(replica.Addr())...)
	testdb.Exec(t, replica, "REVOKE SELECT ON `\\_copydb`.* FROM "+harness.User)
	requireFinding(t, m, "replica_rights", "lacks SELECT on database _copydb", set(replica.Addr())...)
}

// requireFinding fails the test unless the preflight finds it.
func requireFinding(t *testing.T, m *harness.Migration, id, text string, args ...string) {
	t.Helper()
	p := m.Command().Start(t, append([]string{"check", "--config", m.ConfigPath, "--json"}, args...)...)
	p.Wait(time.Minute)
	for _, r := range p.Records() {
		if r.Type() == "finding" && r.Text("id") == id && strings.Contains(r.Text("message"), text) {
			return
		}
	}
	t.Errorf("no finding %s with %q:\n%s", id, text, p.Stdout())
}

// lockTable keeps others from writing to a table until the function is called
// that it returns.
func lockTable(t *testing.T, srv *servers.Server, table string) (unlock func()) {
	t.Helper()
	conn, err := srv.DB().Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	exec := func(query string) {
		if _, err := conn.ExecContext(context.Background(), query); err != nil {
			t.Error(err)
		}
	}
	exec("LOCK TABLES " + table + " READ")
	return func() {
		exec("UNLOCK TABLES")
		_ = conn.Close()
	}
}
