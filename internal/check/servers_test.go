package check

import (
	"strings"
	"testing"

	"github.com/copydb/copydb/internal/position"
	"github.com/copydb/copydb/internal/testdb"
	"github.com/copydb/copydb/test/servers"
)

// TestOddSources: what only a server option brings about.
func TestOddSources(t *testing.T) {
	for _, kind := range []servers.Kind{servers.MySQL, servers.MariaDB1011} {
		t.Run(string(kind), func(t *testing.T) {
			args := []string{"--binlog-ignore-db=ignored", "--log-slave-updates=OFF", "--skip-slave-start"}
			if kind.IsMariaDB() {
				args = append(args, "--lower-case-table-names=1")
			}
			odd := testdb.One(t, kind, testdb.WithArgs(args...))
			plain := testdb.One(t, kind)
			testdb.Exec(t, odd, "CREATE DATABASE ignored; CREATE TABLE ignored.t (id INT PRIMARY KEY); CREATE DATABASE a; CREATE TABLE a.t (id INT PRIMARY KEY)")
			found := run(t, input(t, odd, plain, "*.*"))
			want(t, found, SeverityError, "binlog_filter", "ignored", "binlog_ignore_db")
			wantNot(t, found, "log_replica_updates")
			if kind.IsMariaDB() {
				want(t, found, SeverityError, "name_case", "1", "0")
			}
			become, monitor := "CHANGE REPLICATION SOURCE TO SOURCE_HOST = '192.0.2.1'", "REPLICATION CLIENT"
			if kind.IsMariaDB() {
				become, monitor = "CHANGE MASTER TO MASTER_HOST = '192.0.2.1'", "SLAVE MONITOR"
			}
			testdb.Exec(t, odd, become)
			found = run(t, input(t, odd, plain, "a.*"))
			want(t, found, SeverityError, "log_replica_updates", "is a replica")
			wantNot(t, found, "binlog_filter")
			account(t, odd, "blind", "GRANT SELECT, REPLICATION SLAVE ON *.* TO blind")
			in := input(t, odd, plain, "a.*")
			in.Source = connTo(t, "source", odd, "blind", "secret-x")
			want(t, run(t, in), SeverityWarning, "log_replica_updates", "cannot be seen", monitor)
		})
	}
}

// TestDoDB: a list of what is logged that lacks the database.
func TestDoDB(t *testing.T) {
	source := testdb.One(t, servers.MariaDB118, testdb.WithArgs("--binlog-do-db=logged"))
	testdb.Exec(t, source, "CREATE DATABASE b83; CREATE TABLE b83.t (id INT PRIMARY KEY); CREATE DATABASE logged; CREATE TABLE logged.t (id INT PRIMARY KEY)")
	want(t, run(t, input(t, source, source, "*.*")), SeverityError, "binlog_filter", "b83", "binlog_do_db")
	wantNot(t, run(t, input(t, source, source, "logged.*")), "binlog_filter")
}

// TestNoBinlog: a source without a binary log; see case 77.
func TestNoBinlog(t *testing.T) {
	for _, kind := range []servers.Kind{servers.MySQL, servers.MariaDB118} {
		t.Run(string(kind), func(t *testing.T) {
			source := testdb.One(t, kind, func(o *servers.Options) { o.NoBinlog = true })
			testdb.Exec(t, source, "CREATE DATABASE b77; CREATE TABLE b77.t (id INT PRIMARY KEY)")
			found := run(t, input(t, source, source, "b77.*"))
			want(t, found, SeverityError, "log_bin")
			wantNot(t, found, "target_sync_binlog", "source_sync_binlog")
		})
	}
}

// TestFamilies: source and target of different families, and the same server
// twice.
func TestFamilies(t *testing.T) {
	my, maria := testdb.One(t, servers.MySQL), testdb.One(t, servers.MariaDB118)
	testdb.Exec(t, my, "CREATE DATABASE a; CREATE TABLE a.t (id INT PRIMARY KEY, v VARCHAR(9) COLLATE utf8mb4_ja_0900_as_cs)")
	testdb.Exec(t, maria, "CREATE DATABASE a; CREATE TABLE a.t (id INT PRIMARY KEY, v VARCHAR(9) COLLATE utf8mb4_uca1400_ai_ci) ENGINE=Aria")
	found := run(t, input(t, my, maria, "a.*"))
	want(t, found, SeverityError, "family", "MySQL to MariaDB is not supported yet")
	want(t, found, SeverityError, "collation", "a.t.v", "utf8mb4_ja_0900_as_cs")
	found = run(t, input(t, maria, my, "a.*"))
	want(t, found, SeverityError, "family", "MariaDB to MySQL is not supported yet")
	want(t, found, SeverityError, "engine", "Aria")
	want(t, found, SeverityError, "collation", "utf8mb4_uca1400_ai_ci")
	for _, srv := range []*servers.Server{my, maria} {
		want(t, run(t, input(t, srv, srv, "a.*")), SeverityError, "same_server")
	}
}

// noReload: the last rung of the ladder.
func noReload(t *testing.T, source, target *servers.Server) {
	if source.Kind != servers.MySQLNoGTID {
		return
	}
	testdb.Exec(t, source, "CREATE DATABASE no_reload; CREATE TABLE no_reload.t (id INT PRIMARY KEY)")
	account(t, source, "no_reload", "GRANT SELECT, REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO no_reload")
	in := input(t, source, target, "no_reload.*")
	in.Source = connTo(t, "source", source, "no_reload", "secret-x")
	found := run(t, in)
	want(t, found, SeverityInfo, "start_position", "GRANT RELOAD")
	want(t, found, SeverityWarning, "xa_recover", "GRANT XA_RECOVER_ADMIN")
	want(t, found, SeverityWarning, "source_process", "GRANT PROCESS")
	wantNoErrors(t, found)
	if in.Facts.Rung != position.RungFileStart || !strings.Contains(in.Facts.RungReason, "RELOAD") {
		t.Errorf("rung %s: %s", in.Facts.Rung, in.Facts.RungReason)
	}
}

// lockedTable: a table under LOCK TABLES … WRITE does not hold the preflight up.
func lockedTable(t *testing.T, source, target *servers.Server) {
	testdb.Exec(t, source, "CREATE DATABASE held; CREATE TABLE held.t (id INT PRIMARY KEY); CREATE TABLE held.u (id INT PRIMARY KEY)")
	conn, err := source.DB().Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.ExecContext(t.Context(), "LOCK TABLES held.u WRITE"); err != nil {
		t.Fatal(err)
	}
	in := input(t, source, target, "held.*")
	found := run(t, in)
	want(t, found, SeverityError, "table_locked", "held.u")
	if len(in.Facts.Tables) != 1 {
		t.Errorf("tables: %v", in.Facts.Tables)
	}
	if _, err := conn.ExecContext(t.Context(), "UNLOCK TABLES"); err != nil {
		t.Error(err)
	}
}
