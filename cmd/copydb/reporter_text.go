package main

import (
	"fmt"
	"log/slog"
	"strings"

	"github.com/copydb/copydb/copydb"
	"github.com/copydb/copydb/internal/check"
	"github.com/copydb/copydb/state"
)

// textReporter tells a person how the run goes, on stderr. The plan of a dry run
// and the summary are results, and go to stdout.
type textReporter struct {
	voice  *voice
	stdout func(string)
	dryRun bool
}

// Report implements copydb.Reporter.
func (r *textReporter) Report(rec copydb.Record) {
	switch rec := rec.(type) {
	case copydb.RunRecord:
		r.voice.info(runLine(rec))
	case copydb.PhaseRecord:
		r.voice.info("phase: " + string(rec.Phase))
	case copydb.ProgressRecord:
		r.voice.info(progressLine(rec))
	case copydb.TableRecord:
		r.voice.info(tableLine(rec))
	case copydb.FindingRecord:
		r.finding(rec.Finding)
	case copydb.PlanRecord:
		r.plan(rec)
	case copydb.WarningRecord:
		r.voice.warning(rec.Message)
	case copydb.SummaryRecord:
		r.stdout(summaryText(rec, r.voice.quiet))
	}
	// A checkpoint is for programs; the exit error is the last thing said, and
	// said by who ends the run.
}

func runLine(rec copydb.RunRecord) string {
	what := "begun"
	if rec.Resumed {
		what = "resumed"
	}
	return fmt.Sprintf("migration %s %s, run %s, state in %s", rec.MigrationID, what, rec.RunID, rec.StatePath)
}

func (r *textReporter) finding(f check.Finding) {
	levels := map[check.Severity]slog.Level{check.SeverityError: slog.LevelError, check.SeverityWarning: slog.LevelWarn}
	r.voice.say(levels[f.Severity], strings.TrimRight(findingText(f, string(f.Severity)+": "), "\n"))
}

func (r *textReporter) plan(rec copydb.PlanRecord) {
	if r.dryRun {
		r.stdout(planText(rec))
		return
	}
	r.voice.info(planLine(rec))
	for _, what := range rec.LeftOut {
		r.voice.warning("not copied: " + what)
	}
}

func planLine(rec copydb.PlanRecord) string {
	var rows, bytes int64
	for _, t := range rec.Tables {
		rows += t.Rows
		bytes += t.Bytes
	}
	line := fmt.Sprintf("plan: %s, about %s and %s", plural(int64(len(rec.Tables)), "table"), plural(rows, "row"), size(bytes))
	if rec.LoadMethod != "" {
		line += ", written by " + rec.LoadMethod
	}
	if rec.LoadWhy != "" {
		line += " (" + rec.LoadWhy + ")"
	}
	return line
}

func planText(rec copydb.PlanRecord) string {
	rows := [][]string{{"TABLE", "CLASS", "KEY", "ROWS (ABOUT)", "SIZE (ABOUT)"}}
	for _, t := range rec.Tables {
		key := strings.Join(t.Key, ", ")
		if key == "" {
			key = "none"
		}
		rows = append(rows, []string{t.Database + "." + t.Table, string(t.Class), key, count(t.Rows), size(t.Bytes)})
	}
	var b strings.Builder
	b.WriteString(planLine(rec) + "\n\n" + grid(rows, 3, 4))
	if len(rec.Order) > 0 {
		b.WriteString("\nOrder:\n")
		for i, step := range rec.Order {
			fmt.Fprintf(&b, "  %d. %s\n", i+1, step)
		}
	}
	if rec.Position != "" {
		b.WriteString("\nPositions: " + rec.Position + "\n")
	}
	for _, what := range rec.LeftOut {
		b.WriteString("Not copied: " + what + "\n")
	}
	b.WriteString("\nDry run: nothing was written.\n")
	return b.String()
}

func tableLine(rec copydb.TableRecord) string {
	line := fmt.Sprintf("table %s.%s: %s", rec.Database, rec.Table, rec.Status)
	if rec.Status == state.TableCopied || rec.Rows > 0 {
		line += fmt.Sprintf(", %s, %s, %s", plural(rec.Rows, "row"), size(rec.Bytes), span(rec.Seconds))
	}
	return line
}

// progressLine says on one line where the run stands.
func progressLine(rec copydb.ProgressRecord) string {
	parts := append([]string{fmt.Sprintf("%s: %d of %s", rec.Phase, rec.TablesDone, plural(int64(rec.TablesTotal), "table"))}, amounts(rec)...)
	return strings.Join(append(parts, outlook(rec)...), ", ")
}

func amounts(rec copydb.ProgressRecord) []string {
	parts := []string{plural(rec.Rows, "row"), size(rec.Bytes)}
	if rec.Transactions > 0 {
		parts = append(parts, plural(rec.Transactions, "transaction"))
	}
	return append(parts, count(int64(rec.RowsPerSecond))+" rows/s", size(int64(rec.BytesPerSecond))+"/s")
}

func outlook(rec copydb.ProgressRecord) []string {
	var parts []string
	if rec.ETASeconds >= 0 {
		parts = append(parts, "ETA "+span(rec.ETASeconds))
	}
	if rec.LagSeconds >= 0 {
		parts = append(parts, "lag "+span(rec.LagSeconds))
	}
	if rec.DistanceBytes > 0 {
		parts = append(parts, size(rec.DistanceBytes)+" behind")
	}
	if rec.BacklogBytes > 0 {
		parts = append(parts, size(rec.BacklogBytes)+" read ahead")
	}
	if rec.ThrottleReason != "" {
		parts = append(parts, "throttled: "+rec.ThrottleReason)
	}
	return parts
}
