package dumper

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/copydb/copydb/internal/applier"
	"github.com/copydb/copydb/internal/group"
	"github.com/copydb/copydb/internal/position"
	"github.com/copydb/copydb/internal/table"
	"github.com/copydb/copydb/internal/testdb"
	"github.com/copydb/copydb/state"
	"github.com/copydb/copydb/test/servers"
)

// In a storm of XA transactions an exact snapshot has those that are committed
// up to its position and no other: as many rows as the log has XA COMMITs there.
func TestExactPositionInAnXAStorm(t *testing.T) {
	for kind, rung := range map[servers.Kind]position.Rung{servers.MySQL: position.RungGTID, servers.MySQLNoGTID: position.RungFlush, servers.MariaDB1011: position.RungMariaDB, servers.MariaDB118: position.RungMariaDB} {
		t.Run(string(kind), func(t *testing.T) {
			b := newBench(t, kind, rung)
			testdb.Exec(t, b.server, "CREATE DATABASE ex; CREATE TABLE ex.t (a INT); CREATE TABLE ex.other (a INT)")
			tables := b.tables(t, "ex")
			tab := tables[slices.IndexFunc(tables, func(tab *table.Table) bool { return tab.Table == "t" })]
			for name, pause := range map[string]time.Duration{"storm": 0, "breeze": 12 * time.Millisecond} {
				var taken []taken
				stop := startXA(t, b.server, pause)
				for end := time.Now().Add(5 * time.Second); time.Now().Before(end); {
					taken = append(taken, copyExact(t, b, tab))
				}
				made := stop()
				if made == 0 {
					t.Error("no XA transaction was committed")
				}
				t.Logf("%s, %s: %d snapshots, %d wrong, %d XA transactions", kind, name, len(taken), wrong(t, b, taken), made)
			}
		})
	}
}

// taken is a copy: its position and how many rows it had.
type taken struct {
	at   state.Position
	rows int64
}

// wrong counts the copies that have more or fewer rows than the log says.
func wrong(t *testing.T, b *bench, all []taken) int {
	t.Helper()
	commits := xaCommits(t, b.server)
	n := 0
	for _, c := range all {
		var want int64
		for _, at := range commits {
			if upTo(t, b, c.at, at) {
				want++
			}
		}
		if c.rows != want {
			n++
			t.Errorf("at %s the table has %d rows, the log %d XA COMMITs", c.at, c.rows, want)
		}
	}
	return n
}

// upTo reports whether the group that ends at end is covered by the position.
func upTo(t *testing.T, b *bench, at, end state.Position) bool {
	t.Helper()
	if at.File != "" {
		return end.File < at.File || end.File == at.File && end.Pos <= at.Pos
	}
	set, err := position.Parse(b.dumper.flavor(), at.GTIDSet)
	if err != nil {
		t.Fatal(err)
	}
	one, err := position.Parse(b.dumper.flavor(), end.GTIDSet)
	if err != nil {
		t.Fatal(err)
	}
	return set.Contains(one)
}

func copyExact(t *testing.T, b *bench, tab *table.Table) (c taken) {
	t.Helper()
	r := b.dumper.NewReader()
	defer r.Close()
	err := r.CopyExact(t.Context(), []*Job{job(tab, 1<<20)}, func(p state.Position, _ Seen) error { c.at = p; return nil },
		func(_ context.Context, chunk *applier.Chunk) error { c.rows += chunk.Rows; return nil })
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// startXA commits XA transactions over several sessions until stop is called.
func startXA(t *testing.T, srv *servers.Server, pause time.Duration) (stop func() int64) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var done atomic.Int64
	g, ctx := group.WithContext(ctx)
	for i := range 4 {
		g.Go("writer", func() error {
			conn, err := srv.DB().Conn(ctx)
			if err != nil {
				return nil
			}
			defer conn.Close()
			for n := 0; ctx.Err() == nil; n++ {
				if err := oneXA(t.Context(), conn, fmt.Sprintf("%d-%d-%d", time.Now().UnixNano(), i, n), n%3 > 0); err != nil {
					return err
				}
				done.Add(1)
				if err := group.Pause(ctx, pause); err != nil {
					return nil // stopped
				}
			}
			return nil
		})
	}
	return func() int64 {
		cancel()
		if err := g.Wait(); err != nil {
			t.Error(err)
		}
		return done.Load()
	}
}

// oneXA commits a row in two phases: of t, or of the other table.
func oneXA(ctx context.Context, conn *sql.Conn, id string, ours bool) error {
	xid, tab := "'other"+id+"'", "other"
	if ours {
		xid, tab = "'t"+id+"'", "t"
	}
	for _, q := range []string{"XA START " + xid, "INSERT INTO ex." + tab + " VALUES (1)", "XA END " + xid, "XA PREPARE " + xid, "XA COMMIT " + xid} {
		if _, err := conn.ExecContext(ctx, q); err != nil {
			return fmt.Errorf("%s: %w", q, err)
		}
	}
	return nil
}

// xaCommits returns where the XA COMMITs of t end in the log.
func xaCommits(t *testing.T, srv *servers.Server) (all []state.Position) {
	t.Helper()
	events(t, srv, func(file string, end uint64, info, gtid string) {
		if strings.Contains(info, "XA COMMIT X'74") {
			all = append(all, state.Position{File: file, Pos: end, GTIDSet: gtid})
		}
	})
	return all
}

// events walks through the binary log; gtid is that of the group.
func events(t *testing.T, srv *servers.Server, each func(file string, end uint64, info, gtid string)) {
	t.Helper()
	var files []string
	answer(t, srv, "SHOW BINARY LOGS", func(rows *sql.Rows) error {
		columns, err := rows.Columns()
		if err != nil {
			return err
		}
		var file string
		values := []any{&file}
		for range columns[1:] {
			values = append(values, new(sql.RawBytes))
		}
		err = rows.Scan(values...)
		files = append(files, file)
		return err
	})
	gtid := ""
	for _, f := range files {
		answer(t, srv, "SHOW BINLOG EVENTS IN '"+f+"'", func(rows *sql.Rows) error {
			var file, kind, info string
			var pos, server, end uint64
			if err := rows.Scan(&file, &pos, &kind, &server, &end, &info); err != nil {
				return err
			}
			if next, ok := strings.CutPrefix(info, "SET @@SESSION.GTID_NEXT= '"); ok {
				gtid = strings.TrimSuffix(next, "'")
			}
			each(file, end, info, gtid)
			return nil
		})
	}
}

func answer(t *testing.T, srv *servers.Server, query string, each func(*sql.Rows) error) {
	t.Helper()
	rows, err := srv.DB().QueryContext(t.Context(), query)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		if err := each(rows); err != nil {
			t.Fatal(err)
		}
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
}
