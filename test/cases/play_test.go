package cases

import (
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/copydb/copydb/internal/testdb"
	"github.com/copydb/copydb/state"
	"github.com/copydb/copydb/test/harness"
	"github.com/copydb/copydb/test/servers"
	"github.com/google/go-cmp/cmp"
)

// waitTimeout bounds every wait for something that should come at once.
const waitTimeout = 30 * time.Second

// play is one run of a case on one pair of servers.
type play struct {
	t              *testing.T
	run            *Run
	source, target *servers.Server
	m              *harness.Migration
}

// newPlay clears the servers, runs the parts source and target, and writes the
// configuration.
func newPlay(t *testing.T, source, target *servers.Server, r *Run, build harness.Build) *play {
	t.Helper()
	own := false // without the account of grantAll
	for args, srv := range map[*[]string]**servers.Server{&r.SourceArgs: &source, &r.TargetArgs: &target} {
		if len(*args) > 0 {
			*srv, own = testdb.One(t, source.Kind, testdb.WithFast(), testdb.WithArgs(*args...)), true
		}
	}
	p := &play{t: t, run: r, source: source, target: target}
	drop := "DROP DATABASE IF EXISTS _copydb;\n"
	for _, d := range r.SQL.Databases() {
		drop += "DROP DATABASE IF EXISTS " + d + ";\n"
	}
	p.sql(source, drop+r.SQL.Source)
	p.sql(target, drop+r.SQL.Target)
	c := p.config(build)
	if c.User == "" && !own {
		c.User, c.Password = harness.User, harness.Password // see grantAll
	}
	p.m = harness.New(t, source, target, c)
	return p
}

// grantAll makes the account of the harness and gives it what copydb asks for
// to copy the databases of all runs that a pair of servers is for: once, since
// that takes as long as a small copy.
func grantAll(t *testing.T, source, target *servers.Server, runs []*Run) {
	t.Helper()
	var include []string
	var script strings.Builder
	for _, r := range runs {
		for _, d := range r.SQL.Databases() {
			if slices.Contains(include, d+".*") {
				continue
			}
			include = append(include, d+".*")
			script.WriteString("CREATE DATABASE " + d + "; CREATE TABLE " + d + ".t (id INT PRIMARY KEY);\n")
		}
	}
	if _, err := printed(t.Context(), source, script.String()); err != nil {
		t.Fatal(err)
	}
	harness.New(t, source, target, harness.Config{Include: include, Build: harness.HoldPoints})
}

func (p *play) config(build harness.Build) harness.Config {
	c := harness.Config{Include: p.run.Include, User: p.run.User, Password: p.run.Password, Env: p.run.Env, Build: build}
	if build != harness.HoldPoints {
		return c
	}
	c.Env = slices.Clone(c.Env)
	if p.run.ChunkRows > 0 {
		c.Env = append(c.Env, harness.ChunkRows(p.run.ChunkRows))
	}
	if p.run.CutRows > 0 {
		c.Env = append(c.Env, "COPYDB_TEST_CUT_ROWS="+strconv.Itoa(p.run.CutRows))
	}
	return c
}

// sql runs statements of a case on a connection of their own and returns what
// they print.
func (p *play) sql(srv *servers.Server, text string) string {
	p.t.Helper()
	out, err := printed(p.t.Context(), srv, text)
	if err != nil {
		p.t.Fatalf("%v\n%s", err, text)
	}
	return out
}

func (p *play) during() { p.t.Helper(); p.sql(p.source, p.run.SQL.During) }

// args are the settings of the run, behind more.
func (p *play) args(more ...string) []string {
	for _, s := range p.run.Set {
		more = append(more, "--set", s)
	}
	return more
}

// start starts a fresh run.
func (p *play) start(more ...string) *harness.Process {
	p.t.Helper()
	return p.m.Start(p.args(more...)...)
}

// goOn starts the call that an operator makes after a run that ended early: a
// resume if there is a state, a fresh run if there is none.
func (p *play) goOn() *harness.Process {
	p.t.Helper()
	if _, err := os.Stat(p.m.StatePath); err != nil {
		return p.start()
	}
	return p.m.StartResume(p.args()...)
}

// ends waits for the end of a call and demands an exit code.
func (p *play) ends(call *harness.Process, codes ...int) {
	p.t.Helper()
	call.RequireExit(p.run.Within, codes...)
}

// perform does what the directives say.
func (p *play) perform() {
	p.t.Helper()
	switch {
	case p.run.StopAtEach != "":
		p.stopAtEach()
	case p.run.Moment.When == AtNever:
		p.untilNever()
	case p.run.Moment.When == AtStart:
		p.during()
		p.judge(p.start())
	default:
		p.atMoment()
	}
	if p.run.Exit != 0 && strings.TrimSpace(p.run.SQL.Mend) == "" {
		return
	}
	if p.run.Exit != 0 {
		p.sql(p.target, p.run.SQL.Mend)
		p.ends(p.goOn(), 0)
	}
	p.verify()
}

// judge waits for the end of the call that the directives speak of.
func (p *play) judge(call *harness.Process) {
	p.t.Helper()
	p.ends(call, p.run.Exit)
	if want := p.run.Message; want != nil && !want.MatchString(call.Stderr()) {
		p.t.Errorf("stderr has nothing that matches %s", want)
	}
	if p.run.Untouched {
		p.requireUntouched()
	}
}

// requireUntouched fails the test if anything was made on the target, or a
// state.
func (p *play) requireUntouched() {
	p.t.Helper()
	made := testdb.Value(p.t, p.target, "SELECT GROUP_CONCAT(schema_name) FROM information_schema.schemata WHERE schema_name IN ('_copydb', '"+
		strings.Join(p.run.SQL.Databases(), "', '")+"')")
	if made != "NULL" {
		p.t.Errorf("made on the target: %s", made)
	}
	if _, err := os.Stat(p.m.StatePath); !os.IsNotExist(err) {
		p.t.Errorf("there is a state (%v)", err)
	}
}

// atMoment runs the part during while the run stands still, or after it was
// stopped there.
func (p *play) atMoment() {
	p.t.Helper()
	point := p.run.Moment.Point()
	p.m.HoldAt(point, p.run.Moment.Arrival)
	call := p.start()
	p.m.WaitReached(call, point)
	if p.run.CutRows > 0 {
		call.WaitFor("a second worker has taken a part", waitTimeout, func() bool {
			return p.count(p.target, "SELECT COUNT(*) FROM _copydb.`ranges`") > len(p.run.SQL.Tables())
		})
	}
	if p.run.Stop == 0 {
		p.during()
		p.m.Release(point)
		p.judge(call)
		return
	}
	p.stop(call)
	p.during()
	p.m.Release(point)
	p.judge(p.goOn())
}

// stop ends a call with the signal and looks at what it left.
func (p *play) stop(call *harness.Process) {
	p.t.Helper()
	call.Signal(p.run.Stop)
	if p.run.Stop == syscall.SIGKILL {
		p.ends(call, -1)
		return
	}
	p.ends(call, 128+int(p.run.Stop))
	p.m.RequireClean()
	_, err := os.Stat(p.m.StatePath)
	if err == nil && !strings.Contains(call.Stderr(), "--resume-state") {
		p.t.Error("there is a state, and stderr does not say how to resume it")
	}
}

// stopAtEach stops the run at each arrival at the point until it comes through.
func (p *play) stopAtEach() {
	p.t.Helper()
	var points []string
	for _, table := range p.run.SQL.Tables() {
		points = append(points, p.run.StopAtEach+":"+table)
	}
	most := 10 * p.run.Stops
	rows := 0
	for stops := 0; ; stops++ {
		if stops > most {
			p.t.Fatalf("stopped %d times and still not through", stops)
		}
		for _, point := range points {
			p.m.Hold(point)
		}
		call := p.goOn()
		if !p.reachedAny(call, points) {
			p.judge(call)
			if stops < p.run.Stops {
				p.t.Errorf("stopped %d times, want %d at least", stops, p.run.Stops)
			}
			return
		}
		p.stop(call)
		if stops == 0 {
			p.during()
		}
		now := p.targetRows()
		if p.run.StopAtEach == "chunk_written" && now < rows {
			p.t.Errorf("stop %d: the target has %d rows, and had %d before", stops+1, now, rows)
		}
		rows = now
	}
}

// reachedAny waits until the call stands at a point, or has ended.
func (p *play) reachedAny(call *harness.Process, points []string) bool {
	p.t.Helper()
	reached := false
	ok := testdb.Eventually(p.t, waitTimeout, func() bool {
		reached = slices.ContainsFunc(points, p.m.Reached)
		return reached || !call.Running()
	})
	if !ok {
		p.t.Fatalf("after %s the run has neither ended nor come to one of %q", waitTimeout, points)
	}
	return reached
}

// targetRows counts the rows of all tables of the case.
func (p *play) targetRows() (rows int) {
	p.t.Helper()
	for _, table := range p.run.SQL.Tables() {
		rows += p.count(p.target, "SELECT COUNT(*) FROM "+table)
	}
	return rows
}

// untilNever runs the part during while catch-up follows the source, stops the
// run once the target has followed, and lets a resume end it.
func (p *play) untilNever() {
	p.t.Helper()
	call := p.start("--until", "never", "--json")
	p.waitPhase(call, state.PhaseCatchUp)
	p.during()
	p.waitFollowed(call, p.run.SQL.Output())
	call.Signal(syscall.SIGINT)
	p.ends(call, 130)
	p.m.RequireClean()
	p.judge(p.goOn())
}

// waitPhase waits until a call with --json has begun a phase.
func (p *play) waitPhase(call *harness.Process, phase state.Phase) {
	p.t.Helper()
	call.WaitFor("phase "+string(phase), waitTimeout, func() bool { return call.Last("phase").Text("phase") == string(phase) })
}

// waitFollowed waits until the target prints what is expected.
func (p *play) waitFollowed(call *harness.Process, want string) {
	p.t.Helper()
	call.WaitFor("the target has followed", waitTimeout, func() bool { return p.sql(p.target, p.run.SQL.Check) == want })
}

// verify compares both servers with what the case says, with each other, and
// with what a run must leave behind: nothing.
func (p *play) verify() {
	p.t.Helper()
	for name, srv := range map[string]*servers.Server{"source": p.source, "target": p.target} {
		if diff := cmp.Diff(p.run.SQL.Output(), p.sql(srv, p.run.SQL.Check)); diff != "" {
			p.t.Errorf("the check on the %s (- expected, + printed):\n%s", name, diff)
		}
	}
	if p.wholeDatabases() {
		testdb.RequireEqual(p.t, p.source, p.target, p.run.SQL.Databases())
	}
	p.m.RequireClean()
	testdb.RequireUnlocked(p.t, p.source, p.run.SQL.Databases())
	if got := p.m.Phase(); got != state.PhaseDone {
		p.t.Errorf("the state says phase %q", got)
	}
}

// wholeDatabases tells whether all that the case makes is selected.
func (p *play) wholeDatabases() bool {
	for _, d := range p.run.SQL.Databases() {
		if !slices.Contains(p.run.Include, d+".*") {
			return false
		}
	}
	return true
}

func (p *play) count(srv *servers.Server, query string) int {
	p.t.Helper()
	n, err := strconv.Atoi(testdb.Value(p.t, srv, query))
	if err != nil {
		p.t.Fatalf("%s: %v", query, err)
	}
	return n
}
