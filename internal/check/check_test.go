package check

import (
	"strings"
	"testing"

	"github.com/copydb/copydb/internal/testdb"
	"github.com/copydb/copydb/test/servers"
)

// TestHealthy: a plain pair has nothing to complain about, and the facts are
// there.
func TestHealthy(t *testing.T) {
	all(t, func(t *testing.T, source, target *servers.Server) {
		testdb.Exec(t, source, "CREATE DATABASE a; CREATE TABLE a.t (id INT PRIMARY KEY, v VARCHAR(20)); CREATE TABLE a.u (id INT PRIMARY KEY)")
		in := input(t, source, target, "a.*")
		found := run(t, in)
		for _, f := range found {
			if f.Severity != SeverityInfo {
				t.Errorf("unwanted %s %s: %s", f.Severity, f.ID, f.Message)
			}
		}
		t.Log(show(found))
		f := in.Facts
		if len(f.Tables) != 2 || f.Tables[0].String() != "a.t" || len(f.Databases) != 1 || f.Databases[0].Name != "a" {
			t.Errorf("selection: %v %v", f.Tables, f.Databases)
		}
		wantRung := map[servers.Kind]Rung{servers.MySQL: RungGTID, servers.MySQLNoGTID: RungFlush, servers.MariaDB1011: RungMariaDB, servers.MariaDB118: RungMariaDB}
		if f.Rung != wantRung[source.Kind] || f.RungReason == "" || f.GTID != source.Kind.HasGTID() {
			t.Errorf("rung %s (%s), gtid %v", f.Rung, f.RungReason, f.GTID)
		}
		if f.LoadMethod != "load_data" || f.End.File == "" || f.End.Pos == 0 || f.FoldCase {
			t.Errorf("facts: %+v", f)
		}
		if f.Source.Identity.UUID == f.Target.Identity.UUID || !strings.HasPrefix(f.Source.Account, "'root'@'") {
			t.Errorf("identities: %+v", f.Source)
		}
	})
}
