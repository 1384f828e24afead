package blackbox

import (
	"fmt"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/copydb/copydb/internal/testdb"
	"github.com/copydb/copydb/state"
	"github.com/copydb/copydb/test/harness"
	"github.com/copydb/copydb/test/servers"
)

// throttledFor waits until the run says that it pauses or is slowed down for a
// reason.
func throttledFor(p *harness.Process, reason string) {
	p.WaitFor("throttled: "+reason, time.Minute, func() bool { return strings.Contains(p.Last("progress").Text("throttle_reason"), reason) })
}

// standsStill waits until what counts has been the same over several reports of
// the run, each of which gave that reason for a pause.
func standsStill(p *harness.Process, reason, what string, count func() int) {
	last, reports, seen := -1, 0, 0
	p.WaitFor(what+" stands still", time.Minute, func() bool {
		n, paused := pausedReports(p, reason)
		now := count()
		if now != last || !paused {
			last, reports = now, 0
		} else {
			reports += n - seen
		}
		seen = n
		return reports >= 8
	})
}

// pausedReports counts the reports of progress, and tells whether the last one
// gives that reason for a pause.
func pausedReports(p *harness.Process, reason string) (n int, paused bool) {
	for _, r := range p.Records() {
		if r.Type() == "progress" {
			n, paused = n+1, strings.Contains(r.Text("throttle_reason"), reason)
		}
	}
	return n, paused
}

// seconds is how long a phase of the run took.
func seconds(t *testing.T, p *harness.Process, phase state.Phase) float64 {
	t.Helper()
	phases, _ := p.Last("summary")["phases"].([]any)
	for _, one := range phases {
		if r := harness.Record(one.(map[string]any)); r.Text("phase") == string(phase) {
			return r.Number("seconds")
		}
	}
	t.Fatalf("the summary has no phase %s", phase)
	return 0
}

// The bytes of all workers together stay within throttle.max_bytes_per_second, in
// the snapshot and in catch-up; while the run waits, nothing is open on the
// source, and it can be stopped.
func TestThrottleBytes(t *testing.T) {
	onKinds(t, func(t *testing.T, kind servers.Kind) {
		const rate = 256 << 10
		source, target := sharedPair(t, kind)
		testdb.CreateLoadTables(t, source, "loads", 3, 2500)
		testdb.Exec(t, source, "CREATE TABLE loads.bare (a INT, p VARCHAR(300)); INSERT INTO loads.bare SELECT id, REPEAT('x', 300) FROM loads.load1 LIMIT 1000")
		m := harness.New(t, source, target, harness.Config{Include: []string{"loads.*"},
			Extra: []string{"throttle: {max_bytes_per_second: 256KiB}", "snapshot: {threads: 3, chunk_size: 32KiB}"}})

		slow := m.Sibling().Start("--json", "--set", "throttle.max_bytes_per_second=1KiB")
		throttledFor(slow, "throttle.max_bytes_per_second is 1024")
		testdb.RequireUnlocked(t, source, []string{"loads"})
		stopRun(t, slow, syscall.SIGINT, 130)
		requireReleased(t, source, "loads")
		wipeTables(t, target)

		p := m.Start("--json", "--progress-interval", "200ms")
		throttledFor(p, "throttle.max_bytes_per_second is 262144")
		p.RequireExit(harness.RunTimeout, 0)
		if n := strings.Count(p.Stderr(), "reading is slowed down"); n != 1 {
			t.Errorf("the log says %d times that reading is slowed down", n)
		}
		bytes, took := p.Last("summary").Number("bytes"), seconds(t, p, state.PhaseSnapshot)
		// The last chunk of each worker, and of the table without a key, is not paid for.
		if bytes < 3*rate || bytes/took > rate && bytes-rate*took > 5*48<<10 {
			t.Errorf("%.0f bytes in %.1f s", bytes, took)
		}
		t.Logf("%s: snapshot: %.0f bytes in %.2f s", kind, bytes, took)

		before := logBytes(t, source)
		testdb.Exec(t, source, "UPDATE loads.load1 SET pad = 'a'; UPDATE loads.load2 SET pad = 'b'; UPDATE loads.bare SET p = REPEAT('y', 290) WHERE a <= 200")
		written := float64(logBytes(t, source) - before)
		p = m.RequireResume("--json", "--set", "throttle.max_bytes_per_second=512KiB")
		took = seconds(t, p, state.PhaseCatchUp)
		if written < rate || took < written/(2*rate)-0.5 {
			t.Errorf("%.0f bytes of the log in %.1f s", written, took)
		}
		t.Logf("%s: catch-up: %.0f bytes of the log in %.2f s", kind, written, took)
		testdb.RequireEqual(t, source, target, []string{"loads"})
		m.RequireClean()
	}, families...)
}

// wipeTables drops what a run has left on the target.
func wipeTables(t *testing.T, target *servers.Server) {
	t.Helper()
	testdb.Exec(t, target, "DROP DATABASE IF EXISTS loads; DROP DATABASE IF EXISTS _copydb")
}

// logBytes sums the sizes of a server's binary logs.
func logBytes(t *testing.T, srv *servers.Server) int {
	t.Helper()
	rows, err := srv.DB().QueryContext(t.Context(), "SHOW BINARY LOGS")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		t.Fatal(err)
	}
	sum := 0
	for rows.Next() {
		var name, rest string
		var size int
		into := []any{&name, &size, &rest}
		if err := rows.Scan(into[:len(columns)]...); err != nil {
			t.Fatal(err)
		}
		sum += size
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return sum
}

// While the source runs more threads than throttle.source_max_threads_running, no
// chunk is begun and the log is not read on; our own sessions do not count.
func TestThrottleThreadsRunning(t *testing.T) {
	onKinds(t, func(t *testing.T, kind servers.Kind) {
		source, target := sharedPair(t, kind)
		testdb.CreateLoadTables(t, source, "loads", 2, 2000)
		idle, err := strconv.Atoi(statusOf(t, source, "Threads_running"))
		if err != nil {
			t.Fatal(err)
		}
		// Room for others that are at work for a moment.
		most := idle + 2
		m := harness.New(t, source, target, harness.Config{Include: []string{"loads.*"},
			Extra: []string{fmt.Sprintf("throttle: {source_max_threads_running: %d}", most), "snapshot: {threads: 4, chunk_size: 16KiB}", "retry_timeout: 1s"}})
		busy := sleepers(t, source, most+3)
		p := m.Start("--json", "--progress-interval", "200ms")
		throttledFor(p, "the source runs ")
		rows := func() int { return count(t, target, "loads.load1") + count(t, target, "loads.load2") }
		standsStill(p, "the source runs ", "the number of rows", rows)
		if n := rows(); n != 0 {
			t.Errorf("%d rows were copied while the source was busy from the begin", n)
		}
		stopRun(t, p, syscall.SIGINT, 130)
		requireReleased(t, source, "loads")
		p = m.StartResume("--json", "--progress-interval", "200ms")
		throttledFor(p, "the source runs ")
		busy()
		p.RequireExit(harness.RunTimeout, 0)
		testdb.RequireEqual(t, source, target, []string{"loads"})
		wantOnce(t, p, "the run pauses", "the run goes on")

		busy = sleepers(t, source, most+3)
		testdb.Exec(t, source, "INSERT INTO loads.load1 (pad) VALUES ('late')")
		p = m.StartResume("--json", "--progress-interval", "200ms")
		throttledFor(p, "the source runs ")
		late := func() int { return count(t, target, "loads.load1 WHERE pad = 'late'") }
		standsStill(p, "the source runs ", "the number of late rows", late)
		if late() != 0 {
			t.Error("the log was read on while the source was busy")
		}
		busy()
		p.RequireExit(harness.RunTimeout, 0)
		testdb.RequireEqual(t, source, target, []string{"loads"})
		m.RequireClean()
	}, families...)
}

// wantOnce fails the test unless each text is on stderr once.
func wantOnce(t *testing.T, p *harness.Process, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if n := strings.Count(p.Stderr(), text); n != 1 {
			t.Errorf("stderr has %q %d times:\n%s", text, n, p.Stderr())
		}
	}
}

func statusOf(t *testing.T, srv *servers.Server, name string) string {
	t.Helper()
	var n, v string
	if err := srv.DB().QueryRowContext(t.Context(), "SHOW GLOBAL STATUS LIKE '"+name+"'").Scan(&n, &v); err != nil {
		t.Fatal(err)
	}
	return v
}

// count is the number of rows of a table with an optional condition; 0 where
// there is none.
func count(t *testing.T, srv *servers.Server, what string) int {
	t.Helper()
	var n int
	_ = srv.DB().QueryRowContext(t.Context(), "SELECT COUNT(*) FROM "+what).Scan(&n) // the table may not be there yet
	return n
}

// sleepers keep that many threads of a server running until the function is
// called that it returns.
func sleepers(t *testing.T, srv *servers.Server, n int) (stop func()) {
	t.Helper()
	db := srv.Open()
	t.Cleanup(func() { db.Close() })
	for range n {
		go func() { _, _ = db.Exec("DO SLEEP(600)") }() // ends with KILL
	}
	running := "SELECT id FROM information_schema.processlist WHERE info = 'DO SLEEP(600)'"
	eventually(t, "the sleepers run", time.Minute, func() bool { return len(names(t, srv, running)) == n })
	return func() {
		t.Helper()
		for _, id := range names(t, srv, running) {
			testdb.Exec(t, srv, "KILL "+id)
		}
	}
}
