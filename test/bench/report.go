package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// group is what one run measured of one thing.
type group struct {
	record // the first
	ways   []string
	rounds map[string][]record
}

// groupsOf sorts measurements by what they are of. A later run of the same thing
// replaces an earlier one; trials are left out.
func groupsOf(all []record, measure string) []*group {
	var out []*group
	byKey := map[record]*group{}
	for _, r := range all {
		if r.Measure != measure || r.Round == 0 {
			continue
		}
		key := record{Server: r.Server, Binlog: r.Binlog, Data: r.Data, Load: r.Load}
		g := byKey[key]
		if g == nil {
			g = &group{}
			byKey[key], out = g, append(out, g)
		}
		if g.Run != r.Run {
			*g = group{record: r, rounds: map[string][]record{}}
		}
		if g.rounds[r.Way] == nil {
			g.ways = append(g.ways, r.Way)
		}
		g.rounds[r.Way] = append(g.rounds[r.Way], r)
	}
	return out
}

// median is the median of a figure over a way's rounds, 0 if it was not measured.
func (g *group) median(way string, figure func(record) float64) float64 {
	var all []float64
	for _, r := range g.rounds[way] {
		all = append(all, figure(r))
	}
	slices.Sort(all)
	n := len(all)
	switch {
	case n == 0:
		return 0
	case n%2 == 1:
		return all[n/2]
	}
	return (all[n/2-1] + all[n/2]) / 2
}

func seconds(r record) float64      { return r.Seconds }
func cpuSeconds(r record) float64   { return r.CPUSeconds }
func perSecond(r record) float64    { return float64(r.Transactions) / r.Seconds }
func peakMiB(r record) float64      { return float64(r.PeakBytes) / (1 << 20) }
func cpuPerGiB(r record) float64    { return r.CPUSeconds / float64(r.Bytes) * (1 << 30) }
func microsPerRow(r record) float64 { return r.Seconds / float64(r.Rows) * 1e6 }

func (g *group) seconds(way string) float64 { return g.median(way, seconds) }

// cell is a figure of a table; a dash for what was not measured.
func cell(format string, figure float64) string {
	if figure == 0 {
		return "–"
	}
	return fmt.Sprintf(format, figure)
}

func ratio(a, b float64) float64 {
	if b == 0 {
		return 0
	}
	return a / b
}

// report is all tables in Markdown.
func report(all []record) string {
	parts := []string{circumstances(all), copyTable(all), growthTable(all), catchUpTable(all), impactTable(all)}
	return strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), "\n")
}

func circumstances(all []record) string {
	var lines []string
	for _, r := range all {
		line := fmt.Sprintf("%s; %s; all servers with %s.\n", r.Machine, r.Copydb, r.Settings)
		if !slices.Contains(lines, line) {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "")
}

// markdown is a table; empty without lines.
func markdown(title string, head []string, left int, lines [][]string) string {
	if len(lines) == 0 {
		return ""
	}
	var b strings.Builder
	rule := slices.Repeat([]string{"---"}, len(head))
	for i := left; i < len(rule); i++ {
		rule[i] = "--:"
	}
	fmt.Fprintf(&b, "%s\n\n", title)
	for _, line := range append([][]string{head, rule}, lines...) {
		b.WriteString("| " + strings.Join(line, " | ") + " |\n")
	}
	return b.String()
}

func (g *group) about() []string {
	return []string{g.Server, fmt.Sprintf("%s: %d rows in %d, %.0f MB", g.Data, g.Rows, g.Tables, float64(g.Bytes)/1e6), g.Binlog}
}

// limitMargin is how much faster than mydumper + myloader the load limit must
// be, for else it is none.
const limitMargin = 1.1

func copyTable(all []record) string {
	var lines, how [][]string
	var notes strings.Builder
	for _, g := range groupsOf(all, copyMeasure) {
		dump, mydumper, limit, ours := g.seconds(dumpWay), g.seconds(mydumperWay), g.seconds(limitWay), g.seconds(ourWay)
		lines = append(lines, append(g.about(), fmt.Sprint(g.most()), cell("%.1f s", dump), cell("%.1f s", mydumper), cell("%.1f s", limit), cell("%.1f s", ours),
			cell("%.2f", ratio(ours, limit)), cell("%.2f", ratio(mydumper, ours)), cell("%.2f", ratio(dump, ours)),
			cell("%.1f", g.median(ourWay, cpuPerGiB)), cell("%.0f", g.median(ourWay, peakMiB))))
		if limit > 0 || mydumper > 0 {
			how = append(how, append(g.about(), g.variant(mydumperWay), g.variant(limitWay)))
		}
		if limit > 0 && mydumper > 0 && mydumper < limitMargin*limit {
			fmt.Fprintf(&notes, "\nThis run does not count: the load limit is only %.2f times as fast as mydumper + myloader on %s, binary log %s.\n",
				mydumper/limit, strings.Join(g.about()[:2], ", "), g.Binlog)
		}
	}
	tables := markdown("Copy, medians:", []string{"server", "data", "binary log", "rounds", dumpWay, mydumperWay, limitWay, ourWay, "copydb : limit", "mydumper : copydb", "dump : copydb",
		"copydb CPU s/GiB", "copydb peak MiB"}, 3, lines)
	if len(how) > 0 {
		tables += "\n" + markdown("The fastest variants:", []string{"server", "data", "binary log", mydumperWay, limitWay}, 5, how)
	}
	return tables + notes.String()
}

// most is the largest number of rounds.
func (g *group) most() int {
	n := 0
	for _, r := range g.rounds {
		n = max(n, len(r))
	}
	return n
}

func (g *group) variant(way string) string {
	if r := g.rounds[way]; len(r) > 0 {
		return r[0].Variant
	}
	return "–"
}

func catchUpTable(all []record) string {
	var lines [][]string
	for _, g := range groupsOf(all, catchUpMeasure) {
		for _, way := range g.ways {
			s := g.seconds(way)
			lines = append(lines, []string{g.Server, g.Load, fmt.Sprint(g.Transactions), fmt.Sprint(g.Changes), way, fmt.Sprint(len(g.rounds[way])), cell("%.1f", s),
				cell("%.0f", g.median(way, perSecond)), cell("%.2f", ratio(s, g.seconds(ourWay))), cell("%.1f", g.median(way, cpuSeconds)), cell("%.0f", g.median(way, peakMiB))})
		}
	}
	return markdown("Catch-up with a recorded write load, medians (copydb from the start of the process to its end, the replica from a relay log that is fetched):",
		[]string{"server", "load", "transactions", "row changes", "by", "rounds", "seconds", "transactions/s", "copydb is faster by", "CPU s", "peak MiB"}, 2, lines)
}

func impactTable(all []record) string {
	var lines [][]string
	for _, g := range groupsOf(all, impactMeasure) {
		alone, beside := g.median(aloneWay, perSecond), g.median(besideWay, perSecond)
		lines = append(lines, append(g.about()[:2], fmt.Sprint(g.most()), cell("%.0f", alone), cell("%.0f", beside), cell("%.0f %%", 100*ratio(beside, alone))))
	}
	return markdown("Transactions/s that the source takes, medians:", []string{"server", "data", "rounds", aloneWay, besideWay, "left"}, 2, lines)
}

// growth are the measurements of data sets named like 100x5000, by size.
func growth(all []record) []*group {
	var out []*group
	for _, g := range groupsOf(all, copyMeasure) {
		if grid.MatchString(g.Data) && g.rounds[ourWay] != nil && g.Binlog == binlogOn {
			out = append(out, g)
		}
	}
	slices.SortStableFunc(out, func(a, b *group) int {
		return cmp.Or(cmp.Compare(a.Server, b.Server), cmp.Compare(a.Tables, b.Tables), cmp.Compare(a.Rows, b.Rows))
	})
	return out
}

func growthTable(all []record) string {
	var lines [][]string
	for _, g := range growth(all) {
		lines = append(lines, []string{g.Server, fmt.Sprint(g.Tables), fmt.Sprint(g.Rows), cell("%.1f", g.seconds(limitWay)), cell("%.1f", g.seconds(ourWay)),
			cell("%.1f", g.median(ourWay, microsPerRow)), cell("%.0f", g.median(ourWay, peakMiB))})
	}
	return markdown("Growth, medians:", []string{"server", "tables", "rows", "load limit s", "copydb s", "copydb µs/row", "copydb peak MiB"}, 1, lines)
}
