package streamer

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/copydb/copydb/internal/mysqlconn"
	"github.com/copydb/copydb/internal/position"
	"github.com/copydb/copydb/internal/testdb"
	"github.com/copydb/copydb/state"
	"github.com/copydb/copydb/test/servers"
	"go.uber.org/goleak"
)

var everyMariaDB = []servers.Kind{servers.MariaDB1011, servers.MariaDB118}

func TestMain(m *testing.M) { goleak.VerifyTestMain(closing{m}) }

// closing ends the shared servers before goroutines are looked for.
type closing struct{ *testing.M }

// Run runs the tests.
func (c closing) Run() int {
	defer shared.close()
	return c.M.Run()
}

// idle runs a stream until it has seen an event, then calls during, and returns
// the stream's error and how long it took from there.
func idle(t *testing.T, cfg Config, during func(cancel context.CancelFunc)) (time.Duration, error) {
	t.Helper()
	s, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	there, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		seen := false
		ended <- s.Run(ctx, func(context.Context, *Transaction) error {
			if !seen {
				seen = true
				close(there)
			}
			return nil
		})
	}()
	select {
	case <-there:
	case err := <-ended:
		return 0, err
	}
	began := time.Now()
	during(cancel)
	err = <-ended
	return time.Since(began), err
}

func TestConnectionLost(t *testing.T) {
	kinds := bothFamilies
	if long {
		kinds = everyKind
	}
	kinds(t, func(t *testing.T, src *source) {
		before := goleak.IgnoreCurrent()
		src.exec(t, "SET GLOBAL log_output='TABLE'", "SET GLOBAL general_log=ON")
		src.exec(t, "CREATE DATABASE a", "CREATE TABLE a.t (id INT PRIMARY KEY)")
		cfg := src.config(src.here(t), src.tables(t, "a"))
		cfg.Heartbeat = 300 * time.Millisecond

		var session state.Session
		_, err := idle(t, cfg, func(context.CancelFunc) {
			all := src.conn.Sessions()
			if len(all) != 1 || all[0].Lock == "" {
				t.Fatalf("sessions: %+v", all)
			}
			session = all[0]
			holder := testdb.Value(t, src.Server, fmt.Sprintf("SELECT IS_USED_LOCK('%s')", session.Lock))
			if holder != fmt.Sprint(session.ConnectionID) {
				t.Errorf("lock of %+v is held by %s", session, holder)
			}
			testdb.Exec(t, src.Server, "KILL "+holder)
		})
		if !mysqlconn.IsConnectionLost(err) {
			t.Errorf("dump killed: %v", err)
		}
		if got := src.conn.Sessions(); len(got) != 0 {
			t.Errorf("sessions left: %+v", got)
		}

		cfg.ServerID++
		took, err := idle(t, cfg, func(cancel context.CancelFunc) { cancel() })
		if !errors.Is(err, context.Canceled) || took > 5*time.Second {
			t.Errorf("cancelled: %v after %v", err, took)
		}
		hangs(t, src, cfg)
		slowHandler(t, src, cfg)
		// The library's own KILL may hit a stranger behind a proxy.
		if n := testdb.Value(t, src.Server, "SELECT COUNT(*) FROM mysql.general_log WHERE argument LIKE 'KILL%'"); n != "1" {
			t.Errorf("%s sessions were killed, the test did one", n)
		}
		goleak.VerifyNone(t, before, goleak.IgnoreTopFunction("database/sql.(*DB).connectionOpener"))
	})
}

func hangs(t *testing.T, src *source, cfg Config) {
	pause := func() {
		if err := src.Pause(); err != nil {
			t.Fatal(err)
		}
	}
	resume := func() {
		if err := src.Resume(); err != nil {
			t.Fatal(err)
		}
	}
	cfg.ServerID++
	cfg.NetworkTimeout = time.Second
	took, err := idle(t, cfg, func(context.CancelFunc) { pause() })
	resume()
	if !mysqlconn.IsConnectionLost(err) || took > 10*time.Second {
		t.Errorf("server hangs: %v after %v", err, took)
	}
	cfg.ServerID++
	cfg.NetworkTimeout = time.Minute
	took, err = idle(t, cfg, func(cancel context.CancelFunc) { pause(); cancel() })
	resume()
	if !errors.Is(err, context.Canceled) || took > 10*time.Second {
		t.Errorf("cancelled while the server hangs: %v after %v", err, took)
	}
	pause()
	cfg.ServerID++
	cfg.NetworkTimeout = time.Second
	took, err = idle(t, cfg, func(context.CancelFunc) {})
	resume()
	if !mysqlconn.IsConnectionLost(err) {
		t.Errorf("server hangs from the start: %v after %v", err, took)
	}
}

// slowHandler takes longer over a transaction than the source may be silent.
func slowHandler(t *testing.T, src *source, cfg Config) {
	t.Helper()
	cfg.ServerID++
	cfg.Start, cfg.NetworkTimeout = src.here(t), 900*time.Millisecond
	src.exec(t, "INSERT INTO a.t VALUES (1)", "INSERT INTO a.t VALUES (2)", "INSERT INTO a.t VALUES (3)")
	end := src.here(t)
	s, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	err = s.Run(ctx, func(ctx context.Context, tx *Transaction) error {
		if position.Reached(cfg.Version.Flavor, tx.EndPosition(), end) {
			return errDone
		}
		select {
		case <-time.After(1500 * time.Millisecond):
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	})
	if !errors.Is(err, errDone) {
		t.Errorf("slow handler: %v", err)
	}
}

// TestIdleMoves: rotations and heartbeats move the position though nothing
// selected happens.
func TestIdleMoves(t *testing.T) {
	everyKind(t, func(t *testing.T, src *source) {
		src.exec(t, "CREATE DATABASE b", "CREATE TABLE b.t (id INT)")
		start := src.here(t)
		src.exec(t, "INSERT INTO b.t VALUES (1)", "FLUSH BINARY LOGS")
		end := src.here(t)
		end.GTIDSet = "" // by file and place
		all := read(t, src.config(start, nil), end)
		last := all[len(all)-1]
		if c, ok := position.Compare(last.End, end); !ok || c < 0 || len(describe(all)) != 0 || !last.CommittedAt.IsZero() {
			t.Errorf("%+v, want at least %v", last, end) // MariaDB writes a checkpoint later
		}
	})
}

func TestRefused(t *testing.T) {
	everyKind(t, func(t *testing.T, src *source) {
		src.exec(t, "CREATE DATABASE a", "CREATE TABLE a.t (id INT PRIMARY KEY)")
		start := src.here(t)
		cfg := src.config(start, src.tables(t, "a"))
		cfg.Heartbeat = 300 * time.Millisecond
		if src.Kind.IsMariaDB() { // MySQL goes by a uuid that is a new one each time
			takesOver(t, cfg)
		}

		ahead := start
		ahead.Pos += 1 << 20
		if src.Kind.HasGTID() && !src.Kind.IsMariaDB() {
			ahead.GTIDSet = advanced(t, src)
		}
		_, err := tryRead(t, src.config(ahead, cfg.Tables), start)
		if !errors.Is(err, ErrLogGone) {
			t.Errorf("a start behind the end: %v", err)
		}

		src.exec(t, "INSERT INTO a.t VALUES (1)", "FLUSH BINARY LOGS", "INSERT INTO a.t VALUES (2)", "FLUSH BINARY LOGS")
		if _, err := src.conn.Sweep(t.Context()); err != nil { // a dump that is not noticed to be over holds its file
			t.Fatal(err)
		}
		if src.Kind == servers.MariaDB118 {
			src.exec(t, "SET GLOBAL slave_connections_needed_for_purge=0")
		}
		purge(t, src)
		_, err = tryRead(t, src.config(start, cfg.Tables), src.here(t))
		if !errors.Is(err, ErrLogGone) {
			t.Errorf("purged: %v", err)
		}
		if src.Kind.IsMariaDB() {
			_, err = tryRead(t, src.config(state.Position{GTIDSet: start.GTIDSet}, cfg.Tables), src.here(t))
			if !errors.Is(err, ErrLogGone) {
				t.Errorf("purged, by gtid: %v", err)
			}
			_, err = tryRead(t, src.config(state.Position{GTIDSet: "0-9-999999"}, cfg.Tables), src.here(t))
			if !errors.Is(err, ErrLogGone) {
				t.Errorf("unknown gtid: %v", err)
			}
		}
	})
}

func takesOver(t *testing.T, cfg Config) {
	t.Helper()
	_, err := idle(t, cfg, func(context.CancelFunc) {
		s, err := New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), limit)
		defer cancel()
		_ = s.Run(ctx, func(context.Context, *Transaction) error { return errDone })
	})
	if !errors.Is(err, ErrServerIDTaken) {
		t.Errorf("same server id: %v", err)
	}
}

// purge leaves only the newest file. MariaDB keeps a file until a checkpoint
// says that no recovery needs it.
func purge(t *testing.T, src *source) {
	t.Helper()
	gone := testdb.Eventually(t, 20*time.Second, func() bool {
		src.exec(t, "PURGE BINARY LOGS TO '"+src.here(t).File+"'")
		c, err := src.conn.Open(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		logs, err := c.QueryMaps(t.Context(), "SHOW BINARY LOGS")
		return err == nil && len(logs) == 1
	})
	if !gone {
		t.Fatal("the binary logs stay")
	}
}

// advanced is a set with transactions of the server that it has not done.
func advanced(t *testing.T, src *source) string {
	return testdb.Value(t, src.Server, "SELECT CONCAT(@@server_uuid, ':1-9999')")
}
