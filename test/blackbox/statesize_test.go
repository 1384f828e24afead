package blackbox

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/copydb/copydb/internal/testdb"
	"github.com/copydb/copydb/test/harness"
	"github.com/copydb/copydb/test/servers"
)

const (
	mostState      = 1 << 20                // bytes
	mostCheckpoint = 100 * time.Millisecond // for the median: the disk and others have their moments
)

// Thousands of tables: the state stays small, a checkpoint short.
func TestB1_17_ManyTables(t *testing.T) {
	onKinds(t, func(t *testing.T, kind servers.Kind) {
		tables := times(600, 5000) // more than the format of small states takes
		source, target := testdb.Pair(t, kind, testdb.WithBinlogSize(servers.LoadBinlog), testdb.WithFast(),
			testdb.WithArgs("--table-open-cache=2000"))
		createMany(t, source, tables)
		m := harness.New(t, source, target, harness.Config{Include: []string{"many.*"}, Extra: []string{"checkpoint_interval: 500ms"}})
		p := m.Start("--json", "--progress-interval", "1s")
		largest := watchState(t, m, p)
		p.RequireExit(memoryTimeout, 0)
		requireSmallState(t, p, largest(), int64(mostState*tables/5000))
		if got := testdb.Value(t, target, "SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = 'many'"); got != fmt.Sprint(tables) {
			t.Errorf("the target has %s tables, want %d", got, tables)
		}
		state := m.State()
		for _, i := range []int{0, tables / 2, tables - 1} {
			if s := state.Tables[i]; s.Rows != 10 || len(s.Done) != 1 {
				t.Errorf("table %d: %+v", i, s)
			}
		}
	}, families...)
}

// createMany makes the database many, whose tables have ten rows each.
func createMany(t *testing.T, srv *servers.Server, tables int) {
	t.Helper()
	testdb.Exec(t, srv, "CREATE DATABASE many")
	const batch = 100
	for from := 0; from < tables; from += batch {
		var b strings.Builder
		b.WriteString("USE many;")
		for i := from; i < min(from+batch, tables); i++ {
			fmt.Fprintf(&b, "CREATE TABLE orders_%05d (id INT PRIMARY KEY, note VARCHAR(20) NOT NULL);"+
				"INSERT INTO orders_%05[1]d VALUES (1,'a'),(2,'b'),(3,'c'),(4,'d'),(5,'e'),(6,'f'),(7,'g'),(8,'h'),(9,'i'),(10,'j');", i)
		}
		testdb.Exec(t, srv, b.String())
	}
}

// One table in very many chunks: its finished ranges are merged.
func TestStateOfManyChunks(t *testing.T) {
	onKinds(t, func(t *testing.T, kind servers.Kind) {
		chunks := times(2000, 100_000)
		source, target := testdb.Pair(t, kind, testdb.WithBinlogSize(servers.DefaultBinlog), testdb.WithFast())
		createSequence(t, source, "chunks", chunks)
		m := harness.New(t, source, target, harness.Config{Include: []string{"chunks.*"}, Extra: []string{"checkpoint_interval: 200ms"},
			Build: harness.HoldPoints, Env: []string{"COPYDB_TEST_CHUNK_ROWS=1", fmt.Sprintf("COPYDB_TEST_CUT_ROWS=%d", max(chunks/1000, 50))}})
		p := m.Start("--json", "--progress-interval", "1s")
		largest := watchState(t, m, p)
		p.RequireExit(memoryTimeout, 0)
		requireSmallState(t, p, largest(), mostState)
		if got, want := sumOf(t, target, "chunks"), sumOf(t, source, "chunks"); got != want {
			t.Errorf("the target has %s, the source %s", got, want)
		}
	}, families...)
}

// watchState returns a function that waits for the end of a run and returns the
// largest size of its state file.
func watchState(t *testing.T, m *harness.Migration, p *harness.Process) func() int64 {
	t.Helper()
	size := make(chan int64)
	go func() {
		var most int64
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		for p.Running() {
			if info, err := os.Stat(m.StatePath); err == nil {
				most = max(most, info.Size())
			}
			<-tick.C
		}
		size <- most
	}()
	return func() int64 { return <-size }
}

func requireSmallState(t *testing.T, p *harness.Process, size, most int64) {
	t.Helper()
	var took []time.Duration
	for _, r := range p.Records() {
		if r.Type() == "checkpoint" {
			took = append(took, time.Duration(r.Number("seconds")*float64(time.Second)))
		}
	}
	if len(took) == 0 {
		t.Fatal("no checkpoint")
	}
	slices.Sort(took)
	t.Logf("state file: at most %d bytes; %d checkpoints: median %s, longest %s; the run took %s", size, len(took),
		took[len(took)/2], took[len(took)-1], p.Took().Round(time.Millisecond))
	if size > most || size == 0 {
		t.Errorf("the state file had %d bytes, want at most %d", size, most)
	}
	if median := took[len(took)/2]; median > mostCheckpoint {
		t.Errorf("a checkpoint took %s, want at most %s", median, mostCheckpoint)
	}
}
