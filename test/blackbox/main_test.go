package blackbox

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/copydb/copydb/internal/testdb"
	"github.com/copydb/copydb/test/harness"
	"github.com/copydb/copydb/test/servers"
	"golang.org/x/sync/errgroup"
)

func TestMain(m *testing.M) {
	defer closePairs()
	harness.Main(m)
}

// long tells whether the series run in full length.
var long = os.Getenv("COPYDB_TEST_LONG") == "1"

// times returns the number for the run of the tests that this is.
func times(short, full int) int {
	if long {
		return full
	}
	return short
}

// families has one kind of each family, for what does not hang on positions.
var families = []servers.Kind{servers.MySQL, servers.MariaDB118}

// turns let one test at a time run on the servers of a family.
var turns = map[servers.Family]*sync.Mutex{servers.FamilyMySQL: {}, servers.FamilyMariaDB: {}}

// onKinds runs a test on each kind, the two families side by side; without
// kinds, on all four in the long series and on one of each family in the short
// one. It must be the last thing that its caller does: the tests run once that
// has returned.
func onKinds(t *testing.T, test func(t *testing.T, kind servers.Kind), kinds ...servers.Kind) {
	t.Helper()
	switch {
	case len(kinds) > 0:
	case long:
		kinds = servers.Kinds()
	default:
		kinds = families
	}
	for _, kind := range kinds {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			turn := turns[kind.Family()]
			turn.Lock()
			defer turn.Unlock()
			test(t, kind)
		})
	}
}

// shared are pairs that tests use one after the other: starting one takes
// seconds.
var shared = struct {
	sync.Mutex
	pairs map[servers.Kind][2]*servers.Server
}{pairs: map[servers.Kind][2]*servers.Server{}}

// sharedPair returns a source and a target without databases or accounts, with
// 4 KiB binary logs and without durability. The test must not kill or restart
// them; pausing is undone.
func sharedPair(t *testing.T, kind servers.Kind) (source, target *servers.Server) {
	t.Helper()
	shared.Lock()
	defer shared.Unlock()
	pair, ok := shared.pairs[kind]
	if !ok {
		var group errgroup.Group
		for i := range pair {
			group.Go(func() (err error) {
				pair[i], err = servers.Start(context.Background(), servers.Options{Kind: kind, BinlogSize: servers.ScenarioBinlog, Fast: true})
				return err
			})
		}
		if err := group.Wait(); err != nil {
			t.Fatal(err)
		}
		shared.pairs[kind] = pair
	}
	for _, srv := range pair {
		wipe(t, srv)
		t.Cleanup(func() {
			if t.Failed() {
				t.Logf("log of %s on %s:\n%s", srv.Kind, srv.Addr(), srv.Log())
			}
			_ = srv.Resume() // of a test that paused it
		})
	}
	return pair[0], pair[1]
}

func closePairs() {
	shared.Lock()
	defer shared.Unlock()
	for _, pair := range shared.pairs {
		for _, srv := range pair {
			_ = srv.Close() // nothing is lost with what is left
		}
	}
}

// wipe ends copydb's sessions, and what a failed test has left prepared, and drops its account and all databases.
func wipe(t *testing.T, srv *servers.Server) {
	t.Helper()
	for _, s := range testdb.Sessions(t, srv, harness.User) {
		if s.ID != 0 {
			_, _ = srv.DB().ExecContext(t.Context(), fmt.Sprintf("KILL %d", s.ID)) // may have ended by itself
		}
	}
	testdb.EndXA(t, srv)
	script := "SET foreign_key_checks = 0; SET GLOBAL read_only = 0; DROP USER IF EXISTS " + harness.User + "@'%';"
	for _, name := range names(t, srv, "SELECT schema_name FROM information_schema.schemata"+
		" WHERE schema_name NOT IN ('mysql', 'sys', 'information_schema', 'performance_schema')") {
		script += "DROP DATABASE `" + strings.ReplaceAll(name, "`", "``") + "`;"
	}
	testdb.Exec(t, srv, script)
}

// names returns the first column of a query.
func names(t testing.TB, srv *servers.Server, query string) []string {
	t.Helper()
	rows, err := srv.DB().QueryContext(t.Context(), query)
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	var all []string
	for rows.Next() {
		var v, rest sql.NullString
		into := []any{&v}
		for range columns[1:] {
			into = append(into, &rest)
		}
		if err := rows.Scan(into...); err != nil {
			t.Fatalf("%s: %v", query, err)
		}
		all = append(all, v.String)
	}
	if err := rows.Err(); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return all
}

// requireReleased fails the test unless the source is free of the run that has
// just ended: no session of its account now, and every table can be locked.
func requireReleased(t testing.TB, source *servers.Server, databases ...string) {
	t.Helper()
	if left := testdb.Sessions(t, source, harness.User); len(left) > 0 {
		t.Errorf("left on the source right after the end: %v", left)
	}
	testdb.RequireUnlocked(t, source, databases)
}

// finish stops the load, lets a resume of the state end and compares.
func finish(t testing.TB, m *harness.Migration, load *testdb.Generator, databases []string) {
	t.Helper()
	if load != nil {
		load.Stop()
	}
	m.RequireResume()
	testdb.RequireEqual(t, m.Source, m.Target, databases)
	m.RequireClean()
}

// eventually fails the test if the condition does not come true in time.
func eventually(t testing.TB, what string, timeout time.Duration, yes func() bool) {
	t.Helper()
	if !testdb.Eventually(t, timeout, yes) {
		t.Fatalf("after %s still not: %s", timeout, what)
	}
}
