package testdb

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/copydb/copydb/test/servers"
	"github.com/go-sql-driver/mysql"
)

// cleanTimeout bounds the wait for a server to end sessions whose client has
// gone.
const cleanTimeout = 5 * time.Second

// trxCacheIdle is how long information_schema.innodb_trx must not have been
// read before InnoDB renews it: who asks more often than every 0.1 s is shown
// the same old list for ever.
const trxCacheIdle = 110 * time.Millisecond

// Session is a connection as its server shows it.
type Session struct {
	ID          uint64
	User        string
	Command     string        // as in "Query", "Sleep", "Binlog Dump"
	State       string        // what it does, may be empty
	Statement   string        // cut at 200 characters, empty if none runs
	Transaction string        // InnoDB's transaction, as in "RUNNING since 2026-01-01 00:00:00"; empty without one
	Age         time.Duration // in its state, whole seconds
}

// String describes the session on one line.
func (s Session) String() string {
	return fmt.Sprintf("session %d of %s: %s %s for %s, transaction (%s), %s", s.ID, s.User, s.Command, s.State, s.Age, s.Transaction, s.Statement)
}

// Sessions returns the sessions of a user with their open transactions; an
// empty user means everybody but root and the server itself. Prepared XA
// transactions that no session has are shown as sessions with ID 0. It takes a
// tenth of a second; see trxCacheIdle.
func Sessions(t testing.TB, srv *servers.Server, user string) []Session {
	t.Helper()
	all, err := sessions(t.Context(), srv, user)
	// MySQL fails while a statement runs whose text is outside utf8mb3.
	for range 20 {
		var server *mysql.MySQLError
		if !errors.As(err, &server) || server.Number != 3854 {
			break
		}
		all, err = sessions(t.Context(), srv, user)
	}
	if err != nil {
		t.Fatalf("list sessions: %v", err)
	}
	return all
}

func sessions(ctx context.Context, srv *servers.Server, user string) ([]Session, error) {
	list := "information_schema.processlist"
	if !srv.Kind.IsMariaDB() {
		list = "performance_schema.processlist"
	}
	condition := "p.user NOT IN ('root', 'system user', 'event_scheduler')"
	if user != "" {
		condition = "p.user = " + literal(user)
	}
	time.Sleep(trxCacheIdle)
	rows, err := srv.DB().QueryContext(ctx, "SELECT p.id, p.user, COALESCE(p.command, ''), COALESCE(p.state, ''), COALESCE(LEFT(p.info, 200), ''),"+
		" COALESCE(CONCAT(x.trx_state, ' since ', x.trx_started), ''), COALESCE(p.time, 0)"+
		" FROM "+list+" p LEFT JOIN information_schema.innodb_trx x ON x.trx_mysql_thread_id = p.id WHERE "+condition+" ORDER BY p.id")
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var all []Session
	for rows.Next() {
		var s Session
		var seconds int64
		if err := rows.Scan(&s.ID, &s.User, &s.Command, &s.State, &s.Statement, &s.Transaction, &seconds); err != nil {
			return nil, err
		}
		s.Age = time.Duration(seconds) * time.Second
		all = append(all, s)
	}
	if err := rows.Err(); err != nil {
		return nil, err
	}
	prepared, err := preparedXA(ctx, srv.DB())
	return append(all, prepared...), err
}

func preparedXA(ctx context.Context, db *sql.DB) ([]Session, error) {
	rows, err := db.QueryContext(ctx, "XA RECOVER")
	if err != nil {
		return nil, fmt.Errorf("list prepared transactions: %w", err)
	}
	defer rows.Close()
	var all []Session
	for rows.Next() {
		var format, gtrid, bqual, id string
		if err := rows.Scan(&format, &gtrid, &bqual, &id); err != nil {
			return nil, err
		}
		all = append(all, Session{Transaction: fmt.Sprintf("XA PREPARED %q", id)})
	}
	return all, rows.Err()
}

// EndXA rolls back what is prepared on the server, which keeps the locks of its
// tables.
func EndXA(t testing.TB, srv *servers.Server) {
	t.Helper()
	rows, err := srv.DB().QueryContext(t.Context(), "XA RECOVER")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var ids []string
	for rows.Next() {
		var format, gtrid, bqual int
		var data string
		if err := rows.Scan(&format, &gtrid, &bqual, &data); err != nil {
			t.Fatal(err)
		}
		ids = append(ids, fmt.Sprintf("X'%x',X'%x',%d", data[:gtrid], data[gtrid:], format))
	}
	if err := errors.Join(rows.Err(), rows.Close()); err != nil {
		t.Fatal(err)
	}
	for _, id := range ids {
		Exec(t, srv, "XA ROLLBACK "+id)
	}
}

// RequireClean fails the test if a user (empty: anybody but root) still has a
// session or a transaction on the server. It gives the server five seconds to
// end sessions whose client has gone.
func RequireClean(t testing.TB, srv *servers.Server, user string) {
	t.Helper()
	var left []Session
	ok := Eventually(t, cleanTimeout, func() bool {
		left = Sessions(t, srv, user)
		return len(left) == 0
	})
	if ok {
		return
	}
	var b strings.Builder
	for _, s := range left {
		b.WriteString("\n  " + s.String())
	}
	t.Fatalf("left on %s at %s:%s", srv.Kind, srv.Addr(), b.String())
}

// RequireUnlocked fails the test unless each base table of the databases can
// be locked for writing within three tries of a second each, as an ALTER TABLE
// would: what is left of a reader's transaction prevents that.
func RequireUnlocked(t testing.TB, srv *servers.Server, databases []string) {
	t.Helper()
	conn := session(t, srv)
	defer conn.Close()
	all, err := tables(t.Context(), conn, databases)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := conn.ExecContext(t.Context(), "SET SESSION sql_log_bin = 0, lock_wait_timeout = 1"); err != nil {
		t.Fatal(err)
	}
	for _, tab := range all {
		for try := 1; ; try++ {
			_, err := conn.ExecContext(t.Context(), "LOCK TABLES "+tab.quoted()+" WRITE; UNLOCK TABLES")
			if err == nil {
				break
			}
			if try == 3 {
				t.Fatalf("lock table %s: %v; held by %v; sessions %v", tab, err, LockHolders(t, srv, tab.database, tab.name), Sessions(t, srv, ""))
			}
		}
	}
}

// Lock is a metadata lock on a table.
type Lock struct {
	Session uint64 // connection id
	User    string // empty where the server does not say
	Mode    string // as the server calls it, as in "SHARED_READ"
	Granted bool
}

// LockHolders returns who holds or waits for metadata locks of a table. On
// MariaDB it loads the metadata_lock_info plugin.
func LockHolders(t testing.TB, srv *servers.Server, database, name string) []Lock {
	t.Helper()
	query := "SELECT th.processlist_id, COALESCE(th.processlist_user, ''), m.lock_type, m.lock_status = 'GRANTED'" +
		" FROM performance_schema.metadata_locks m JOIN performance_schema.threads th ON th.thread_id = m.owner_thread_id" +
		" WHERE m.object_type = 'TABLE' AND th.processlist_id IS NOT NULL AND m.object_schema = " + literal(database) + " AND m.object_name = " + literal(name)
	if srv.Kind.IsMariaDB() {
		Exec(t, srv, "INSTALL PLUGIN IF NOT EXISTS metadata_lock_info SONAME 'metadata_lock_info'")
		query = "SELECT m.thread_id, COALESCE(p.user, ''), m.lock_mode, TRUE FROM information_schema.metadata_lock_info m" +
			" LEFT JOIN information_schema.processlist p ON p.id = m.thread_id" +
			" WHERE m.table_schema = " + literal(database) + " AND m.table_name = " + literal(name)
	}
	rows, err := srv.DB().QueryContext(t.Context(), query)
	if err != nil {
		t.Fatalf("list metadata locks: %v", err)
	}
	defer rows.Close()
	var all []Lock
	for rows.Next() {
		var l Lock
		if err := rows.Scan(&l.Session, &l.User, &l.Mode, &l.Granted); err != nil {
			t.Fatalf("list metadata locks: %v", err)
		}
		all = append(all, l)
	}
	if err := rows.Err(); err != nil {
		t.Fatalf("list metadata locks: %v", err)
	}
	return all
}

// Eventually asks until the answer is yes and tells whether that came in time.
func Eventually(t testing.TB, timeout time.Duration, yes func() bool) bool {
	t.Helper()
	for deadline := time.Now().Add(timeout); ; {
		if yes() {
			return true
		}
		if time.Now().After(deadline) {
			return false
		}
		time.Sleep(20 * time.Millisecond)
	}
}
