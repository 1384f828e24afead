package testdb

import (
	"context"
	"database/sql"
	"fmt"
	"testing"
	"time"

	"github.com/copydb/copydb/test/servers"
)

// The load keeps its rate, meets no error that it should not meet, and goes on
// over a restart of the server.
func TestLoadKeepsItsRate(t *testing.T) {
	forEachKind(t, func(t *testing.T, kind servers.Kind) {
		srv := One(t, kind, WithBinlogSize(servers.LoadBinlog))
		LoadTypes(t, srv, Tables)
		began := time.Now()
		CreateLoadTables(t, srv, "loads", 2, 20000)
		t.Logf("40000 rows in %.1f s", time.Since(began).Seconds())
		load := StartLoad(t, srv, LoadOptions{Databases: append(TypeDatabases(kind, Tables), "loads"), BigEvery: time.Second})
		waitForChanges(t, load, 2500)
		if r := load.Result(); r.Rate() < 200 {
			t.Errorf("%.0f changes/s", r.Rate())
		}
		srv.Kill9()
		if err := srv.Restart(t.Context()); err != nil {
			t.Fatal(err)
		}
		before := load.Result().Changes
		waitForChanges(t, load, before+200)
		r := load.Stop()
		if r.BigChanges == 0 {
			t.Error("no big transaction")
		}
		checkErrors(t, r)
		before = r.Changes
		if again := load.Stop(); again.Changes != before {
			t.Error("went on after Stop")
		}
		if got := Value(t, srv, "SELECT COUNT(*) FROM information_schema.schemata WHERE schema_name = '"+ScratchDatabase+"'"); got != "0" {
			t.Error("the scratch database is left")
		}
	})
}

func waitForChanges(t *testing.T, load *Generator, n int64) {
	t.Helper()
	if !Eventually(t, time.Minute, func() bool { return load.Result().Changes >= n }) {
		t.Fatalf("%d changes after a minute, want %d", load.Result().Changes, n)
	}
}

// Refused rows are in the nature of the load; errors of its own SQL are not.
func checkErrors(t *testing.T, r LoadResult) {
	t.Helper()
	refused := map[uint16]bool{
		0: true, 1062: true, 1213: true, 1205: true, 1020: true, 1451: true, 1452: true, 1053: true, 1927: true,
		3819: true, 4025: true, // check constraints
		1526: true, // no partition for the value
		1048: true, // NULL into a key
		1467: true, // MariaDB, counter taken by another session
	}
	var own int64
	for number, n := range r.Errors {
		if !refused[number] {
			own += n
			t.Errorf("error %d, %d times", number, n)
		}
	}
	if r.Commits < 4*own {
		t.Errorf("%d commits, %d errors", r.Commits, own)
	}
}

func TestLoadTablesAreFilledTheSameEachTime(t *testing.T) {
	source, target := Pair(t, servers.MariaDB118, WithFast())
	for _, srv := range []*servers.Server{source, target} {
		CreateLoadTables(t, srv, "d", 2, 6001)
	}
	RequireEqual(t, source, target, []string{"d"})
	if got := Value(t, source, "SELECT CONCAT(COUNT(*), ' ', MIN(id), ' ', MAX(id), ' ', COUNT(u)) FROM d.load2"); got != "6001 1 6001 4801" {
		t.Error(got)
	}
}

func TestSessionsAndLocks(t *testing.T) {
	forEachKind(t, func(t *testing.T, kind servers.Kind) {
		srv := One(t, kind, WithFast())
		Exec(t, srv, "CREATE DATABASE d; CREATE TABLE d.t (id INT PRIMARY KEY); INSERT INTO d.t VALUES (1);"+
			"CREATE USER app@'%' IDENTIFIED BY ''; GRANT ALL ON d.* TO app@'%'")
		RequireClean(t, srv, "")
		RequireUnlocked(t, srv, []string{"d"})
		proxy := Proxy(t, srv.Addr())
		db, err := sql.Open("mysql", fmt.Sprintf("app@tcp(%s)/d", proxy.Addr()))
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		tx, err := db.Begin()
		if err != nil {
			t.Fatal(err)
		}
		var id int
		if err := tx.QueryRow("SELECT id FROM t FOR UPDATE").Scan(&id); err != nil {
			t.Fatal(err)
		}
		var found []Session
		if !Eventually(t, 5*time.Second, func() bool {
			found = Sessions(t, srv, "app")
			return len(found) == 1 && found[0].Transaction != ""
		}) {
			t.Fatalf("sessions: %v", found)
		}
		if locks := LockHolders(t, srv, "d", "t"); len(locks) != 1 || locks[0].Session != found[0].ID {
			t.Errorf("locks: %v", locks)
		}
		checkProxy(t, proxy, db)
		_ = tx.Rollback()
		db.Close()
		RequireClean(t, srv, "app")
		RequireUnlocked(t, srv, []string{"d"})
	})
}

func checkProxy(t *testing.T, proxy *Relay, db *sql.DB) {
	t.Helper()
	proxy.Pause()
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if err := db.PingContext(ctx); err == nil {
		t.Error("a new connection answers through a paused proxy")
	}
	proxy.Resume()
	if err := db.PingContext(t.Context()); err != nil {
		t.Error(err)
	}
	proxy.CutAll()
	if !Eventually(t, 5*time.Second, func() bool { return proxy.Connections() == 0 }) {
		t.Error("connections left after CutAll")
	}
	if err := db.PingContext(t.Context()); err != nil {
		t.Error(err)
	}
}
