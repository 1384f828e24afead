package blackbox

import (
	"math/rand/v2"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/copydb/copydb/internal/testdb"
	"github.com/copydb/copydb/state"
	"github.com/copydb/copydb/test/harness"
	"github.com/copydb/copydb/test/servers"
)

// stopTimeout is the default of stop_timeout.
const stopTimeout = 6 * time.Second

// smallChunks makes a snapshot of a few thousand rows last.
const smallChunks = "snapshot: {chunk_size: 64KiB}"

// begin starts a fresh run, or goes on where there is a state.
func begin(m *harness.Migration, args ...string) *harness.Process {
	if m.Phase() == "" {
		return m.Start(args...)
	}
	return m.StartResume(args...)
}

// begun waits until the run has taken hold of its migration.
func begun(p *harness.Process) {
	p.WaitFor("the run has begun", time.Minute, func() bool { return p.Last("phase") != nil })
}

// inPhase waits until the run says that it is in a phase.
func inPhase(p *harness.Process, phase state.Phase) {
	p.WaitFor("phase "+string(phase), time.Minute, func() bool { return p.Last("phase").Text("phase") == string(phase) })
}

// at waits for a random moment, or the end of the run.
func at(p *harness.Process, most time.Duration) {
	select {
	case <-p.Ended():
	case <-time.After(rand.N(most)):
	}
}

// stopRun sends a signal, and fails the test unless the run ends within
// stop_timeout with that code, or with 0 if it had printed its summary.
func stopRun(t *testing.T, p *harness.Process, sig syscall.Signal, want int) time.Duration {
	t.Helper()
	began := time.Now()
	p.Signal(sig)
	code := p.Wait(stopTimeout + 10*time.Second)
	took := time.Since(began)
	if code != want && (code != 0 || p.Last("summary") == nil) {
		t.Fatalf("exit code %d after %s, want %d", code, sig, want)
	}
	if took > stopTimeout {
		t.Errorf("ended %s after %s", took, sig)
	}
	return took
}

// SIGINT at random moments of one migration under load, resumed each time.
func TestB1_01_InterruptedUnderLoad(t *testing.T) {
	onKinds(t, func(t *testing.T, kind servers.Kind) {
		source, target := sharedPair(t, kind)
		testdb.CreateLoadTables(t, source, "loads", 8, times(5000, 50000))
		m := harness.New(t, source, target, harness.Config{Include: []string{"loads.*"}, Extra: []string{smallChunks}})
		rate := times(250, 500)
		load := testdb.StartLoad(t, source, testdb.LoadOptions{Databases: []string{"loads"}, Rate: rate})
		for i := range times(4, 10) {
			p := begin(m, "--json", "--until", "never")
			begun(p)
			at(p, 2*time.Second)
			took := stopRun(t, p, syscall.SIGINT, 130)
			requireReleased(t, source, "loads")
			t.Logf("%s: interrupt %d in phase %s: stopped in %d ms, %.0f rows, %.0f transactions", kind, i+1, m.Phase(), took.Milliseconds(),
				p.Last("summary").Number("rows"), p.Last("summary").Number("transactions"))
		}
		m.RequireResume()
		if did := load.Result().Rate(); did < 0.8*float64(rate) {
			t.Errorf("the load made %.0f changes/s, want %d", did, rate)
		}
		finish(t, m, load, []string{"loads"})
	}, servers.Kinds()...)
}

// The other ways in which a run is ended from outside, one after the other in
// one migration under load.
func TestB1_01_OtherSignals(t *testing.T) {
	onKinds(t, func(t *testing.T, kind servers.Kind) {
		source, target := sharedPair(t, kind)
		testdb.CreateLoadTables(t, source, "loads", 4, 2000)
		m := harness.New(t, source, target, harness.Config{Include: []string{"loads.*"}, Extra: []string{smallChunks}})
		load := testdb.StartLoad(t, source, testdb.LoadOptions{Databases: []string{"loads"}})
		for range times(1, 5) {
			for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL, syscall.SIGHUP, syscall.SIGKILL} {
				p := begin(m, "--json", "--until", "never")
				begun(p)
				at(p, time.Second)
				if sig == syscall.SIGKILL {
					p.Kill9()
					continue
				}
				stopRun(t, p, sig, 143)
				requireReleased(t, source, "loads")
			}
		}
		m.RequireResume()
		finish(t, m, load, []string{"loads"})
	})
}

// The second SIGINT ends a run that cannot stop within a second.
func TestB1_01_SecondInterrupt(t *testing.T) {
	onKinds(t, func(t *testing.T, kind servers.Kind) {
		source, target := sharedPair(t, kind)
		testdb.CreateLoadTables(t, source, "loads", 2, 2000)
		m := harness.New(t, source, target, harness.Config{Include: []string{"loads.*"}, Extra: []string{smallChunks}})
		p := m.Start("--json")
		inPhase(p, state.PhaseSnapshot)
		if err := target.Pause(); err != nil {
			t.Fatal(err)
		}
		p.Signal(syscall.SIGINT)
		p.WaitForStderr("press Ctrl-C again", time.Second)
		began := time.Now()
		p.Signal(syscall.SIGINT)
		if code := p.Wait(10 * time.Second); code != 130 {
			t.Errorf("exit code %d", code)
		}
		if took := time.Since(began); took > time.Second {
			t.Errorf("ended %s after the second SIGINT", took)
		}
		testdb.RequireClean(t, source, harness.User)
		testdb.RequireUnlocked(t, source, []string{"loads"})
		if err := target.Resume(); err != nil {
			t.Fatal(err)
		}
		m.RequireResume()
		finish(t, m, nil, []string{"loads"})
	}, families...)
}

// With --deadline the process has ended by then, and can be resumed.
func TestB1_01_Deadline(t *testing.T) {
	onKinds(t, func(t *testing.T, kind servers.Kind) {
		source, target := sharedPair(t, kind)
		testdb.CreateLoadTables(t, source, "loads", 2, 2000)
		m := harness.New(t, source, target, harness.Config{Include: []string{"loads.*"}, Extra: []string{"stop_timeout: 2s"}})
		const deadline = 5 * time.Second
		p := m.Start("--json", "--until", "never", "--deadline", deadline.String())
		if code := p.Wait(30 * time.Second); code != 75 || p.Took() > deadline {
			t.Errorf("exit code %d after %s", code, p.Took())
		}
		requireReleased(t, source, "loads")
		if s := m.State(); s.LastStop == nil || s.LastStop.ExitCode != 75 {
			t.Errorf("last stop %+v", s.LastStop)
		}
		finish(t, m, nil, []string{"loads"})
	}, families...)
}

// A resume whose end is not reached, an older copy of the state: whatever file
// is used, the target is right about what it has.
func TestB1_03_OlderStates(t *testing.T) {
	onKinds(t, func(t *testing.T, kind servers.Kind) {
		source, target := sharedPair(t, kind)
		testdb.CreateLoadTables(t, source, "loads", 4, 2000)
		m := harness.New(t, source, target, harness.Config{Include: []string{"loads.*"}, Extra: []string{smallChunks}})
		load := testdb.StartLoad(t, source, testdb.LoadOptions{Databases: []string{"loads"}})
		var copies [][]byte
		for range 3 {
			p := begin(m, "--json", "--until", "never")
			begun(p)
			at(p, 1500*time.Millisecond)
			stopRun(t, p, syscall.SIGINT, 130)
			copies = append(copies, readFile(t, m.StatePath))
		}
		m.RequireResume()
		for i, old := range slices.Backward(copies) {
			if i == 0 { // the file and all beside it are lost, but for the copy
				removeState(t, m)
			}
			writeFile(t, m.StatePath, old)
			p := m.StartResume("--until", "never", "--json")
			begun(p)
			at(p, time.Second)
			stopRun(t, p, syscall.SIGINT, 130)
		}
		finish(t, m, load, []string{"loads"})
	})
}
