package blackbox

import (
	"fmt"
	"testing"
	"time"

	"github.com/copydb/copydb/internal/testdb"
	"github.com/copydb/copydb/test/harness"
	"github.com/copydb/copydb/test/servers"
)

// A resume against a promoted replica of the source, which has other files: it
// goes on by GTID, also a second time. A server that lacks what was applied is
// refused (exit 4).
func TestB1_16_PromotedReplica(t *testing.T) {
	source, target := testdb.Pair(t, servers.MySQL, testdb.WithFast(), testdb.WithBinlogSize(servers.LoadBinlog))
	replica := testdb.One(t, servers.MySQL, testdb.WithFast(), testdb.WithBinlogSize(servers.LoadBinlog), testdb.WithArgs("--log-replica-updates=ON"))
	testdb.Exec(t, source, "CREATE USER repl IDENTIFIED BY 'r'; GRANT REPLICATION SLAVE ON *.* TO repl")
	testdb.CreateLoadTables(t, source, "loads", 2, 500)
	m := harness.New(t, source, target, harness.Config{Include: []string{"loads.*"}})
	for range 5 { // the source's files are ahead of the replica's
		testdb.Exec(t, source, "FLUSH BINARY LOGS; UPDATE loads.load1 SET k = k + 1 WHERE id < 50")
	}
	m.RequireRun()
	testdb.Exec(t, replica, fmt.Sprintf("RESET BINARY LOGS AND GTIDS; CHANGE REPLICATION SOURCE TO SOURCE_HOST = '127.0.0.1', SOURCE_PORT = %d,"+
		" SOURCE_USER = 'repl', SOURCE_PASSWORD = 'r', SOURCE_AUTO_POSITION = 1, GET_SOURCE_PUBLIC_KEY = 1; START REPLICA", source.Port))

	// While it lacks transactions of the run it may not stand in.
	testdb.Exec(t, source, "UPDATE loads.load2 SET k = k + 1")
	executed := testdb.Value(t, source, "SELECT @@global.gtid_executed")
	eventually(t, "the replica has everything", time.Minute, func() bool {
		return testdb.Value(t, replica, fmt.Sprintf("SELECT GTID_SUBSET('%s', @@global.gtid_executed)", executed)) == "1"
	})
	testdb.Exec(t, replica, "STOP REPLICA")
	testdb.Exec(t, source, "UPDATE loads.load2 SET k = k + 1 WHERE id < 20")
	m.RequireResume()
	m.SetConfig(func(c *harness.Config) { c.SourceAddr = replica.Addr() })
	p := m.Resume("--json")
	p.RequireExit(time.Minute, 4)

	// With everything it goes on by GTID, twice.
	testdb.Exec(t, replica, "START REPLICA")
	executed = testdb.Value(t, source, "SELECT @@global.gtid_executed")
	eventually(t, "the replica has everything", time.Minute, func() bool {
		return testdb.Value(t, replica, fmt.Sprintf("SELECT GTID_SUBSET('%s', @@global.gtid_executed)", executed)) == "1"
	})
	testdb.Exec(t, replica, "STOP REPLICA; RESET REPLICA ALL")
	for i := range 3 {
		testdb.Exec(t, replica, fmt.Sprintf("UPDATE loads.load1 SET k = k + %d; INSERT INTO loads.load2 (k, u) VALUES (%d, NULL); DELETE FROM loads.load2 WHERE id = %d", i+1, i, i+5))
		m.RequireResume()
		testdb.RequireEqual(t, replica, target, []string{"loads"})
	}
	if at := m.State().Sources[0]; at.ServerUUID != testdb.Value(t, replica, "SELECT @@server_uuid") {
		t.Errorf("the state names server %s", at.ServerUUID)
	}
}
