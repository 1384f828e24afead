package dumper

import (
	"context"
	"log/slog"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/copydb/copydb/internal/group"
	"github.com/copydb/copydb/internal/mysqlconn"
	"github.com/copydb/copydb/internal/position"
	"github.com/copydb/copydb/internal/testdb"
	"github.com/copydb/copydb/test/servers"
)

// Beside rotations, and while others ask for the status, a snapshot that is
// opened behind the position has the transactions up to it. Each transaction is
// one row, so the position's sequence number counts them.
func TestSnapshotPositionBesideRotations(t *testing.T) {
	for _, kind := range []servers.Kind{servers.MariaDB1011, servers.MariaDB118} {
		t.Run(string(kind), func(t *testing.T) {
			srv := testdb.One(t, kind, testdb.WithFast(), testdb.WithBinlogSize(servers.ScenarioBinlog))
			testdb.Exec(t, srv, "CREATE DATABASE r; CREATE TABLE r.t (id INT AUTO_INCREMENT PRIMARY KEY, v VARCHAR(200))")
			d, s := rotating(t, srv)
			base := sequence(t, testdb.Value(t, srv, "SELECT @@global.gtid_binlog_pos"))
			stop := repeat(t, srv, "INSERT INTO r.t (v) VALUES (REPEAT('x', 100))", "INSERT INTO r.t (v) VALUES (REPEAT('y', 150))", "SHOW GLOBAL STATUS LIKE 'binlog%'")
			wrong, taken := 0, 0
			for end := time.Now().Add(8 * time.Second); time.Now().Before(end); taken++ {
				at, err := d.snapshotPosition(t.Context(), s)
				if err != nil {
					t.Fatal(err)
				}
				if err := endSnapshot(t.Context(), s); err != nil {
					t.Fatal(err)
				}
				if err := openSnapshot(t.Context(), s); err != nil {
					t.Fatal(err)
				}
				row, err := s.QueryRow(t.Context(), "SELECT COUNT(*) FROM r.t")
				if err != nil {
					t.Fatal(err)
				}
				rows, err := strconv.ParseInt(string(row[0]), 10, 64)
				if want := sequence(t, at.GTIDSet) - base; err != nil || rows < want {
					wrong++
					t.Errorf("at %s the snapshot has %d rows, the log %d", at, rows, want)
				}
				if _, err := s.Exec(t.Context(), "ROLLBACK"); err != nil {
					t.Fatal(err)
				}
			}
			stop()
			t.Logf("%s: %d snapshots among %s commits, %d wrong", kind, taken, testdb.Value(t, srv, "SELECT VARIABLE_VALUE FROM information_schema.GLOBAL_STATUS WHERE VARIABLE_NAME = 'BINLOG_COMMITS'"), wrong)
			if taken < 20 {
				t.Errorf("%d snapshots only", taken)
			}

			testdb.Exec(t, srv, "FLUSH BINARY LOGS") // and nobody writes: the begin of the file is right then
			began := time.Now()
			at, err := d.snapshotPosition(t.Context(), s)
			if err != nil || sequence(t, at.GTIDSet) != sequence(t, testdb.Value(t, srv, "SELECT @@global.gtid_binlog_pos")) {
				t.Errorf("on an idle source: %s, %v", at, err)
			}
			t.Logf("%s: %d ms on an idle source at the begin of a file", kind, time.Since(began).Milliseconds())
		})
	}
}

func rotating(t *testing.T, srv *servers.Server) (*Dumper, *mysqlconn.Session) {
	t.Helper()
	conn, err := mysqlconn.New(mysqlconn.Config{Name: "source", Host: srv.Host, Port: srv.Port, User: srv.RootUser,
		ConnectTimeout: 10 * time.Second, NetworkTimeout: 30 * time.Second, RunID: "0123456789abcdef"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	id, err := conn.Identify(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	d, err := New(Config{Source: conn, Identity: id, Rung: position.RungMariaDB, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	s, err := conn.OpenSession(t.Context(), "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return d, s
}

// repeat runs each statement over a session of its own until stop is called.
func repeat(t *testing.T, srv *servers.Server, statements ...string) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	g, ctx := group.WithContext(ctx)
	for _, q := range statements {
		g.Go("load", func() error {
			conn, err := srv.DB().Conn(ctx)
			if err != nil {
				return nil // the test is over
			}
			defer conn.Close()
			for ctx.Err() == nil {
				if _, err := conn.ExecContext(ctx, q); err != nil && ctx.Err() == nil {
					return err
				}
			}
			return nil
		})
	}
	return func() {
		cancel()
		if err := g.Wait(); err != nil {
			t.Error(err)
		}
	}
}

// sequence is the number in a GTID position of one domain; 0 for none.
func sequence(t *testing.T, gtid string) int64 {
	t.Helper()
	if gtid == "" {
		return 0
	}
	n, err := strconv.ParseInt(gtid[strings.LastIndex(gtid, "-")+1:], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}
