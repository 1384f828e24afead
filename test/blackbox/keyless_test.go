package blackbox

import (
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/copydb/copydb/internal/testdb"
	"github.com/copydb/copydb/state"
	"github.com/copydb/copydb/test/harness"
	"github.com/copydb/copydb/test/servers"
)

// keylessTables have no key that a row could be found by: duplicates of one
// row, a unique key over NULLs, a FLOAT as key, keys over prefixes.
const keylessTables = `CREATE DATABASE keyless; USE keyless;
	CREATE TABLE plain (a INT, b VARCHAR(10), f DOUBLE, t TEXT);
	CREATE TABLE nulls (a INT, b INT, v VARCHAR(10) COLLATE utf8mb4_general_ci, UNIQUE KEY (a, b));
	CREATE TABLE floats (f FLOAT NOT NULL PRIMARY KEY, v INT);
	CREATE TABLE prefixed (k VARCHAR(40) NOT NULL, v INT, UNIQUE KEY (k(3)));
	INSERT INTO plain SELECT n % 5, CONCAT('row', n % 3), n % 2, REPEAT('x', n % 7) FROM (
	  SELECT a.n * 100 + b.n * 10 + c.n AS n FROM keyless_digits.d a, keyless_digits.d b, keyless_digits.d c) AS s;`

const digits = `CREATE DATABASE keyless_digits; CREATE TABLE keyless_digits.d (n INT PRIMARY KEY);
	INSERT INTO keyless_digits.d VALUES (0),(1),(2),(3),(4),(5),(6),(7),(8),(9);`

// keylessChanges are the statements of the load; %[1]d and %[2]d are random.
var keylessChanges = []string{
	"INSERT INTO plain VALUES (%[1]d %% 5, 'row1', -0e0, 'x'), (%[1]d %% 5, 'row1', 0e0, 'x'), (%[1]d %% 5, 'ROW1', NULL, 'x')",
	"UPDATE plain SET b = 'changed', f = %[2]d / 3 WHERE a = %[1]d %% 5 LIMIT 2",
	"UPDATE plain SET t = CONCAT(t, 'y') WHERE a = %[1]d %% 5 AND LENGTH(t) < 20 LIMIT 3",
	"DELETE FROM plain WHERE a = %[1]d %% 5 LIMIT 2",
	"INSERT IGNORE INTO nulls VALUES (%[1]d %% 50, NULL, 'a'), (%[1]d %% 50, NULL, 'A'), (%[1]d %% 50, %[2]d %% 50, 'k')",
	"UPDATE IGNORE nulls SET b = %[2]d %% 50, v = 'é' WHERE a = %[1]d %% 50 LIMIT 1",
	"DELETE FROM nulls WHERE a = %[1]d %% 50 AND b IS NULL LIMIT 1",
	"INSERT IGNORE INTO floats VALUES (%[1]d / 7, 1), (-%[1]d / 3, 2)",
	"UPDATE IGNORE floats SET f = f * 1.1, v = v + 1 WHERE v %% 7 = %[2]d %% 7 LIMIT 2",
	"DELETE FROM floats WHERE v %% 5 = %[2]d %% 5 LIMIT 1",
	"INSERT IGNORE INTO prefixed VALUES (CONCAT(%[1]d %% 999, '-', %[2]d), 1)",
	"UPDATE prefixed SET k = CONCAT(k, 'z'), v = v + 1 WHERE v %% 3 = %[2]d %% 3 AND LENGTH(k) < 30 LIMIT 2",
	"DELETE FROM prefixed WHERE v %% 4 = %[2]d %% 4 LIMIT 1",
	"BEGIN; INSERT INTO plain SELECT a, b, f, t FROM plain LIMIT 40; UPDATE plain SET a = a + 1 WHERE a = 3 LIMIT 10; DELETE FROM plain WHERE a > 3 LIMIT 35; COMMIT",
}

// throughKills runs a migration beside a load: it is killed when a chunk of the
// table is written, between copy and catch-up, and in catch-up. Then the load
// stops, and a resume ends at what it left. It returns how many statements that
// were.
func throughKills(t *testing.T, m *harness.Migration, databaseTable string, stop func() int64) int64 {
	t.Helper()
	killAt(m, harness.HoldChunkWritten(databaseTable))
	killAt(m, harness.HoldCatchUp)
	p := m.StartResume("--json", "--until", "never")
	inPhase(p, state.PhaseCatchUp)
	at(p, 4*time.Second)
	p.Kill9()
	m.RequireResume()
	n := stop()
	m.RequireResume()
	return n
}

// writeRandom carries out random statements in a database over several sessions until
// the returned function is called, which says how many were carried out.
func writeRandom(t *testing.T, source *servers.Server, database string, statements []string) (stop func() int64) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var done atomic.Int64
	var wg sync.WaitGroup
	for range 3 {
		conn, err := source.DB().Conn(ctx)
		if err != nil {
			t.Fatal(err)
		}
		wg.Go(func() {
			defer conn.Close()
			changeUntil(ctx, conn, database, statements, &done)
		})
	}
	return func() int64 {
		cancel()
		wg.Wait()
		return done.Load()
	}
}

func changeUntil(ctx context.Context, conn *sql.Conn, database string, statements []string, done *atomic.Int64) {
	if _, err := conn.ExecContext(ctx, "USE "+database); err != nil {
		return
	}
	tick := time.NewTicker(8 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		q := fmt.Sprintf(statements[rand.IntN(len(statements))]+" -- %[1]d %[2]d", rand.IntN(1000), rand.IntN(1000))
		if _, err := conn.ExecContext(ctx, q); err == nil {
			done.Add(1) // deadlocks and duplicates are part of the load
		} else if ctx.Err() == nil {
			_, _ = conn.ExecContext(ctx, "ROLLBACK")
		}
	}
}

// SIGKILL at random moments under load on tables without a usable key, resumed
// each time: the same multisets of rows at the end. After each, sessions that
// wait for a command are gone within a second, all of them within 30 s without
// any help, and all of them before a resume does anything else.
func TestB3_04_KilledWithoutKeys(t *testing.T) {
	onKinds(t, func(t *testing.T, kind servers.Kind) {
		source, target := sharedPair(t, kind)
		testdb.Load(t, source, digits)
		testdb.Load(t, source, keylessTables)
		m := harness.New(t, source, target, harness.Config{Include: []string{"keyless.*"}, Extra: []string{"snapshot: {chunk_size: 2KiB}"}})
		stop := writeRandom(t, source, "keyless", keylessChanges)
		for i := range times(3, 10) {
			p := begin(m, "--json", "--until", "never")
			begun(p)
			at(p, 1500*time.Millisecond)
			phase := m.Phase()
			p.Kill9()
			began := time.Now()
			if !testdb.Eventually(t, 30*time.Second, func() bool { return len(testdb.Sessions(t, source, harness.User)) == 0 }) {
				t.Errorf("sessions are left 30 s after the kill: %v", testdb.Sessions(t, source, harness.User))
			}
			t.Logf("%s: kill %d in phase %s: all sessions gone after %d ms", kind, i+1, phase, time.Since(began).Milliseconds())
		}
		m.RequireResume()
		n := stop()
		if n < 100 {
			t.Errorf("the load made %d statements only", n)
		}
		m.RequireResume()
		t.Logf("%s: %d statements", kind, n)
		testdb.RequireEqual(t, source, target, []string{"keyless"})
	}, servers.Kinds()...)
}

// A table without a key is half copied when another one loses a column, and so
// has to begin again: both do, from empty.
func TestKeylessCopyCutShort(t *testing.T) {
	onKinds(t, func(t *testing.T, kind servers.Kind) {
		source, target := sharedPair(t, kind)
		testdb.Load(t, source, digits)
		testdb.Load(t, source, `CREATE DATABASE cut; USE cut; CREATE TABLE keyless (a INT); CREATE TABLE keyed (id INT PRIMARY KEY, gone INT, v INT);
			INSERT INTO keyless SELECT a.n * 10 + b.n FROM keyless_digits.d a, keyless_digits.d b;
			INSERT INTO keyed SELECT a.n * 10 + b.n, 1, 2 FROM keyless_digits.d a, keyless_digits.d b;`)
		m := harness.New(t, source, target, harness.Config{Include: []string{"cut.*"}, Build: harness.HoldPoints, Env: []string{harness.ChunkRows(10)}})
		holds := []string{harness.HoldChunkWritten("cut.keyless"), harness.HoldChunkRead("cut.keyed")}
		for _, h := range holds {
			m.Hold(h)
		}
		p := m.Start("--json")
		for _, h := range holds {
			m.WaitReached(p, h)
		}
		testdb.Exec(t, source, "ALTER TABLE cut.keyed DROP COLUMN gone")
		m.Release(holds[1])
		p.WaitFor("the copy begins again", time.Minute, func() bool { return strings.Contains(p.Stderr(), "its copy begins again") })
		m.Release(holds[0])
		p.RequireExit(time.Minute, 0)
		testdb.RequireEqual(t, source, target, []string{"cut"})
	}, families...)
}
