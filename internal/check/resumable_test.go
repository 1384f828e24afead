package check

import (
	"errors"
	"fmt"
	"testing"

	"github.com/copydb/copydb/internal/mysqlconn"
	"github.com/copydb/copydb/internal/testdb"
	"github.com/copydb/copydb/state"
	"github.com/copydb/copydb/test/servers"
)

// recorded is what a run would have saved of the source now.
func recorded(t *testing.T, source *servers.Server) *Resume {
	t.Helper()
	in := input(t, source, source, "*.*")
	run(t, in)
	id := in.Facts.Source.Identity
	r := &Resume{Source: state.Source{Server: state.Server{Flavor: string(id.Version.Flavor), ServerUUID: id.UUID}, ServerID: id.ServerID}}
	r.Source.LastResumable, r.Source.LastStreamed = in.Facts.End, in.Facts.End
	return r
}

func writeSome(t *testing.T, source *servers.Server) {
	t.Helper()
	testdb.Exec(t, source, "INSERT INTO history.t VALUES (); INSERT INTO history.t VALUES (); FLUSH BINARY LOGS; INSERT INTO history.t VALUES ()")
}

// resumable goes through what can happen to a source between two runs.
func resumable(t *testing.T, source, other *servers.Server) {
	testdb.Exec(t, source, "CREATE DATABASE history; CREATE TABLE history.t (id INT PRIMARY KEY AUTO_INCREMENT)")
	writeSome(t, source)
	r := recorded(t, source)
	conn := connTo(t, "source", source, "root", "")
	check := func(step string, want any) {
		t.Helper()
		id, err := Resumable(t.Context(), conn, r)
		same := id.UUID == r.Source.ServerUUID
		switch {
		case want == nil && (err != nil || !same):
			t.Errorf("%s: %v %v", step, same, err)
		case want != nil && (err == nil || !errors.As(err, want)):
			t.Errorf("%s: %v", step, err)
		}
	}
	check("nothing happened", nil)
	writeSome(t, source)
	check("more was written", nil)

	_, err := Resumable(t.Context(), connTo(t, "source", other, "root", ""), r)
	var otherServer *mysqlconn.OtherServerError
	if !errors.As(err, &otherServer) {
		t.Errorf("another server: %v", err)
	}

	var lost *HistoryLostError
	ahead := *r
	ahead.Source.LastResumable = state.Position{File: r.Source.LastResumable.File, Pos: 1 << 40}
	if source.Kind == servers.MySQL {
		ahead.Source.LastResumable = state.Position{GTIDSet: testdb.Value(t, source, "SELECT CONCAT(@@server_uuid, ':1-999999')")}
	}
	if _, err := Resumable(t.Context(), conn, &ahead); !errors.As(err, &lost) {
		t.Errorf("position ahead of the log: %v", err)
	}

	var gone *LogGoneError
	testdb.Exec(t, source, "FLUSH BINARY LOGS")
	testdb.Exec(t, source, fmt.Sprintf("PURGE BINARY LOGS TO '%s'", recorded(t, source).Source.LastResumable.File))
	check("purged", &gone)

	lost = nil
	reset := "RESET MASTER"
	if !source.Kind.IsMariaDB() {
		reset = "RESET BINARY LOGS AND GTIDS"
	}
	r = recorded(t, source)
	testdb.Exec(t, source, reset)
	check("reset", &lost)
}

// TestResumableElsewhere: another server that holds our transactions will do.
func TestResumableElsewhere(t *testing.T) {
	source, other := testdb.Pair(t, servers.MySQL)
	testdb.Exec(t, source, "CREATE DATABASE a")
	r := recorded(t, source)
	set := r.Source.LastResumable.GTIDSet
	testdb.Exec(t, other, "SET GLOBAL gtid_purged = '"+set+"'")
	conn := connTo(t, "source", other, "root", "")
	if id, err := Resumable(t.Context(), conn, r); id.UUID == r.Source.ServerUUID || err != nil {
		t.Errorf("a server that has our set: %+v %v", id, err)
	}
	r.Source.SnapshotStart = r.Source.LastResumable
	var refused *mysqlconn.OtherServerError
	if _, err := Resumable(t.Context(), conn, r); !errors.As(err, &refused) {
		t.Errorf("what snapshots saw is not known: %v", err)
	}
	r.Source.SnapshotSeen = &r.Source.LastResumable
	if _, err := Resumable(t.Context(), conn, r); err != nil {
		t.Errorf("a server that has what snapshots saw: %v", err)
	}
	r.MustContain = []string{"3E11FA47-71CA-11E1-9E33-C80AA9429562:1-5"}
	if _, err := Resumable(t.Context(), conn, r); !errors.As(err, &refused) {
		t.Errorf("a server that lacks what snapshots saw: %v", err)
	}
}
