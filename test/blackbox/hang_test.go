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

// phases are those in which a run spends its time.
var phases = []state.Phase{state.PhaseSnapshot, state.PhaseCatchUp}

// SIGINT while a server hangs: the run ends in time all the same, and leaves
// nothing on the source.
func TestB1_11_InterruptedWhileAServerHangs(t *testing.T) {
	onKinds(t, func(t *testing.T, kind servers.Kind) {
		source, target := sharedPair(t, kind)
		testdb.CreateLoadTables(t, source, "loads", 4, 2000)
		load := testdb.StartLoad(t, source, testdb.LoadOptions{Databases: []string{"loads"}, BigEvery: -1})
		m := harness.New(t, source, target, harness.Config{Include: []string{"loads.*"}, Extra: []string{"snapshot: {chunk_size: 16KiB}"}})
		for _, phase := range phases {
			for _, hanging := range []*servers.Server{target, source} {
				p := begin(m, "--json", "--until", "never")
				p.WaitFor("phase "+string(phase), time.Minute, func() bool {
					now := p.Last("phase").Text("phase")
					return now == string(phase) || now == string(state.PhaseCatchUp)
				})
				if err := hanging.Pause(); err != nil {
					t.Fatal(err)
				}
				took := stopRun(t, p, syscall.SIGINT, 130)
				t.Logf("%s: stopped in %d ms, source hanging: %v", p.Last("phase").Text("phase"), took.Milliseconds(), hanging == source)
				if hanging == target {
					requireReleased(t, source, "loads")
				}
				if err := hanging.Resume(); err != nil {
					t.Fatal(err)
				}
				m.RequireClean()
			}
		}
		finish(t, m, load, []string{"loads"})
	}, families...)
}

// A network that swallows packets is noticed within network_timeout, on either
// side and in either phase, and the run goes on once it works again.
func TestB1_07_SilentNetwork(t *testing.T) {
	onKinds(t, func(t *testing.T, kind servers.Kind) {
		source, target := sharedPair(t, kind)
		testdb.CreateLoadTables(t, source, "loads", 4, 2000)
		load := testdb.StartLoad(t, source, testdb.LoadOptions{Databases: []string{"loads"}, BigEvery: -1})
		toSource, toTarget := testdb.Proxy(t, source.Addr()), testdb.Proxy(t, target.Addr())
		timeouts := []string{"network_timeout: 2s", "connect_timeout: 2s"}
		m := harness.New(t, source, target, harness.Config{Include: []string{"loads.*"}, Extra: []string{"snapshot: {chunk_size: 16KiB}"},
			SourceAddr: toSource.Addr(), TargetAddr: toTarget.Addr(), SourceExtra: timeouts, TargetExtra: timeouts})
		p := m.Start("--json", "--until", "never")
		for i, proxy := range []*testdb.Relay{toSource, toTarget, toSource, toTarget} {
			if i == 0 {
				inPhase(p, state.PhaseSnapshot)
			} else if i > 1 {
				arrives(t, p, source, target, "loads")
			}
			before := strings.Count(p.Stderr(), "interrupted; trying again")
			began := time.Now()
			proxy.Pause()
			p.WaitFor("the silence is noticed", 30*time.Second, func() bool {
				return strings.Count(p.Stderr(), "interrupted; trying again") > before
			})
			t.Logf("silence %d noticed after %d ms", i, time.Since(began).Milliseconds())
			proxy.Resume()
		}
		arrives(t, p, source, target, "loads")
		stopRun(t, p, syscall.SIGINT, 130)
		requireReleased(t, source, "loads")
		finish(t, m, load, []string{"loads"})
	}, families...)
}
