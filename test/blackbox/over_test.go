package blackbox

import (
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/copydb/copydb/internal/testdb"
	"github.com/copydb/copydb/state"
	"github.com/copydb/copydb/test/harness"
	"github.com/copydb/copydb/test/servers"
)

// With source and target swapped nothing is dropped, whatever the accounts may.
func TestStartOverWithServersSwapped(t *testing.T) {
	onKinds(t, func(t *testing.T, kind servers.Kind) {
		source, target := sharedPair(t, kind)
		testdb.CreateLoadTables(t, source, "shop", 2, 20)
		m := harness.New(t, source, target, harness.Config{Include: []string{"shop.*"}})
		m.RequireRun()
		swapped := harness.New(t, target, source, harness.Config{Include: []string{"shop.*"}})
		swapped.StatePath = m.StatePath
		before := testdb.Value(t, source, "SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = 'shop'")
		for _, args := range [][]string{swapped.ResumeArgs(), swapped.FreshArgs("--start-over"), append([]string{"check"}, swapped.ResumeArgs()...)} {
			p := swapped.Command().Start(t, args...)
			p.RequireExit(time.Minute, 4)
			if !strings.Contains(p.Stderr(), "swapped") {
				t.Errorf("%v says:\n%s", args, p.Stderr())
			}
		}
		if now := testdb.Value(t, source, "SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = 'shop'"); now != before {
			t.Errorf("the source has %s tables, it had %s", now, before)
		}
		m.RequireResume()
	})
}

// A run that is at work is not replaced by one with another state file; one that
// was killed is.
func TestStartOverBesideARun(t *testing.T) {
	onKinds(t, func(t *testing.T, kind servers.Kind) {
		source, target := sharedPair(t, kind)
		testdb.CreateLoadTables(t, source, "shop", 2, 20)
		m := harness.New(t, source, target, harness.Config{Include: []string{"shop.*"}})
		p := m.Start("--json", "--until", "never")
		inPhase(p, state.PhaseCatchUp)
		other := m.Sibling()
		over := other.Run("--start-over")
		if over.ExitCode() != 4 || !strings.Contains(over.Stderr(), "is at work") || !strings.Contains(over.Stderr(), "KILL") {
			t.Errorf("exit code %d beside a run that is at work", over.ExitCode())
		}
		stopRun(t, p, syscall.SIGINT, 130)
		p = m.StartResume("--json", "--until", "never")
		inPhase(p, state.PhaseCatchUp)
		p.Kill9()
		other.RequireRun("--start-over")
		finish(t, other, nil, []string{"shop"})
	})
}
