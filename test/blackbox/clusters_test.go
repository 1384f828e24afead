package blackbox

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/copydb/copydb/internal/testdb"
	"github.com/copydb/copydb/test/harness"
	"github.com/copydb/copydb/test/servers"
)

// Keys in two clusters that lie 9·10^18 apart take no longer to copy than dense
// ones: work is shared by counting keys, not by their distance. Times are
// compared in the long series only.
func TestClusteredKeysAsFastAsDense(t *testing.T) {
	onKinds(t, func(t *testing.T, kind servers.Kind) {
		rows := times(100_000, 4_000_000)
		source, target := testdb.Pair(t, kind, testdb.WithBinlogSize(servers.DefaultBinlog), testdb.WithFast(), testdb.WithBufferPool("1G"))
		createSequence(t, source, "dense", rows)
		createSequence(t, source, "clusters", 1)
		testdb.Exec(t, source, fmt.Sprintf(`DELETE FROM clusters.t;
			INSERT INTO clusters.t SELECT IF(id > %d, id + 9000000000000000000, id), n FROM dense.t; ANALYZE TABLE clusters.t`, rows/2))
		took := map[string][]time.Duration{}
		for range times(1, 3) {
			for _, threads := range []int{2, 4} {
				for _, database := range []string{"dense", "clusters"} {
					took[fmt.Sprint(database, threads)] = append(took[fmt.Sprint(database, threads)], copyWith(t, source, target, database, threads))
				}
			}
		}
		for _, threads := range []int{2, 4} {
			dense, clusters := median(took[fmt.Sprint("dense", threads)]), median(took[fmt.Sprint("clusters", threads)])
			ratio := float64(clusters) / float64(dense)
			t.Logf("%s, %d threads: dense %s, in clusters %s: %.2f", kind, threads, dense, clusters, ratio)
			if long && ratio > 1.2 {
				t.Errorf("%d threads: keys in clusters take %.2f times as long", threads, ratio)
			}
		}
	}, families...)
}

// copyWith copies a database and returns how long its snapshot took.
func copyWith(t *testing.T, source, target *servers.Server, database string, threads int) time.Duration {
	t.Helper()
	testdb.Exec(t, target, "DROP DATABASE IF EXISTS "+database+"; DROP DATABASE IF EXISTS _copydb")
	m := harness.New(t, source, target, harness.Config{Include: []string{database + ".*"}, Extra: []string{fmt.Sprintf("snapshot: {threads: %d}", threads)}})
	p := m.Start("--json")
	p.RequireExit(memoryTimeout, 0)
	if got, want := sumOf(t, target, database), sumOf(t, source, database); got != want {
		t.Errorf("the target has %s, the source %s", got, want)
	}
	phases, _ := p.Last("summary")["phases"].([]any)
	for _, one := range phases {
		if f, _ := one.(map[string]any); f["phase"] == "snapshot" {
			seconds, _ := f["seconds"].(float64)
			return time.Duration(seconds * float64(time.Second)).Round(time.Millisecond)
		}
	}
	t.Fatal("the summary has no time of the snapshot")
	return 0
}

func median(all []time.Duration) time.Duration {
	slices.Sort(all)
	return all[len(all)/2]
}
