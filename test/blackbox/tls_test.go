package blackbox

import (
	"strings"
	"testing"
	"time"

	"github.com/copydb/copydb/internal/testdb"
	"github.com/copydb/copydb/test/harness"
	"github.com/copydb/copydb/test/servers"
)

// openSessions counts sessions of the account, and those of them that are not
// encrypted.
const openSessions = "SELECT CONCAT(COUNT(*), ' ', SUM(s.VARIABLE_VALUE = '')) FROM performance_schema.threads t" +
	" JOIN performance_schema.status_by_thread s ON s.THREAD_ID = t.THREAD_ID AND s.VARIABLE_NAME = 'Ssl_cipher' WHERE t.PROCESSLIST_USER = '" + harness.User + "'"

const dumpSessions = "SELECT CONCAT(COUNT(*), ' ', SUM(s.VARIABLE_VALUE = '')) FROM performance_schema.threads t" +
	" JOIN performance_schema.status_by_thread s ON s.THREAD_ID = t.THREAD_ID AND s.VARIABLE_NAME = 'Ssl_cipher'" +
	" WHERE t.PROCESSLIST_USER = '" + harness.User + "' AND t.PROCESSLIST_COMMAND LIKE 'Binlog Dump%'"

// TestEncryptedRuns: a run to its end with certificates verified on both sides
// by accounts that require one of the client, on servers that take nothing
// unencrypted; and which sessions are encrypted while the log is followed.
func TestEncryptedRuns(t *testing.T) {
	authority := testdb.NewAuthority(t, "tests")
	cert, key := authority.Issue(time.Hour, "copydb")
	full := "tls: {mode: verify-identity, ca: " + authority.CA + ", cert: " + cert + ", key: " + key + ", server_name: db.test}"
	onKinds(t, func(t *testing.T, kind servers.Kind) {
		args := authority.ServerArgs(time.Hour, "db.test")
		if kind.IsMariaDB() {
			args = append(args, "--performance-schema=ON")
		}
		source, target := testdb.Pair(t, kind, testdb.WithFast(), testdb.WithArgs(args...))
		testdb.CreateLoadTables(t, source, "shop", 1, 50)
		for _, c := range []struct {
			name, tls, require string
			clear              bool
		}{
			{"full", full, "REQUIRE X509", false},
			{"required", "tls: {mode: required}", "REQUIRE SSL", false},
			{"preferred", "tls: {mode: preferred}", "REQUIRE NONE", false},
			{"disabled", "tls: {mode: disabled}", "REQUIRE NONE", true},
		} {
			t.Run(c.name, func(t *testing.T) {
				for _, srv := range []*servers.Server{source, target} {
					testdb.Exec(t, srv, "SET GLOBAL require_secure_transport = OFF; CREATE USER IF NOT EXISTS "+harness.User+"@'%' IDENTIFIED BY '"+harness.Password+"'; ALTER USER "+harness.User+"@'%' "+c.require)
				}
				testdb.Exec(t, target, "DROP DATABASE IF EXISTS shop; DROP DATABASE IF EXISTS _copydb")
				m := harness.New(t, source, target, harness.Config{Include: []string{"shop.*"}, SourceExtra: []string{c.tls}, TargetExtra: []string{c.tls}})
				p := m.Start("--until", "never")
				eventually(t, "the log is followed", time.Minute, func() bool {
					return strings.HasPrefix(testdb.Value(t, source, dumpSessions), "1 ")
				})
				for name, got := range map[string]string{"source": testdb.Value(t, source, openSessions), "dump": testdb.Value(t, source, dumpSessions), "target": testdb.Value(t, target, openSessions)} {
					if clear := !strings.HasSuffix(got, " 0"); clear != c.clear {
						t.Errorf("%s: sessions and unencrypted ones: %s", name, got)
					}
				}
				p.Signal(15)
				p.RequireExit(time.Minute, 143)
				m.RequireResume()
				testdb.RequireEqual(t, source, target, []string{"shop"})
			})
		}
	}, servers.MySQL, servers.MariaDB1011, servers.MariaDB118)
}
