package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/copydb/copydb/copydb"
)

// tablesShown is how many tables the final report lists one by one.
const tablesShown = 20

// summaryText is the final report. A brief one leaves the tables out.
func summaryText(s copydb.SummaryRecord, brief bool) string {
	var b strings.Builder
	if !brief && len(s.Tables) > 0 {
		b.WriteString("\n" + tablesText(s))
	}
	if !brief && len(s.Phases) > 0 {
		b.WriteString("\n" + phasesText(s.Phases))
	}
	if b.Len() > 0 {
		b.WriteString("\n")
	}
	for _, line := range outcome(s) {
		b.WriteString(line + "\n")
	}
	return b.String()
}

func tablesText(s copydb.SummaryRecord) string {
	shown := s.Tables
	if len(shown) > tablesShown {
		shown = slices.Clone(shown)
		slices.SortStableFunc(shown, func(a, b copydb.TableRecord) int { return int(min(max(b.Bytes-a.Bytes, -1), 1)) })
		shown = shown[:tablesShown]
	}
	rows := [][]string{{"TABLE", "ROWS", "SIZE", "TIME", "STATUS"}}
	for _, t := range shown {
		rows = append(rows, []string{t.Database + "." + t.Table, count(t.Rows), size(t.Bytes), span(t.Seconds), string(t.Status)})
	}
	var all copydb.TableRecord
	for _, t := range s.Tables {
		all.Rows += t.Rows
		all.Bytes += t.Bytes
	}
	total := plural(int64(len(s.Tables)), "table")
	if len(s.Tables) > len(shown) {
		total = fmt.Sprintf("all %s (the %d largest are listed)", total, len(shown))
	}
	rows = append(rows, []string{total, count(all.Rows), size(all.Bytes)})
	return grid(rows, 1, 2, 3)
}

func phasesText(phases []copydb.PhaseTotal) string {
	rows := [][]string{{"PHASE", "TIME", "ROWS", "SIZE"}}
	for _, p := range phases {
		rows = append(rows, []string{string(p.Phase), span(p.Seconds), count(p.Rows), size(p.Bytes)})
	}
	return grid(rows, 1, 2, 3)
}

// outcome are the last lines: what is true now.
func outcome(s copydb.SummaryRecord) []string {
	var lines []string
	if s.ExitCode == copydb.ExitOK && s.StopPoint != nil {
		lines = append(lines, stopPointLine(s))
	}
	for _, what := range s.LeftOut {
		lines = append(lines, "Not copied: "+what)
	}
	if s.SourceClean == "false" {
		lines = append(lines, "Something of this run is left on the source; the servers' timeouts or the next resume end it.")
	}
	switch {
	case len(s.LeftBehind) > 0:
		lines = append(lines, "Left behind on the target: "+strings.Join(s.LeftBehind, ", ")+".")
	case s.ExitCode == copydb.ExitOK:
		lines = append(lines, "Left behind on the target: nothing.")
	}
	return lines
}

func stopPointLine(s copydb.SummaryRecord) string {
	line := "Target equals the source as of " + s.StopPoint.String()
	if s.StopPointAt != nil {
		line += " (" + s.StopPointAt.UTC().Format("15:04:05") + " UTC)"
	}
	line += "."
	switch {
	case s.SinceThen == 0:
		line += " Nothing has been written since."
	case s.SinceThen == 1:
		line += " 1 transaction has been written since."
	case s.SinceThen > 1:
		line += " " + count(s.SinceThen) + " transactions have been written since."
	}
	switch {
	case s.ResumeCommand == "":
	case s.SinceThen == 0:
		line += " Next: if the writes are stopped, let the application use the target; else stop them, then run: " + s.ResumeCommand
	default:
		line += " Next: stop the writes, then run: " + s.ResumeCommand
	}
	return line
}
