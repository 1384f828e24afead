package blackbox

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
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

// Statements of many rows, whose row events are cut small: the saved position
// is never between them.
func TestB1_02_MultiEventStatements(t *testing.T) {
	onKinds(t, func(t *testing.T, kind servers.Kind) {
		opts := []testdb.Option{testdb.WithFast(), testdb.WithArgs("--binlog-row-event-max-size=1024")}
		if !kind.IsMariaDB() {
			opts = append(opts, testdb.WithArgs("--binlog-rows-query-log-events=ON"))
		}
		source, target := testdb.Pair(t, kind, opts...)
		testdb.CreateLoadTables(t, source, "loads", 2, 3000)
		m := harness.New(t, source, target, harness.Config{Include: []string{"loads.*"}, Extra: []string{smallChunks, "checkpoint_interval: 10ms"}})
		m.RequireRun()
		load := testdb.StartLoad(t, source, testdb.LoadOptions{Databases: []string{"loads"}, BigEvery: 100 * time.Millisecond, BigRows: 2000})
		for range times(5, 30) {
			p := m.StartResume("--json", "--until", "never")
			inPhase(p, state.PhaseCatchUp)
			at(p, time.Second)
			stopRun(t, p, syscall.SIGINT, 130)
			for _, r := range p.Records() {
				if r.Type() == "checkpoint" {
					requireBoundary(t, source, r.Position("last_resumable"))
				}
			}
			requireBoundary(t, source, m.State().Sources[0].LastResumable)
		}
		finish(t, m, load, []string{"loads"})
	})
}

// betweenTransactions are the types of events that may follow a boundary.
var betweenTransactions = []string{"Gtid", "Anonymous_Gtid", "Rotate", "Stop", "Format_desc", "Previous_gtids", "Gtid_list", "Binlog_checkpoint", "Start_encryption"}

// requireBoundary fails the test if the event at the position belongs to a
// transaction that began before it.
func requireBoundary(t *testing.T, source *servers.Server, p state.Position) {
	t.Helper()
	if p.File == "" {
		return
	}
	rows, err := source.DB().QueryContext(t.Context(), fmt.Sprintf("SHOW BINLOG EVENTS IN '%s' FROM %d LIMIT 1", p.File, p.Pos))
	if err != nil {
		t.Fatalf("last resumable %s: %v", p, err)
	}
	defer rows.Close()
	if !rows.Next() {
		if err := rows.Err(); err != nil {
			t.Fatal(err)
		}
		return // the end of the file
	}
	var file, kind, info string
	var pos, id, next int64
	if err := rows.Scan(&file, &pos, &kind, &id, &next, &info); err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(betweenTransactions, kind) {
		t.Errorf("last resumable %s is before a %s: %s", p, kind, info)
	}
}

// The target refuses one row of a statement while the checkpoint is overdue.
func TestB1_04_TargetRefusesRow(t *testing.T) {
	onKinds(t, func(t *testing.T, kind servers.Kind) {
		source, target := sharedPair(t, kind)
		testdb.Exec(t, source, "CREATE DATABASE shop; CREATE TABLE shop.a (id INT PRIMARY KEY, v INT); CREATE TABLE shop.b (id INT PRIMARY KEY)")
		m := harness.New(t, source, target, harness.Config{Include: []string{"shop.*"}, Extra: []string{"checkpoint_interval: 10ms"}})
		m.RequireRun()
		testdb.Exec(t, target, "CREATE TRIGGER shop.refuse BEFORE INSERT ON shop.a FOR EACH ROW IF NEW.id = 7 THEN SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'not seven'; END IF")
		testdb.Exec(t, source, "INSERT INTO shop.b VALUES (1); INSERT INTO shop.a SELECT id, id FROM (SELECT 1 id UNION SELECT 2 UNION SELECT 6 UNION SELECT 7 UNION SELECT 8) x; INSERT INTO shop.b VALUES (2)")
		var first state.Position
		for i := range 3 {
			args := []string{"--json"}
			if i == 2 {
				args = append(args, "--show-keys")
			}
			p := m.Resume(args...)
			s := m.State()
			if shown := strings.Contains(p.Stderr(), "id = 7"); shown != (i == 2) || strings.Contains(p.Stdout(), "id = 7") {
				t.Errorf("the key of the row, with %v", args)
			}
			if p.ExitCode() != 7 || !strings.Contains(p.Stderr(), "shop.a") || !strings.Contains(p.Stderr(), "not seven") {
				t.Fatalf("exit code %d", p.ExitCode())
			}
			if i == 0 {
				first = s.Sources[0].LastResumable
			} else if got := s.Sources[0].LastResumable; got != first {
				t.Errorf("resume %d stopped at %+v, the first at %+v", i, got, first)
			}
			requireReleased(t, source, "shop")
			testdb.RequireClean(t, target, harness.User)
		}
		testdb.Exec(t, target, "DROP TRIGGER shop.refuse")
		finish(t, m, nil, []string{"shop"})
	})
}

// Binary logs purged beyond the saved position; and a position that moves while
// only tables are written that are not selected.
func TestB1_08_PurgedLogs(t *testing.T) {
	onKinds(t, func(t *testing.T, kind servers.Kind) {
		source, target := sharedPair(t, kind)
		testdb.CreateLoadTables(t, source, "shop", 1, 20)
		testdb.Exec(t, source, "CREATE DATABASE other; CREATE TABLE other.t (id INT PRIMARY KEY AUTO_INCREMENT)")
		m := harness.New(t, source, target, harness.Config{Include: []string{"shop.*"}, Extra: []string{"checkpoint_interval: 50ms"}})
		p := m.Start("--json", "--until", "never")
		inPhase(p, state.PhaseCatchUp)
		for range 5 {
			testdb.Exec(t, source, "INSERT INTO other.t VALUES (); FLUSH BINARY LOGS")
		}
		newest, _, _ := strings.Cut(first(end(t, source)), ":")
		p.WaitFor("the position moves to "+newest, time.Minute, func() bool { return m.State().Sources[0].LastResumable.File == newest })
		stopRun(t, p, syscall.SIGINT, 130)
		purge(t, source, newest)
		m.RequireResume()
		testdb.RequireEqual(t, source, target, []string{"shop"})

		before := readFile(t, m.StatePath)
		testdb.Exec(t, source, "INSERT INTO shop.load1 (k) VALUES (1); FLUSH BINARY LOGS; INSERT INTO shop.load1 (k) VALUES (2); FLUSH BINARY LOGS")
		newest, _, _ = strings.Cut(first(end(t, source)), ":")
		purge(t, source, newest)
		p = m.Resume()
		if p.ExitCode() != 5 || p.Took() > 10*time.Second || !strings.Contains(p.Stderr(), "--start-over") {
			t.Errorf("exit code %d after %s", p.ExitCode(), p.Took())
		}
		if string(readFile(t, m.StatePath)) != string(before) {
			t.Error("the state was changed")
		}
		m.RequireClean()
		m.Command().Start(t, m.FreshArgs("--start-over")...).RequireExit(time.Minute, 0)
		testdb.RequireEqual(t, source, target, []string{"shop"})
	})
}

// purge removes all binary logs before one. MariaDB keeps a file for a while that
// it would need after a crash.
func purge(t *testing.T, srv *servers.Server, newest string) {
	t.Helper()
	eventually(t, "only "+newest+" is left", time.Minute, func() bool {
		testdb.Exec(t, srv, "PURGE BINARY LOGS TO '"+newest+"'")
		rows, err := srv.DB().QueryContext(t.Context(), "SHOW BINARY LOGS")
		if err != nil {
			t.Fatal(err)
		}
		defer rows.Close()
		n := 0
		for rows.Next() {
			n++
		}
		if err := rows.Err(); err != nil {
			t.Fatal(err)
		}
		return n == 1
	})
}

func first(a, _ string) string { return a }

// While a run goes on, or is frozen, no other may write: neither with its state
// nor with another.
func TestB1_10_SecondRun(t *testing.T) {
	onKinds(t, func(t *testing.T, kind servers.Kind) {
		source, target := sharedPair(t, kind)
		testdb.CreateLoadTables(t, source, "shop", 2, 200)
		m := harness.New(t, source, target, harness.Config{Include: []string{"shop.*"}, Build: harness.HoldPoints, Env: []string{harness.ChunkRows(50)}})
		hold := harness.HoldChunkWritten("shop.load1")
		m.Hold(hold)
		p := m.Start("--json")
		m.WaitReached(p, hold)
		refused := func(what string) {
			t.Helper()
			q := m.Resume()
			if q.ExitCode() != 4 || !strings.Contains(q.Stderr(), strconv.Itoa(p.PID())) {
				t.Errorf("%s, same state: exit code %d", what, q.ExitCode())
			}
			q = m.In(t).Run()
			if q.ExitCode() != 4 && q.ExitCode() != 3 || !strings.Contains(q.Stdout()+q.Stderr(), "run") {
				t.Errorf("%s, other state: exit code %d", what, q.ExitCode())
			}
			if q := m.Command().Start(t, "cleanup", "--config", m.ConfigPath, "--state", m.StatePath); q.Wait(time.Minute) != 4 {
				t.Errorf("%s, cleanup: exit code %d", what, q.ExitCode())
			}
			if q := m.Command().Start(t, "status", "--state", m.StatePath); q.Wait(time.Minute) != 0 || !strings.Contains(q.Stdout(), "snapshot") {
				t.Errorf("%s, status: exit code %d", what, q.ExitCode())
			}
		}
		refused("running")
		p.Signal(syscall.SIGSTOP)
		refused("frozen")
		p.Signal(syscall.SIGCONT)
		m.Release(hold)
		p.RequireExit(time.Minute, 0)
		finish(t, m, nil, []string{"shop"})
		m.Command().Start(t, "cleanup", "--config", m.ConfigPath, "--state", m.StatePath).RequireExit(time.Minute, 0)
		if n := testdb.Value(t, target, "SELECT COUNT(*) FROM information_schema.schemata WHERE schema_name = '_copydb'"); n != "0" {
			t.Error("cleanup leaves _copydb")
		}
	}, families...)
}

// A pipe to tee and Ctrl-C to the whole group; nohup; a closed stdout.
func TestB1_20_Pipes(t *testing.T) {
	onKinds(t, func(t *testing.T, kind servers.Kind) {
		source, target := sharedPair(t, kind)
		testdb.CreateLoadTables(t, source, "shop", 2, 500)
		m := harness.New(t, source, target, harness.Config{Include: []string{"shop.*"}})
		command := m.Command()
		log := filepath.Join(m.Dir, "log")
		command.Prefix = []string{"sh", "-c", `"$@" 2>&1 | tee ` + log, "sh"}
		p := command.Start(t, m.FreshArgs("--until", "never")...)
		p.WaitFor("catch-up", time.Minute, func() bool { return strings.Contains(p.Stdout(), "catch_up") })
		if err := syscall.Kill(-p.PID(), syscall.SIGINT); err != nil {
			t.Fatal(err)
		}
		p.Wait(stopTimeout + 5*time.Second)
		eventually(t, "the state says SIGINT", stopTimeout, func() bool { s := m.State().LastStop; return s != nil && s.ExitCode == 130 })
		requireReleased(t, source, "shop")

		command.Prefix = []string{"nohup"}
		p = command.Start(t, m.ResumeArgs("--json", "--until", "never")...)
		inPhase(p, state.PhaseCatchUp)
		p.Signal(syscall.SIGHUP)
		arrives(t, p, source, target, "shop")
		stopRun(t, p, syscall.SIGINT, 130)

		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		command.Prefix, command.Stdout = nil, w
		p = command.Start(t, m.ResumeArgs("--json")...)
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
		p.RequireExit(time.Minute, 0)
		finish(t, m, nil, []string{"shop"})
	}, families...)
}
