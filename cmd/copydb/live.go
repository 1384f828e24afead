package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/schollz/progressbar/v3"

	"github.com/copydb/copydb/copydb"
	"github.com/copydb/copydb/state"
)

// liveLines are the lines of live progress for a terminal of so many columns, at
// most six.
func liveLines(rec copydb.ProgressRecord, columns int) []string {
	lines := []string{fmt.Sprintf("%s   tables %d/%d   elapsed %s", rec.Phase, rec.TablesDone, rec.TablesTotal, span(rec.Elapsed))}
	if rec.Phase == state.PhaseSnapshot && rec.RowsTotal > 0 {
		lines = append(lines, bar(rec.Bytes, rec.BytesTotal, columns))
	}
	rows := "rows   " + count(rec.Rows)
	if rec.Phase == state.PhaseSnapshot && rec.RowsTotal > 0 {
		rows += " of about " + count(rec.RowsTotal)
	}
	lines = append(lines, fmt.Sprintf("%s   %s rows/s", rows, count(int64(rec.RowsPerSecond))),
		fmt.Sprintf("bytes  %s   %s/s", size(rec.Bytes), size(int64(rec.BytesPerSecond))))
	if rec.Transactions > 0 {
		lines = append(lines, plural(rec.Transactions, "transaction"))
	}
	if rest := outlook(rec); len(rest) > 0 {
		lines = append(lines, strings.Join(rest, "   "))
	}
	for i := range lines {
		lines[i] = cut(lines[i], columns-1)
	}
	return lines
}

// bar draws how much of an estimated total is done. The estimate may be too
// low: what is not finished never shows as whole.
func bar(done, total int64, columns int) string {
	const besideTheBar = 10 // the percentage and the frame
	total = max(total, done+1)
	b := progressbar.NewOptions64(total,
		progressbar.OptionSetWriter(io.Discard),
		progressbar.OptionSetWidth(min(max(columns-besideTheBar, 10), 60)),
		progressbar.OptionUseANSICodes(true),
		progressbar.OptionShowCount(),
		progressbar.OptionSetPredictTime(false),
		progressbar.OptionSetElapsedTime(false),
		progressbar.OptionSetTheme(progressbar.Theme{Saucer: "=", SaucerHead: ">", SaucerPadding: " ", BarStart: "[", BarEnd: "]"}),
	)
	if err := b.Set64(done); err != nil {
		return ""
	}
	// What follows the bar's end is a count that other lines give already.
	text := strings.Trim(b.String(), "\r\n ")
	if i := strings.LastIndexByte(text, ']'); i >= 0 {
		text = text[:i+1]
	}
	return text
}
