package check

import (
	"strings"
	"testing"

	"github.com/copydb/copydb/internal/position"
	"github.com/copydb/copydb/internal/testdb"
	"github.com/copydb/copydb/test/servers"
)

// pairTests share one pair of servers of each kind, in this order: the last one
// purges and resets the source's log.
var pairTests = []struct {
	name string
	run  func(t *testing.T, source, target *servers.Server)
}{
	{"healthy", healthy},
	{"missing source grants", missingSourceGrants},
	{"missing target grants", missingTargetGrants},
	{"roles", roles},
	{"printed grants", printedGrants},
	{"no reload", noReload},
	{"locked table", lockedTable},
	{"scenarios", allScenarios},
	{"resumable", resumable},
}

// TestPairs runs what needs nothing special of its servers.
func TestPairs(t *testing.T) {
	for _, kind := range servers.Kinds() {
		t.Run(string(kind), func(t *testing.T) {
			source, target := testdb.Pair(t, kind)
			for _, p := range pairTests {
				t.Run(p.name, func(t *testing.T) { p.run(t, source, target) })
			}
		})
	}
}

// healthy: a plain pair has nothing to complain about, and the facts are
// there.
func healthy(t *testing.T, source, target *servers.Server) {
	testdb.Exec(t, source, "CREATE DATABASE a; CREATE TABLE a.t (id INT PRIMARY KEY, v VARCHAR(20)); CREATE TABLE a.u (id INT PRIMARY KEY)")
	in := input(t, source, target, "a.*")
	before := logEnd(t, source) + logEnd(t, target)
	found := run(t, in)
	if after := logEnd(t, source) + logEnd(t, target); after != before {
		t.Errorf("the preflight wrote something: %s, then %s", before, after)
	}
	for _, f := range found {
		if f.Severity != SeverityInfo {
			t.Errorf("unwanted %s %s: %s", f.Severity, f.ID, f.Message)
		}
	}
	f := in.Facts
	if len(f.Tables) != 2 || f.Tables[0].String() != "a.t" || len(f.Databases) != 1 || f.Databases[0].Name != "a" {
		t.Errorf("selection: %v %v", f.Tables, f.Databases)
	}
	wantRung := map[servers.Kind]position.Rung{servers.MySQL: position.RungGTID, servers.MySQLNoGTID: position.RungFlush, servers.MariaDB1011: position.RungMariaDB, servers.MariaDB118: position.RungMariaDB}
	if f.Rung != wantRung[source.Kind] || f.RungReason == "" || f.GTID != source.Kind.HasGTID() {
		t.Errorf("rung %s (%s), gtid %v", f.Rung, f.RungReason, f.GTID)
	}
	if f.LoadMethod != "load_data" || f.End.File == "" || f.End.Pos == 0 || f.FoldCase {
		t.Errorf("facts: %+v", f)
	}
	if f.Source.Identity.UUID == f.Target.Identity.UUID || !strings.HasPrefix(f.Source.Account, "'root'@'") {
		t.Errorf("identities: %+v", f.Source)
	}
}

// logEnd is where a server's binary log ends.
func logEnd(t *testing.T, srv *servers.Server) string {
	t.Helper()
	in := input(t, srv, srv, "a.*")
	run(t, in)
	return in.Facts.End.String() + " " + in.Facts.End.GTIDSet + " "
}
