package cases

import (
	"context"
	"database/sql"
	"log/slog"
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
	"github.com/go-mysql-org/go-mysql/mysql"
	"github.com/go-mysql-org/go-mysql/replication"
)

// scripts are the runs that directives cannot describe.
var scripts = map[string]func(*play){
	"within_first_second":      withinFirstSecond,
	"stopped_while_connecting": stoppedWhileConnecting,
	"two_runs":                 twoRuns,
	"id_of_a_replica":          idOfAReplica,
	"long_query":               longQuery,
	"busy_source":              busySource,
	"deadline":                 deadline,
	"source_dies":              sourceDies,
	"stopped_inside":           stoppedInside,
}

// stoppedInside stops the run at an event of the transactions that were made
// while it stood before the first event.
func stoppedInside(p *play) {
	p.m.Hold(harness.HoldCatchUp)
	call := p.start()
	p.m.WaitReached(call, harness.HoldCatchUp)
	p.during()
	p.m.HoldAt(p.run.Moment.Name, p.run.Moment.Arrival)
	p.m.Release(harness.HoldCatchUp)
	p.m.WaitReached(call, p.run.Moment.Name)
	p.stop(call)
	p.m.Release(p.run.Moment.Name)
	p.ends(p.goOn(), 0)
	p.verify()
}

// withinFirstSecond stops a fresh run after ever longer times, wherever it is.
func withinFirstSecond(p *play) {
	for _, after := range []int{50, 200, 350, 600} {
		p := newPlay(p.t, p.source, p.target, p.run, harness.HoldPoints)
		call := p.start()
		select {
		case <-call.Ended():
		case <-time.After(time.Duration(after) * time.Millisecond): // the time is what is tested
		}
		call.Signal(syscall.SIGINT)
		// -1: before the command could catch signals; 0: it was faster.
		p.ends(call, 130, -1, 0)
		if code := call.ExitCode(); code == -1 && call.Stderr() != "" {
			p.t.Errorf("stopped after %d ms by the signal itself, but the command was running already", after)
		}
		p.m.RequireClean()
		p.during()
		p.ends(p.goOn(), 0)
		p.verify()
	}
}

// stoppedWhileConnecting stops a run whose source, or target, takes the
// connection and says nothing.
func stoppedWhileConnecting(p *play) {
	for _, side := range []struct {
		server *servers.Server
		addr   func(*harness.Config) *string
	}{
		{p.source, func(c *harness.Config) *string { return &c.SourceAddr }},
		{p.target, func(c *harness.Config) *string { return &c.TargetAddr }},
	} {
		p := newPlay(p.t, p.source, p.target, p.run, harness.HoldPoints)
		relay := testdb.Proxy(p.t, side.server.Addr())
		relay.Pause()
		p.m.SetConfig(func(c *harness.Config) { *side.addr(c) = relay.Addr() })
		call := p.start()
		call.WaitFor("a connection", waitTimeout, func() bool { return relay.Connections() > 0 })
		call.Signal(syscall.SIGINT)
		call.RequireExit(6*time.Second, 130) // the default of stop_timeout
		p.requireUntouched()
		p.m.SetConfig(func(c *harness.Config) { *side.addr(c) = "" })
		p.during()
		p.ends(p.goOn(), 0)
		p.verify()
	}
}

// twoRuns lets two runs follow one source at once, and resumes both at once.
func twoRuns(p *play) {
	left, right := *p, *p
	right.m = p.m.Sibling()
	left.m.SetConfig(func(c *harness.Config) { c.Include = []string{"b79.*"} })
	right.m.SetConfig(func(c *harness.Config) { c.Include = []string{"b79_right.*"} })
	if !testdb.Eventually(p.t, waitTimeout, func() bool { return len(p.replicas()) == 0 }) {
		p.t.Fatal("replicas of a run before are left")
	}
	var calls []*harness.Process
	for _, one := range []*play{&left, &right} {
		calls = append(calls, one.start("--until", "never", "--json"))
	}
	for _, call := range calls {
		p.waitPhase(call, state.PhaseCatchUp)
	}
	p.during()
	p.waitFollowed(calls[0], p.run.SQL.Output())
	// A run looks at the log over a connection of its own before it follows, which
	// the source takes for a replica until its next heartbeat. Replicas with one
	// id would end each other for ever.
	var last []string
	same := 0
	calls[0].WaitFor("two replicas that stay", waitTimeout, func() bool {
		now := p.replicas()
		if same++; !slices.Equal(now, last) {
			last, same = now, 0
		}
		return same >= 20 && len(now) == 2
	})
	if last[0] == last[1] {
		p.t.Errorf("replica ids are %q", last)
	}
	for _, call := range calls {
		call.Signal(syscall.SIGINT)
	}
	for _, call := range calls {
		p.ends(call, 130)
	}
	calls = nil
	for _, one := range []*play{&left, &right} {
		calls = append(calls, one.goOn())
	}
	for _, call := range calls {
		p.ends(call, 0)
	}
	left.verify()
	right.verify()
}

// replicas returns the ids of the replicas that the source knows, sorted.
func (p *play) replicas() []string {
	p.t.Helper()
	query := "SHOW REPLICAS"
	if p.source.Kind.IsMariaDB() {
		query = "SHOW SLAVE HOSTS"
	}
	var ids []string
	for line := range strings.Lines(p.sql(p.source, query)) {
		id, _, _ := strings.Cut(line, "\t")
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}

// replicaID is the id that the replica of idOfAReplica has.
const replicaID = 4242

// idOfAReplica gives a run the id of a replica, while that is there and after
// it has gone.
func idOfAReplica(p *play) {
	p.during()
	stop := p.replicate()
	p.m.SetConfig(func(c *harness.Config) { c.SourceExtra = []string{"server_id: " + strconv.Itoa(replicaID)} })
	if p.source.Kind.IsMariaDB() {
		p.seeReplicas()
	}
	call := p.start()
	p.ends(call, 3)
	if !strings.Contains(call.Stderr(), strconv.Itoa(replicaID)) {
		p.t.Errorf("stderr does not name the id %d", replicaID)
	}
	p.requireUntouched()
	if got := p.replicas(); !slices.Contains(got, strconv.Itoa(replicaID)) {
		p.t.Errorf("the replica is gone: %q", got)
	}
	stop()
	if !testdb.Eventually(p.t, waitTimeout, func() bool { return len(p.replicas()) == 0 }) {
		p.t.Fatalf("the replica is still there: %q", p.replicas())
	}
	p.ends(p.goOn(), 0)
	p.verify()
}

// seeReplicas lets the account see replicas, as the command advises: MariaDB
// wants a privilege for it that nothing else needs.
func (p *play) seeReplicas() {
	p.t.Helper()
	const privilege = "REPLICATION MASTER ADMIN"
	call := p.start("--dry-run")
	p.ends(call, 0)
	if !strings.Contains(call.Stderr(), "GRANT "+privilege) {
		p.t.Errorf("stderr does not advise to grant %s", privilege)
	}
	p.sql(p.source, "GRANT "+privilege+" ON *.* TO "+harness.User)
	p.t.Cleanup(func() { // the context of the test has ended by then
		if _, err := p.source.DB().Exec("REVOKE " + privilege + " ON *.* FROM " + harness.User); err != nil {
			p.t.Error(err)
		}
	})
}

// replicate registers a replica with the source and returns what ends it.
func (p *play) replicate() (stop func()) {
	p.t.Helper()
	flavor := mysql.MySQLFlavor
	if p.source.Kind.IsMariaDB() {
		flavor = mysql.MariaDBFlavor
	}
	replica := replication.NewBinlogSyncer(replication.BinlogSyncerConfig{ServerID: replicaID, Flavor: flavor,
		Host: p.source.Host, Port: uint16(p.source.Port), User: p.source.RootUser, Logger: slog.New(slog.DiscardHandler)})
	p.t.Cleanup(replica.Close)
	first := strings.SplitN(p.sql(p.source, "SHOW BINARY LOGS"), "\t", 2)[0]
	if _, err := replica.StartSync(mysql.Position{Name: first, Pos: 4}); err != nil {
		p.t.Fatalf("start replica: %v", err)
	}
	if !testdb.Eventually(p.t, waitTimeout, func() bool { return slices.Contains(p.replicas(), strconv.Itoa(replicaID)) }) {
		p.t.Fatalf("the source does not know the replica: %q", p.replicas())
	}
	return replica.Close
}

// longQuery copies while a query runs for minutes and a transaction stays open
// until all chunks are done. Meanwhile somebody else writes and must not wait.
func longQuery(p *play) {
	sleeper := p.session(p.source)
	id := sleeper.value("SELECT CONNECTION_ID()")
	asleep := make(chan error, 1)
	go func() {
		_, err := sleeper.conn.ExecContext(p.t.Context(), "SELECT SLEEP(120) FROM b80.t")
		asleep <- err
	}()
	running := "SELECT COUNT(*) FROM information_schema.processlist WHERE id = " + id + " AND info LIKE 'SELECT SLEEP%'"
	if !testdb.Eventually(p.t, waitTimeout, func() bool { return p.count(p.source, running) == 1 }) {
		p.t.Fatal("the long query does not run")
	}
	open := p.session(p.source)
	open.exec(strings.ReplaceAll(p.run.SQL.During, "COMMIT;", ""))
	stopWriting := p.write("SET SESSION lock_wait_timeout=1, innodb_lock_wait_timeout=1", "UPDATE b80.t SET v=2 WHERE id=2")
	p.m.Hold(harness.HoldCatchUp)
	call := p.start()
	p.m.WaitReached(call, harness.HoldCatchUp)
	open.exec("COMMIT")
	p.m.Release(harness.HoldCatchUp)
	p.ends(call, 0)
	if n := stopWriting(); n == 0 {
		p.t.Error("nobody else has written")
	}
	if p.count(p.source, running) != 1 {
		p.t.Error("the long query has ended before the run")
	}
	p.sql(p.source, "KILL "+id)
	if err := <-asleep; err == nil {
		p.t.Error("the long query was not ended by KILL")
	}
	p.verify()
}

// busySource runs against a source that is written to all the time.
func busySource(p *play) {
	stopWriting := p.write("", "INSERT INTO b88.t (v) VALUES (1)")
	p.ends(p.start(), 0)
	// With caught_up everything before the start is there already.
	if n := p.count(p.target, "SELECT COUNT(*) FROM b88.t"); n == 0 {
		p.t.Error("the target has no row")
	}
	p.endAfter(stopWriting)
}

// deadline bounds a run that would follow a busy source for ever.
func deadline(p *play) {
	stopWriting := p.write("", "INSERT INTO b88.t (v) VALUES (1)")
	const limit = 5 * time.Second
	call := p.start("--until", "never", "--deadline", limit.String(), "--set", "stop_timeout=2s")
	p.ends(call, 75)
	if call.Took() > limit+time.Second {
		p.t.Errorf("the run took %s with a deadline of %s", call.Took(), limit)
	}
	p.m.RequireClean()
	p.endAfter(stopWriting)
}

// endAfter stops the writer and lets a second call bring both sides together.
func (p *play) endAfter(stopWriting func() int) {
	p.t.Helper()
	if n := stopWriting(); n < 100 {
		p.t.Errorf("only %d writes: that is no busy source", n)
	}
	p.ends(p.goOn(), 0)
	r := *p.run
	r.SQL.Want = strings.Split(p.sql(p.source, r.SQL.Check), "\n")
	p.run = &r
	p.verify()
}

// sourceDies kills the source while catch-up follows it. It takes servers of
// its own, which do not lose commits.
func sourceDies(p *play) {
	source, target := testdb.Pair(p.t, p.source.Kind)
	grantAll(p.t, source, target, []*Run{p.run})
	p = newPlay(p.t, source, target, p.run, harness.HoldPoints)
	call := p.start("--until", "never", "--json", "--set", "retry_timeout=5s")
	p.waitPhase(call, state.PhaseCatchUp)
	p.during()
	p.waitFollowed(call, p.run.SQL.Output())
	source.Kill9()
	p.ends(call, 7)
	if !strings.Contains(call.Stderr(), "--resume-state") {
		p.t.Error("stderr does not say how to go on")
	}
	if err := source.Restart(p.t.Context()); err != nil {
		p.t.Fatal(err)
	}
	p.sql(source, "INSERT INTO b88.t (v) VALUES (7)")
	p.ends(p.goOn(), 0)
	r := *p.run
	r.SQL.Want = []string{"3\t10"}
	p.run = &r
	p.verify()
}

// session is a connection of the super user that belongs to the test.
type session struct {
	t    *testing.T
	conn *sql.Conn
}

func (p *play) session(srv *servers.Server) *session {
	p.t.Helper()
	db := srv.Open()
	conn, err := db.Conn(p.t.Context())
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { _ = conn.Close(); _ = db.Close() }) // they may be killed
	return &session{p.t, conn}
}

func (s *session) exec(query string) {
	s.t.Helper()
	if _, err := s.conn.ExecContext(s.t.Context(), query); err != nil {
		s.t.Fatalf("%s: %v", query, err)
	}
}

func (s *session) value(query string) string {
	s.t.Helper()
	var v string
	if err := s.conn.QueryRowContext(s.t.Context(), query).Scan(&v); err != nil {
		s.t.Fatalf("%s: %v", query, err)
	}
	return v
}

// write repeats a statement on the source until the function that it returns
// is called, which says how often that went well. An error fails the test.
func (p *play) write(before, query string) (stop func() int) {
	p.t.Helper()
	s := p.session(p.source)
	if before != "" {
		s.exec(before)
	}
	ctx, cancel := context.WithCancel(p.t.Context())
	ended := make(chan int)
	var failed error
	go func() {
		n := 0
		for ; ctx.Err() == nil; n++ {
			// The statement itself is not cut off: it is there or it is not.
			if _, failed = s.conn.ExecContext(context.WithoutCancel(ctx), query); failed != nil {
				break
			}
		}
		ended <- n
	}()
	p.t.Cleanup(cancel)
	return func() int {
		p.t.Helper()
		cancel()
		n := <-ended
		if failed != nil {
			p.t.Errorf("after %d times: %s: %v", n, query, failed)
		}
		return n
	}
}
