package blackbox

import (
	"strings"
	"testing"
	"time"

	"github.com/copydb/copydb/internal/testdb"
	"github.com/copydb/copydb/test/harness"
	"github.com/copydb/copydb/test/servers"
)

// An account that may not call XA RECOVER copies all the same, but a transaction
// that was prepared before the copy and is committed behind it stops the run: no
// snapshot has shown its rows. A privilege that is granted then changes nothing.
func TestXACommitOfUnseenPrepare(t *testing.T) {
	onKinds(t, func(t *testing.T, kind servers.Kind) {
		source, target := sharedPair(t, kind)
		testdb.Exec(t, source, "CREATE DATABASE xa; CREATE TABLE xa.t (id INT PRIMARY KEY); INSERT INTO xa.t VALUES (1); CREATE DATABASE xa_other; CREATE TABLE xa_other.t (id INT)")
		m := harness.New(t, source, target, harness.Config{Include: []string{"xa.*"}, Build: harness.HoldPoints})
		revoke, grant := "REVOKE XA_RECOVER_ADMIN ON *.* FROM "+harness.User+"@'%'", "GRANT XA_RECOVER_ADMIN ON *.* TO "+harness.User+"@'%'"
		testdb.Exec(t, source, revoke)
		xa(t, source, "hidden", "INSERT INTO xa.t VALUES (2)", "XA PREPARE 'hidden'")
		m.Hold(harness.HoldCatchUp)
		p := m.Start()
		m.WaitReached(p, harness.HoldCatchUp)
		// One that is prepared and committed behind the start is no reason to stop.
		xa(t, source, "seen", "INSERT INTO xa_other.t VALUES (1)", "XA PREPARE 'seen'")
		testdb.Exec(t, source, "XA COMMIT 'seen'; INSERT INTO xa.t VALUES (3); XA COMMIT 'hidden'")
		m.Release(harness.HoldCatchUp)
		p.RequireExit(time.Minute, 7)
		if !strings.Contains(p.Stderr(), "prepared before the copy began") {
			t.Error("stderr does not say why")
		}
		testdb.Exec(t, source, grant)
		m.StartResume().RequireExit(time.Minute, 7)
		// With the privilege, and the transaction committed, a new copy has all rows.
		m.RequireRun("--start-over")
		testdb.RequireEqual(t, source, target, []string{"xa"})
	}, servers.MySQL, servers.MySQLNoGTID)
}

// xa runs a statement in an XA transaction on a session of its own, and then
// last, which detaches it.
func xa(t *testing.T, srv *servers.Server, id, statement, last string) {
	t.Helper()
	testdb.Exec(t, srv, "XA START '"+id+"'; "+statement+"; XA END '"+id+"'; "+last)
}
