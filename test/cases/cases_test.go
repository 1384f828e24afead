package cases

import (
	"fmt"
	"os"
	"testing"

	"github.com/copydb/copydb/internal/testdb"
	"github.com/copydb/copydb/test/harness"
	"github.com/copydb/copydb/test/servers"
)

func TestMain(m *testing.M) { harness.Main(m) }

// TestCases runs every case on the kinds it names: the kinds side by side, the
// runs of one kind one after the other on one pair of servers.
func TestCases(t *testing.T) {
	all := load(t)
	for _, kind := range servers.Kinds() {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			each(t, kind, all, func(r *Run) bool { return r.On(kind) && due(all, r, kind) }, func(t *testing.T, source, target *servers.Server, r *Run) {
				p := newPlay(t, source, target, r, harness.HoldPoints)
				if r.Script != "" {
					scripts[r.Script](p)
					return
				}
				p.perform()
			})
		})
	}
}

// long tells whether every run is made on every kind that it names.
var long = os.Getenv("COPYDB_TEST_LONG") == "1"

// due chooses the runs of the short series: the first of each case on all kinds,
// its variations by turns on one kind of each family.
func due(all []Case, r *Run, kind servers.Kind) bool {
	if long {
		return true
	}
	turn := []servers.Kind{servers.MariaDB118, servers.MySQL}
	for i := range all {
		for j := range all[i].Runs {
			if &all[i].Runs[j] == r {
				only := turn[(i+j)%2]
				return j == 0 || kind == only || !r.On(only)
			}
		}
	}
	return true
}

// TestReleaseBuild runs some cases with the binary that users get, which has
// no hold points: their changes are made while catch-up follows the source.
func TestReleaseBuild(t *testing.T) {
	all := load(t)
	for _, kind := range DefaultKinds() {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			each(t, kind, all, func(r *Run) bool { return r.Release && r.On(kind) }, func(t *testing.T, source, target *servers.Server, r *Run) {
				free := *r
				free.Moment, free.Stop, free.StopAtEach = Moment{When: AtNever}, 0, ""
				newPlay(t, source, target, &free, harness.Release).perform()
			})
		})
	}
}

// each starts a pair of servers and performs the wanted runs on it.
func each(t *testing.T, kind servers.Kind, all []Case, wanted func(*Run) bool, perform func(*testing.T, *servers.Server, *servers.Server, *Run)) {
	t.Helper()
	var names []string
	var runs []*Run
	for i := range all {
		for j := range all[i].Runs {
			if r := &all[i].Runs[j]; wanted(r) {
				names = append(names, fmt.Sprintf("%02d %s", all[i].Number, r.Name))
				runs = append(runs, r)
			}
		}
	}
	source, target := testdb.Pair(t, kind, testdb.WithFast())
	grantAll(t, source, target, runs)
	for i, r := range runs {
		t.Run(names[i], func(t *testing.T) { perform(t, source, target, r) })
	}
}

// load reads the cases and makes sure that no script is missing or left over.
func load(t *testing.T) []Case {
	t.Helper()
	all, err := Load(os.DirFS("testdata"))
	if err != nil {
		t.Fatal(err)
	}
	used := map[string]bool{}
	released := 0
	for _, c := range all {
		for _, r := range c.Runs {
			if r.Script != "" && scripts[r.Script] == nil {
				t.Errorf("case %d, %s: there is no script %q", c.Number, r.Name, r.Script)
			}
			used[r.Script] = true
			if r.Release {
				released++
			}
		}
	}
	for s := range scripts {
		if !used[s] {
			t.Errorf("no case uses the script %q", s)
		}
	}
	if len(all) == 0 || released < 3 {
		t.Errorf("%d cases, %d runs for the release build", len(all), released)
	}
	if t.Failed() {
		t.FailNow()
	}
	return all
}
