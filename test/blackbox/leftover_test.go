package blackbox

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/copydb/copydb/internal/testdb"
	"github.com/copydb/copydb/state"
	"github.com/copydb/copydb/test/harness"
	"github.com/copydb/copydb/test/servers"
)

// wideTable has 40 MB in a table without a key: more than sockets buffer.
const wideTable = digits + `CREATE DATABASE wide; CREATE TABLE wide.plain (n INT, v VARCHAR(4000));
	INSERT INTO wide.plain SELECT a.n * 1000 + b.n * 100 + c.n * 10 + d.n, REPEAT('x', 4000)
	  FROM keyless_digits.d a, keyless_digits.d b, keyless_digits.d c, keyless_digits.d d;
	CREATE TABLE wide.keyed (id INT PRIMARY KEY, v INT); INSERT INTO wide.keyed SELECT n, 1 FROM wide.plain;`

// logStatements has a server note what sessions of copydb's account do, until
// the returned function is called, which gives it back in order.
func logStatements(t *testing.T, srv *servers.Server) func() []string {
	t.Helper()
	testdb.Exec(t, srv, "SET GLOBAL general_log = OFF; SET GLOBAL log_output = 'TABLE'; TRUNCATE mysql.general_log; SET GLOBAL general_log = ON")
	off := func() {
		_, err := srv.DB().ExecContext(context.WithoutCancel(t.Context()), "SET GLOBAL general_log = OFF")
		if err != nil {
			t.Error(err)
		}
	}
	t.Cleanup(off)
	return func() []string {
		off()
		return names(t, srv, "SELECT CONCAT(command_type, ' ', LEFT(CONVERT(argument USING utf8mb4), 100)) FROM mysql.general_log WHERE user_host LIKE '"+harness.User+"%'")
	}
}

// beforeTheKill are the beginnings of what a resume may do before the last
// session of the dead run is gone: connect, look for those, end them.
var beforeTheKill = []string{"Connect ", "Quit ", "Query SET NAMES", "Query SELECT CONNECTION_ID()", "Query SELECT DISTINCT id FROM (SELECT IS_USED_LOCK", "Query KILL ",
	"Query SHOW SESSION STATUS LIKE 'Ssl_cipher'", "Query SELECT @@max_allowed_packet", "Query SET character_set_results"}

// A run is killed behind a network that swallows everything, so that both
// servers hold its sessions, a read that runs and a dump among them. A resume
// ends them all before it asks for anything else.
func TestResumeEndsSessionsFirst(t *testing.T) {
	onKinds(t, func(t *testing.T, kind servers.Kind) {
		source, target := sharedPair(t, kind)
		testdb.Load(t, source, wideTable)
		toSource, toTarget := testdb.Proxy(t, source.Addr()), testdb.Proxy(t, target.Addr())
		m := harness.New(t, source, target, harness.Config{Include: []string{"wide.*"}, Build: harness.HoldPoints, Extra: []string{"snapshot: {chunk_size: 1MiB}"},
			SourceAddr: toSource.Addr(), TargetAddr: toTarget.Addr()})
		for _, phase := range phases {
			h := harness.HoldChunkRead("wide.plain")
			if phase == state.PhaseSnapshot {
				m.Hold(h)
			}
			p := begin(m, "--json", "--until", "never")
			if phase == state.PhaseSnapshot {
				m.WaitReached(p, h)
			} else {
				inPhase(p, state.PhaseCatchUp) // the dump of the run before may still be there
				p.WaitFor("a dump", time.Minute, func() bool {
					return strings.Contains(fmt.Sprint(testdb.Sessions(t, source, harness.User)), "Binlog Dump")
				})
			}
			toSource.Pause()
			toTarget.Pause()
			p.Kill9()
			left := testdb.Sessions(t, source, harness.User)
			t.Logf("%s: held after the kill: %v", phase, left)
			if len(left) == 0 || len(testdb.Sessions(t, target, harness.User)) == 0 {
				t.Fatal("the servers hold no session of the dead run")
			}
			m.Release(h)
			m.SetConfig(func(c *harness.Config) { c.SourceAddr, c.TargetAddr = "", "" })
			logs := map[string]func() []string{"source": logStatements(t, source), "target": logStatements(t, target)}
			p = m.StartResume("--json", "--until", "never")
			begun(p)
			for name, stop := range logs {
				requireKilledFirst(t, phase, name, stop())
			}
			stopRun(t, p, syscall.SIGINT, 130)
			toSource.CutAll()
			toTarget.CutAll()
			toSource.Resume()
			toTarget.Resume()
			m.SetConfig(func(c *harness.Config) { c.SourceAddr, c.TargetAddr = toSource.Addr(), toTarget.Addr() })
		}
		m.RequireResume()
		testdb.RequireEqual(t, source, target, []string{"wide"})
	})
}

// requireKilledFirst looks at what a resume did on a server, in order.
func requireKilledFirst(t *testing.T, phase state.Phase, name string, did []string) {
	t.Helper()
	last := -1
	for i, s := range did {
		if strings.HasPrefix(s, "Query KILL ") {
			last = i
		}
	}
	if last < 0 {
		t.Errorf("%s, %s: no session was ended: %q", phase, name, did[:min(len(did), 30)])
		return
	}
	for _, s := range did[:last] {
		if !slices.ContainsFunc(beforeTheKill, func(allowed string) bool { return strings.HasPrefix(s, allowed) }) {
			t.Errorf("%s, %s: before the last session was ended: %s", phase, name, s)
			return
		}
	}
}

// faults are what can happen to a run so that no word of its end reaches the
// source.
var faults = map[string]func(*harness.Process, *testdb.Relay){
	"killed":             func(p *harness.Process, _ *testdb.Relay) { p.Kill9() },
	"frozen":             func(p *harness.Process, _ *testdb.Relay) { p.Signal(syscall.SIGSTOP) },
	"cut off":            func(_ *harness.Process, r *testdb.Relay) { r.Pause() },
	"cut off and killed": func(p *harness.Process, r *testdb.Relay) { r.Pause(); p.Kill9() },
}

// What a run holds on the source when it is killed, frozen or cut off, and how
// long that is there without any help. The long series waits it out.
func TestSourceEndsSessionsByItself(t *testing.T) {
	onKinds(t, func(t *testing.T, kind servers.Kind) {
		source, target := sharedPair(t, kind)
		testdb.Load(t, source, wideTable)
		first := harness.New(t, source, target, harness.Config{Include: []string{"wide.*"}})
		for fault, strike := range faults {
			if fault != "killed" && !long {
				continue
			}
			for _, moment := range []string{harness.HoldChunkRead("wide.keyed"), "schema", "catch-up"} {
				t.Run(fault+" "+moment, func(t *testing.T) {
					testdb.Exec(t, target, "DROP DATABASE IF EXISTS wide; DROP DATABASE IF EXISTS _copydb")
					relay := testdb.Proxy(t, source.Addr())
					m := first.In(t)
					m.SetConfig(func(c *harness.Config) {
						c.SourceAddr, c.Build = relay.Addr(), harness.HoldPoints
						c.Env, c.Extra = []string{harness.ChunkRows(500)}, []string{"snapshot: {chunk_size: 1MiB}"}
					})
					p := hangs(t, m, source, moment)
					requireTimeouts(t, source)
					held := slices.DeleteFunc(testdb.Sessions(t, source, harness.User), func(s testdb.Session) bool { return s.ID == 0 })
					began := time.Now()
					strike(p, relay)
					watchEnd(t, source, fmt.Sprintf("%s: %s at %s", kind, fault, moment), held, began)
					relay.CutAll()
					relay.Resume()
				})
			}
		}
	})
}

// hangs starts a run and brings it to the moment.
func hangs(t *testing.T, m *harness.Migration, source *servers.Server, moment string) *harness.Process {
	t.Helper()
	switch moment {
	case "catch-up":
		p := m.Start("--json", "--until", "never")
		inPhase(p, state.PhaseCatchUp)
		p.WaitFor("a dump", time.Minute, func() bool {
			return strings.Contains(fmt.Sprint(testdb.Sessions(t, source, harness.User)), "Binlog Dump")
		})
		return p
	case "schema": // a transaction is open and idle while a prepared transaction is waited for
		m.Hold("checked")
		p := m.Start("--json")
		m.WaitReached(p, "checked")
		conn, err := source.DB().Conn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, q := range []string{"XA START 'left'", "INSERT INTO keyless_digits.d VALUES (77)", "XA END 'left'", "XA PREPARE 'left'"} {
			if _, err := conn.ExecContext(t.Context(), q); err != nil {
				t.Fatal(err)
			}
		}
		t.Cleanup(func() {
			_, _ = conn.ExecContext(context.WithoutCancel(t.Context()), "XA ROLLBACK 'left'")
			_ = conn.Close()
		})
		m.Release("checked")
		p.WaitFor("an open transaction", time.Minute, func() bool { return strings.Contains(fmt.Sprint(testdb.Sessions(t, source, harness.User)), "Sleep") })
		return p
	}
	m.Hold(moment)
	p := m.Start("--json")
	m.WaitReached(p, moment)
	return p
}

// requireTimeouts looks at what MySQL says is in force on the sessions of a run.
func requireTimeouts(t *testing.T, source *servers.Server) {
	t.Helper()
	if source.Kind.IsMariaDB() {
		return // does not show other sessions' variables
	}
	var bad []string
	if !testdb.Eventually(t, 5*time.Second, func() bool { // one may just be connecting
		bad = names(t, source, `SELECT CONCAT(t.processlist_command, ' ', v.variable_name, '=', v.variable_value)
			FROM performance_schema.variables_by_thread v JOIN performance_schema.threads t USING (thread_id)
			WHERE t.processlist_command NOT LIKE 'Binlog Dump%' AND t.processlist_user = '`+harness.User+`' AND (v.variable_name = 'wait_timeout' AND v.variable_value + 0 > 60
			   OR v.variable_name = 'lock_wait_timeout' AND v.variable_value + 0 > 5
			   OR v.variable_name = 'net_write_timeout' AND v.variable_value + 0 > 600)`)
		return len(bad) == 0
	}) {
		t.Errorf("sessions have %q", bad)
	}
}

// leftLimit is how long the sessions of a run that nobody comes back to are
// watched.
const leftLimit = 150 * time.Second

// watchEnd logs when each of the sessions is gone.
func watchEnd(t *testing.T, source *servers.Server, what string, held []testdb.Session, began time.Time) {
	t.Helper()
	left := held
	for time.Since(began) < leftLimit && len(left) > 0 {
		now := testdb.Sessions(t, source, harness.User)
		left = slices.DeleteFunc(slices.Clone(left), func(s testdb.Session) bool {
			there := slices.ContainsFunc(now, func(n testdb.Session) bool { return n.ID == s.ID })
			if !there {
				t.Logf("%s: gone after %.1f s: %s", what, time.Since(began).Seconds(), s)
			}
			return !there
		})
	}
	for _, s := range left {
		t.Logf("%s: still there after %s: %s", what, leftLimit, s)
		if s.Command == "Sleep" || strings.Contains(what, ": killed at") {
			t.Errorf("%s: %s is left", what, s)
		}
	}
}
