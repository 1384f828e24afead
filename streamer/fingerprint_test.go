package streamer

import (
	"errors"
	"testing"
	"time"

	"github.com/copydb/copydb/internal/mysqlconn"
	"github.com/copydb/copydb/internal/testdb"
	"github.com/copydb/copydb/state"
	"github.com/copydb/copydb/test/servers"
)

// reset begins the server's log anew, in another second than now: the time of a
// file's description has no fractions.
func reset(t *testing.T, src *source) {
	t.Helper()
	was := testdb.Value(t, src.Server, "SELECT UNIX_TIMESTAMP()")
	testdb.Eventually(t, 5*time.Second, func() bool { return testdb.Value(t, src.Server, "SELECT UNIX_TIMESTAMP()") != was })
	if src.Kind.IsMariaDB() {
		src.exec(t, "RESET MASTER")
		return
	}
	src.exec(t, "RESET BINARY LOGS AND GTIDS")
}

// TestFingerprint: the fingerprint of a file is the same whether a dump begins
// at its start, in its middle or by GTID, and another one after a reset.
func TestFingerprint(t *testing.T) {
	everyKind(t, func(t *testing.T, src *source) {
		id, err := src.conn.Identify(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		reset(t, src) // to low numbers of files
		src.exec(t, "CREATE DATABASE a", "CREATE TABLE a.t (id INT PRIMARY KEY)", "FLUSH BINARY LOGS", "INSERT INTO a.t VALUES (1)")
		start := src.here(t)
		src.exec(t, "INSERT INTO a.t VALUES (2)", "INSERT INTO a.t VALUES (3)")
		cfg := src.config(start, src.tables(t, "a"))
		cfg.Identity = id
		want, err := Fingerprint(t.Context(), cfg, start.File)
		if err != nil {
			t.Fatal(err)
		}
		if file, server := SplitFingerprint(want); file != start.File || server != id.UUID {
			t.Errorf("fingerprint %q of %s on %s", want, start.File, id.UUID)
		}
		starts := []state.Position{start}
		if src.Kind.HasGTID() {
			starts = append(starts, state.Position{GTIDSet: start.GTIDSet})
		}
		for _, from := range starts {
			cfg.Start, cfg.Fingerprint = from, want
			cfg.ServerID = lastID.Add(1) + 90000
			for _, tx := range read(t, cfg, src.here(t)) {
				if tx.Fingerprint != want {
					t.Errorf("from %s: fingerprint %q, want %q", from, tx.Fingerprint, want)
				}
			}
		}

		reset(t, src)
		again(t, src, cfg, start, want)
	})
}

// again lets the server write a file of the old name that is longer than the
// old position, with GTIDs behind the old ones, and goes on from there.
func again(t *testing.T, src *source, cfg Config, start state.Position, was string) {
	t.Helper()
	for i := range 40 {
		if i > 0 && src.here(t).File == start.File && src.here(t).Pos > start.Pos {
			break
		}
		if i > 0 && src.here(t).File < start.File {
			src.exec(t, "FLUSH BINARY LOGS")
		}
		src.exec(t, "DELETE FROM a.t", "INSERT INTO a.t VALUES (1),(2),(3),(4)")
	}
	cfg.Start, cfg.Fingerprint = start, was
	cfg.Identity, cfg.ServerID = identityOf(t, src), lastID.Add(1)+90000
	if src.Kind == servers.MySQL {
		cfg.Start = state.Position{File: start.File, Pos: start.Pos} // the file is looked at, not the set
		cfg.GTIDs = false
	}
	_, err := tryRead(t, cfg, src.here(t))
	if !errors.Is(err, ErrHistoryLost) {
		t.Errorf("after a reset: %v, at %+v", err, src.here(t))
	}
	cfg.Fingerprint = start.File + "@1@" + "another server"
	cfg.ServerID = lastID.Add(1) + 90000
	// The old place may be in the middle of an event of the new file.
	if _, err := tryRead(t, cfg, src.here(t)); errors.Is(err, ErrHistoryLost) {
		t.Errorf("the fingerprint of another server: %v", err)
	}
	if _, err := Fingerprint(t.Context(), cfg, "nothing.000001"); !errors.Is(err, ErrLogGone) {
		t.Errorf("fingerprint of no file: %v", err)
	}
}

func identityOf(t *testing.T, src *source) mysqlconn.Identity {
	t.Helper()
	id, err := src.conn.Identify(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// TestOtherServer: the dump connection is on the server that it is to be on.
func TestOtherServer(t *testing.T) {
	bothFamilies(t, func(t *testing.T, src *source) {
		src.exec(t, "CREATE DATABASE a", "CREATE TABLE a.t (id INT PRIMARY KEY)")
		cfg := src.config(src.here(t), src.tables(t, "a"))
		cfg.Identity = identityOf(t, src)
		cfg.Identity.UUID = "another"
		_, err := tryRead(t, cfg, cfg.Start)
		var other *mysqlconn.OtherServerError
		if !errors.As(err, &other) || other.Recorded != "another" || mysqlconn.IsConnectionLost(err) {
			t.Errorf("another server: %v", err)
		}
	})
}
