package blackbox

import (
	"fmt"
	"testing"
	"time"

	"github.com/copydb/copydb/internal/testdb"
	"github.com/copydb/copydb/test/harness"
	"github.com/copydb/copydb/test/servers"
	"github.com/google/go-cmp/cmp"
)

const (
	mostMemory = 512 << 20 // resident, whatever the rows
	largeRow   = 32 << 20
)

// memoryTimeout bounds one run over the full length of the data.
const memoryTimeout = 20 * time.Minute

// requireMemory waits for the end of a run that must succeed in little memory.
func requireMemory(t *testing.T, what string, p *harness.Process) {
	t.Helper()
	peak := p.PeakMemory()
	p.RequireExit(memoryTimeout, 0)
	most := peak()
	t.Logf("%s: peak memory %d MiB, %s", what, most>>20, p.Took().Round(time.Millisecond))
	if most > mostMemory || most == 0 {
		t.Errorf("%s: peak memory %d MiB, want at most %d", what, most>>20, mostMemory>>20)
	}
}

// Short rows, many of them.
func TestMemoryOfNarrowRows(t *testing.T) {
	onKinds(t, func(t *testing.T, kind servers.Kind) {
		source, target := testdb.Pair(t, kind, testdb.WithBinlogSize(servers.DefaultBinlog), testdb.WithFast())
		createSequence(t, source, "narrow", times(200_000, 10_000_000))
		m := harness.New(t, source, target, harness.Config{Include: []string{"narrow.*"}})
		requireMemory(t, "copy", m.Start())
		if got, want := sumOf(t, target, "narrow"), sumOf(t, source, "narrow"); got != want {
			t.Errorf("the target has %s, the source %s", got, want)
		}
	})
}

// createSequence makes a database with one table of rows that have nothing but
// two numbers.
func createSequence(t *testing.T, srv *servers.Server, database string, rows int) {
	t.Helper()
	testdb.Exec(t, srv, fmt.Sprintf(`CREATE DATABASE %s; CREATE TABLE %[1]s.t (id BIGINT NOT NULL PRIMARY KEY, n INT NOT NULL);
		INSERT INTO %[1]s.t VALUES (1, 1)`, database))
	for have := 1; have < rows; {
		more := min(have, rows-have, 500_000)
		testdb.Exec(t, srv, fmt.Sprintf("INSERT INTO %s.t SELECT id + %d, n * 7 %% 1000003 FROM %[1]s.t WHERE id <= %[3]d", database, have, more))
		have += more
	}
	testdb.Exec(t, srv, fmt.Sprintf("ANALYZE TABLE %s.t", database))
}

// sumOf tells the rows of the table of createSequence apart from others.
func sumOf(t *testing.T, srv *servers.Server, database string) string {
	t.Helper()
	return testdb.Value(t, srv, fmt.Sprintf("SELECT CONCAT_WS(' ', COUNT(*), SUM(id), SUM(n), BIT_XOR(CRC32(CONCAT(id, ':', n)))) FROM %s.t", database))
}

// Rows of 32 MiB: copied, and inserted and updated while the log is applied.
func TestMemoryOfLargeRows(t *testing.T) {
	keys := []string{"id INT PRIMARY KEY"}
	if long {
		keys = append(keys, "id INT")
	}
	for _, table := range keys {
		for _, kind := range families {
			t.Run(fmt.Sprintf("%s/%s", kind, table), func(t *testing.T) { largeRows(t, kind, table) })
		}
	}
}

func largeRows(t *testing.T, kind servers.Kind, key string) {
	rows := times(3, 40)
	source, target := testdb.Pair(t, kind, testdb.WithBinlogSize(servers.DefaultBinlog), testdb.WithFast(),
		testdb.WithArgs("--max-allowed-packet=512M"))
	testdb.Exec(t, source, "CREATE DATABASE large; CREATE TABLE large.t ("+key+", b LONGBLOB)")
	insertLarge(t, source, 0, rows)
	m := harness.New(t, source, target, harness.Config{Include: []string{"large.*"}})
	requireMemory(t, "copy", m.Start())
	requireLarge(t, m)
	insertLarge(t, source, rows, 2*rows)
	requireMemory(t, "catch-up of inserts", m.StartResume())
	requireLarge(t, m)
	// One row at a time: before and after image are 64 MiB.
	for i := range rows {
		testdb.Exec(t, source, fmt.Sprintf("UPDATE large.t SET b = REPEAT(RANDOM_BYTES(1024), %d) WHERE id = %d", largeRow/1024, i))
	}
	requireMemory(t, "catch-up of updates", m.StartResume())
	requireLarge(t, m)
}

func insertLarge(t *testing.T, srv *servers.Server, from, to int) {
	t.Helper()
	for i := from; i < to; i++ {
		testdb.Exec(t, srv, fmt.Sprintf("INSERT INTO large.t VALUES (%d, REPEAT(RANDOM_BYTES(1024), %d))", i, largeRow/1024))
	}
}

func requireLarge(t *testing.T, m *harness.Migration) {
	t.Helper()
	const sums = "SELECT CONCAT(id, ':', SHA2(b, 256)) AS row_sum FROM large.t ORDER BY row_sum"
	if diff := cmp.Diff(names(t, m.Source, sums), names(t, m.Target, sums)); diff != "" {
		t.Errorf("the target's rows are not the source's (-source +target):\n%s", diff)
	}
}
