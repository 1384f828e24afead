package blackbox

import (
	"testing"
	"time"

	"github.com/copydb/copydb/internal/testdb"
	"github.com/copydb/copydb/test/harness"
	"github.com/copydb/copydb/test/servers"
)

// What is left is told by keys and bytes: neither keys in two far clusters nor
// tables of very different rows lead far astray.
func TestOutlookOfSkewedTables(t *testing.T) {
	onKinds(t, func(t *testing.T, kind servers.Kind) {
		source, target := testdb.Pair(t, kind, testdb.WithBinlogSize(servers.LoadBinlog), testdb.WithFast())
		createSequence(t, source, "skew", 40_000)
		testdb.Exec(t, source, `UPDATE skew.t SET id = id + 9000000000000000000 WHERE id > 10000; ANALYZE TABLE skew.t;
			CREATE TABLE skew.wide (id INT PRIMARY KEY, b LONGBLOB NOT NULL);
			INSERT INTO skew.wide SELECT id, REPEAT('x', 100000) FROM skew.t WHERE id <= 200; ANALYZE TABLE skew.wide`)
		const wide, hold = 200 * 100_000, "chunk_written:skew.t"
		m := harness.New(t, source, target, harness.Config{Include: []string{"skew.*"}, Build: harness.HoldPoints,
			Env: []string{harness.ChunkRows(1000)}, Extra: []string{"snapshot: {threads: 1}"}})
		m.HoldAt(hold, 15) // of 40 chunks, behind those of the wide rows
		p := m.Start("--json", "--progress-interval", "100ms")
		m.WaitReached(p, hold)
		seen := len(p.Records())
		p.WaitFor("a report while the copy is held", time.Minute, func() bool { return len(p.Records()) > seen+1 })
		rec := p.Last("progress")
		rows, bytes := rec.Number("rows_total_estimate"), rec.Number("bytes_total_estimate")
		t.Logf("%.0f rows of about %.0f, %.0f bytes of about %.0f, ETA %.1f s", rec.Number("rows"), rows, rec.Number("bytes"), bytes, rec.Number("eta_seconds"))
		if rows < 30_000 || rows > 60_000 {
			t.Errorf("%.0f rows are expected in all, 40200 is right", rows)
		}
		if bytes < wide || bytes > wide*1.3 {
			t.Errorf("%.0f bytes are expected in all, about %d is right", bytes, wide)
		}
		m.Release(hold)
		p.RequireExit(harness.RunTimeout, 0)
	})
}
