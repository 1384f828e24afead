package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

func median(d []time.Duration) float64 {
	sorted := slices.Sorted(slices.Values(d))
	n := len(sorted)
	if n%2 == 1 {
		return sorted[n/2].Seconds()
	}
	return (sorted[n/2-1] + sorted[n/2]).Seconds() / 2
}

// copyTable is a table in Markdown.
func copyTable(all []result, rounds int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Copy (medians of %d)\n\n", rounds)
	b.WriteString("| server | rows | MB | mysqldump \\| mysql | copydb | ratio | copydb rows/s | copydb MB/s |\n|---|--:|--:|--:|--:|--:|--:|--:|\n")
	for _, r := range all {
		if len(r.pipe) == 0 {
			continue
		}
		pipe, ours := median(r.pipe), median(r.ours)
		mb := float64(r.bytes) / 1e6
		fmt.Fprintf(&b, "| %s | %d | %.0f | %.1f s | %.1f s | %.2f | %.0f | %.1f |\n",
			r.server, r.rows, mb, pipe, ours, ours/pipe, float64(r.rows)/ours, mb/ours)
	}
	return b.String()
}

func catchUpTable(all []result) string {
	var b strings.Builder
	b.WriteString("Catch-up with a recorded write load (copydb from the start of the process to its end, the replica from a relay log that is fetched)\n\n")
	b.WriteString("| server | transactions | row changes | by | seconds | transactions/s | copydb is faster by |\n|---|--:|--:|---|--:|--:|--:|\n")
	for _, r := range all {
		ours := median(r.catchUp["copydb"])
		for _, name := range slices.Sorted(maps.Keys(r.catchUp)) {
			s := median(r.catchUp[name])
			fmt.Fprintf(&b, "| %s | %d | %d | %s | %.1f | %.0f | %.2f |\n", r.server, r.load.transactions, r.load.changes, name, s,
				float64(r.load.transactions)/s, s/ours)
		}
	}
	return b.String()
}
