package main

import (
	"context"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/copydb/copydb/copydb"
	"github.com/copydb/copydb/internal/check"
	"github.com/copydb/copydb/state"
)

var stopPointAt = time.Date(2026, 1, 2, 14, 20, 3, 0, time.UTC)

// everything is one record of each kind.
func everything() []copydb.Record {
	pos := state.Position{File: "binlog.000123", Pos: 4567}
	return []copydb.Record{
		copydb.RunRecord{MigrationID: "m1", RunID: "r1", StatePath: "s.json"},
		copydb.FindingRecord{Finding: check.Finding{ID: "log_expiry", Severity: check.SeverityWarning, Object: "source", Message: "logs live one hour", Fix: "SET GLOBAL x"}},
		copydb.PlanRecord{Tables: []copydb.PlanTable{{Database: "shop", Table: "orders", Rows: 10000, Bytes: 1 << 20, Key: []string{"id"}, Class: state.ClassConverging}}, LoadMethod: "load_data", LeftOut: []string{"3 views"}},
		copydb.PhaseRecord{Phase: state.PhaseSnapshot},
		copydb.ProgressRecord{Phase: state.PhaseSnapshot, TablesTotal: 8, ETASeconds: -1, LagSeconds: -1},
		copydb.ProgressRecord{Phase: state.PhaseSnapshot, TablesTotal: 8, ETASeconds: -1, LagSeconds: -1}, // the first is too early for a report
		copydb.TableRecord{Database: "shop", Table: "orders", Rows: 10000, Bytes: 1 << 20, Seconds: 2.1, Status: state.TableCopied},
		copydb.WarningRecord{Message: "a warning"},
		copydb.CheckpointRecord{LastStreamed: pos, LastResumable: pos},
		copydb.SummaryRecord{Phase: state.PhaseDone, Rows: 10000, Bytes: 1 << 20, StopPoint: &pos, StopPointAt: &stopPointAt, SinceThen: 1204, SourceClean: "true",
			LeftBehind: []string{"_copydb"}, ResumeCommand: "copydb --config c --resume-state s.json",
			Phases: []copydb.PhaseTotal{{Phase: state.PhaseSnapshot, Seconds: 80, Rows: 10000, Bytes: 1 << 20}},
			Tables: []copydb.TableRecord{{Database: "shop", Table: "orders", Rows: 10000, Bytes: 1 << 20, Seconds: 2.1, Status: state.TableIndexed}}},
	}
}

func reportAll(_ context.Context, opt copydb.Options) error {
	for _, rec := range everything() {
		opt.Reporter.Report(rec)
	}
	return nil
}

func TestTextReport(t *testing.T) {
	got := caller{work: work{run: reportAll}}.call(t, small()...)
	wantOut := `
TABLE         ROWS     SIZE  TIME  STATUS
shop.orders  10,000  1.0 MiB  2.1s  indexed
1 table      10,000  1.0 MiB

PHASE      TIME    ROWS     SIZE
snapshot  1m20s  10,000  1.0 MiB

Target equals the source as of binlog.000123:4567 (14:20:03 UTC). 1,204 transactions have been written since. Next: stop the writes, then run: copydb --config c --resume-state s.json
Left behind on the target: _copydb.
`
	wantOut = strings.Replace(wantOut, "TABLE         ROWS     SIZE  TIME  STATUS", "TABLE          ROWS     SIZE  TIME  STATUS", 1)
	if d := cmp.Diff(wantOut, got.out); d != "" {
		t.Error(d)
	}
	wantErr := `migration m1 begun, run r1, state in s.json
warning: source: logs live one hour [log_expiry]
    fix: SET GLOBAL x
plan: 1 table, about 10,000 rows and 1.0 MiB, written by load_data
warning: not copied: 3 views
phase: snapshot
table shop.orders: copied, 10,000 rows, 1.0 MiB, 2.1s
warning: a warning
`
	if d := cmp.Diff(wantErr, got.stderr); d != "" {
		t.Error(d)
	}
	quiet := caller{work: work{run: reportAll}}.call(t, small("--quiet")...)
	if strings.Contains(quiet.stderr, "phase:") || !strings.Contains(quiet.stderr, "a warning") || strings.Contains(quiet.out, "TABLE") || !strings.Contains(quiet.out, "Target equals") {
		t.Errorf("--quiet: %s%s", quiet.out, quiet.stderr)
	}
}

func TestJSONReport(t *testing.T) {
	fail := func(ctx context.Context, opt copydb.Options) error {
		_ = reportAll(ctx, opt)
		return &copydb.Error{Code: 7, Where: "here", Message: "m", Next: "n"}
	}
	got := caller{work: work{run: fail}}.call(t, small("--json", "--log-format", "json", "--progress-interval", "1ns")...)
	var kinds []string
	for line := range strings.Lines(got.out) {
		var rec map[string]any
		if err := json.Unmarshal([]byte(line), &rec); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		kinds = append(kinds, rec["type"].(string))
		at, err := time.Parse(time.RFC3339, rec["time"].(string))
		if err != nil || at.Location() != time.UTC || rec["schema_version"] != 1.0 || rec["migration_id"] != "m1" || rec["run_id"] != "r1" {
			t.Errorf("head of %s (%v)", line, err)
		}
		if strings.Count(line, `"migration_id"`) != 1 || strings.Contains(line, "left_out\":null") {
			t.Errorf("line %s", line)
		}
	}
	want := []string{"run", "finding", "plan", "phase", "progress", "table", "warning", "checkpoint", "summary", "exit_error"}
	if d := cmp.Diff(want, kinds); d != "" || got.code != 7 {
		t.Errorf("exit %d\n%s", got.code, d)
	}
	for line := range strings.Lines(got.stderr) {
		if !json.Valid([]byte(line)) {
			t.Errorf("stderr is not JSON: %s", line)
		}
	}
}

func TestProgressIsThinned(t *testing.T) {
	report := func(_ context.Context, opt copydb.Options) error {
		for range 50 {
			opt.Reporter.Report(copydb.ProgressRecord{Phase: state.PhaseSnapshot, ETASeconds: 3, LagSeconds: -1})
		}
		opt.Reporter.Report(copydb.ProgressRecord{Phase: state.PhaseCatchUp, ETASeconds: -1, LagSeconds: 2.5, Transactions: 1, DistanceBytes: 2048, ThrottleReason: "replica"})
		return nil
	}
	got := caller{work: work{run: report}}.call(t, small("--progress-interval", "1h")...)
	want := "catch_up: 0 of 0 tables, 0 rows, 0 B, 1 transaction, 0 rows/s, 0 B/s, lag 2.5s, 2.0 KiB behind, throttled: replica\n"
	if got.stderr != want {
		t.Errorf("got  %qwant %q", got.stderr, want)
	}
	if got.opt.ProgressInterval != time.Second {
		t.Errorf("interval of the run: %s", got.opt.ProgressInterval)
	}
}

func TestOnlyTheLargestTablesAreListed(t *testing.T) {
	var s copydb.SummaryRecord
	for i := range 50 {
		s.Tables = append(s.Tables, copydb.TableRecord{Database: "d", Table: fmt.Sprintf("t%02d", i), Rows: 1, Bytes: int64(i)})
	}
	text := tablesText(s)
	if strings.Count(text, "\n") != tablesShown+2 || !strings.Contains(text, "d.t49") || strings.Contains(text, "d.t29") || !strings.Contains(text, "all 50 tables (the 20 largest are listed)    50") {
		t.Error(text)
	}
}

func TestStopPointLine(t *testing.T) {
	s := copydb.SummaryRecord{StopPoint: &state.Position{GTIDSet: "a:1-5"}}
	for n, want := range map[int64]string{
		-1: "Target equals the source as of a:1-5.",
		0:  "Target equals the source as of a:1-5. Nothing has been written since.",
		1:  "Target equals the source as of a:1-5. 1 transaction has been written since.",
	} {
		if s.SinceThen = n; stopPointLine(s) != want {
			t.Errorf("%d: %s", n, stopPointLine(s))
		}
	}
	if lines := outcome(copydb.SummaryRecord{SourceClean: "false"}); len(lines) != 2 || lines[1] != "Left behind on the target: nothing." {
		t.Errorf("%q", lines)
	}
	if lines := outcome(copydb.SummaryRecord{ExitCode: 7}); len(lines) != 0 {
		t.Errorf("a run that failed knows nothing of what is left: %q", lines)
	}
}

func TestLiveLines(t *testing.T) {
	rec := copydb.ProgressRecord{Phase: state.PhaseSnapshot, TablesDone: 3, TablesTotal: 8, Rows: 5, RowsTotal: 10, Bytes: 500, BytesTotal: 1000, Transactions: 2,
		ETASeconds: 80, LagSeconds: 1, DistanceBytes: 5, ThrottleReason: "r", Elapsed: 62}
	lines := liveLines(rec, 60)
	if len(lines) > 6 || !strings.Contains(lines[1], "50% [====") || !strings.HasSuffix(lines[1], "]") {
		t.Errorf("%q", lines)
	}
	for _, l := range liveLines(rec, 20) {
		if n := len([]rune(l)); n > 19 {
			t.Errorf("%d columns: %q", n, l)
		}
	}
	rec.Bytes = 5000 // more than the estimate
	if l := liveLines(rec, 60)[1]; !strings.Contains(l, "99%") {
		t.Errorf("%q", l)
	}
	rec.Bytes = 0
	if l := liveLines(rec, 60)[1]; !strings.Contains(l, "0% [") {
		t.Errorf("%q", l)
	}
}

func TestLogLinesDoNotTearLiveLines(t *testing.T) {
	var b syncBuffer
	c := newConsole(&b, &b)
	c.show([]string{"one", "two"})
	fmt.Fprintln(c, "log")
	fmt.Fprintln(c.stdout(), "data")
	c.show([]string{"three"})
	c.endLive()
	c.show([]string{"too late"})
	fmt.Fprintln(c, "end")
	const up2, up1 = "\r\x1b[2A\x1b[J", "\r\x1b[1A\x1b[J"
	want := "one\ntwo\n" + up2 + "log\none\ntwo\n" + up2 + "data\none\ntwo\n" + up2 + "three\n" + up1 + "end\n"
	if d := cmp.Diff(want, b.String()); d != "" {
		t.Error(d)
	}
}

func TestFormat(t *testing.T) {
	got := []string{count(0), count(999), count(1204), count(-1234567), size(0), size(1023), size(1 << 20), size(1 << 62), span(0), span(59.94), span(80), span(3 * 3600), cut("abc", 2)}
	want := []string{"0", "999", "1,204", "-1,234,567", "0 B", "1023 B", "1.0 MiB", "4.0 EiB", "0.0s", "59.9s", "1m20s", "3h0m", "a…"}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func TestCheck(t *testing.T) {
	findings := []check.Finding{
		{ID: "row_format", Severity: check.SeverityWarning, Object: "shop.t", Message: "w"},
		{ID: "log_bin", Severity: check.SeverityError, Object: "source", Message: "the binary log is off", Fix: "log_bin = 1\nrestart"},
	}
	c := caller{work: work{check: func(_ context.Context, opt copydb.Options) (*copydb.CheckResult, error) {
		if opt.Start != copydb.StartResume || opt.StatePath != "s" {
			t.Errorf("%+v", opt.Start)
		}
		return &copydb.CheckResult{Findings: findings, SourceGrants: []string{"GRANT a"}, TargetGrants: []string{"GRANT b;"}}, nil
	}}}
	junit := filepath.Join(t.TempDir(), "j.xml")
	args := append([]string{"check"}, small("--resume-state", "s", "--print-grants")...)
	got := c.call(t, append(args, "--junit", junit)...)
	want := `Errors:
  source: the binary log is off [log_bin]
    fix: log_bin = 1
         restart
Warnings:
  shop.t: w [row_format]
1 error, 1 warning. A run would be refused.

-- on the source
GRANT a;

-- on the target
GRANT b;
`
	if d := cmp.Diff(want, got.out); d != "" || got.code != copydb.ExitPreflight {
		t.Errorf("exit %d, stderr %q\n%s", got.code, got.stderr, d)
	}
	text, err := os.ReadFile(junit)
	if err != nil {
		t.Fatal(err)
	}
	var suite junitSuite
	if err := xml.Unmarshal(text, &suite); err != nil || suite.Tests != 2 || suite.Failures != 1 || suite.Cases[1].Failure.Text != findings[1].Fix {
		t.Errorf("%v\n%s", err, text)
	}
	if got = c.call(t, append(args, "--json")...); strings.Count(got.out, "\n") != 3 || !strings.Contains(got.out, `"type":"grants"`) {
		t.Errorf("--json: %s", got.out)
	}
	findings = findings[:1]
	if got = c.call(t, args...); got.code != 0 {
		t.Errorf("exit %d with a warning alone", got.code)
	}
}

func TestCheckThatCannotRun(t *testing.T) {
	c := caller{work: work{check: func(context.Context, copydb.Options) (*copydb.CheckResult, error) {
		return nil, &copydb.Error{Code: copydb.ExitPreflight, Where: "source", Message: "cannot connect"}
	}}}
	junit := filepath.Join(t.TempDir(), "j.xml")
	got := c.call(t, append([]string{"check", "--junit", junit}, small()...)...)
	text, _ := os.ReadFile(junit)
	if got.code != copydb.ExitPreflight || !strings.Contains(got.stderr, "error: cannot connect\n  where:  source") || !strings.Contains(string(text), "<error message=") {
		t.Errorf("exit %d: %s%s\n%s", got.code, got.out, got.stderr, text)
	}
}

func TestCleanup(t *testing.T) {
	var at string
	c := caller{work: work{cleanup: func(_ context.Context, opt copydb.Options) error { at = opt.StatePath; return nil }}}
	got := c.call(t, append([]string{"cleanup", "--state", "s.json"}, small()...)...)
	if got.code != 0 || at != "s.json" || !strings.Contains(got.out, "holds nothing of the migration of s.json") {
		t.Errorf("exit %d, state %q: %s%s", got.code, at, got.out, got.stderr)
	}
}

func TestStatus(t *testing.T) {
	samples, err := filepath.Glob(filepath.Join("..", "..", "state", "testdata", "*.json"))
	if err != nil || len(samples) == 0 {
		t.Fatalf("no sample of a state file: %v", err)
	}
	got := caller{}.call(t, "status", "--state", samples[0])
	for _, want := range []string{"migration", "phase", "last resumable"} {
		if got.code != 0 || !strings.Contains(got.out, want) {
			t.Errorf("exit %d: %s%s", got.code, got.out, got.stderr)
		}
	}
	var rec map[string]any
	got = caller{}.call(t, "status", "--json", "--state", samples[0])
	if err := json.Unmarshal([]byte(got.out), &rec); err != nil || rec["type"] != "status" || rec["migration_id"] == "" {
		t.Errorf("%v: %s", err, got.out)
	}
	for name, text := range map[string]string{"missing": "", "broken": "{"} {
		path := filepath.Join(t.TempDir(), name)
		if text != "" {
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if got := (caller{}).call(t, "status", "--state", path); got.code != copydb.ExitState || got.out != "" || !strings.HasPrefix(got.stderr, "error: state file "+path) {
			t.Errorf("%s: exit %d: %s", name, got.code, got.stderr)
		}
	}
}
