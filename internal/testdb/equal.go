package testdb

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/copydb/copydb/test/servers"
	"github.com/google/go-cmp/cmp"
	"golang.org/x/sync/errgroup"
)

const (
	maxDiffTables = 5     // tables whose rows a failure shows
	maxDiffRows   = 10    // rows of each
	maxRowsToDiff = 300e3 // rows that are worth fetching from each side
)

// RequireEqual fails the test unless both servers hold the same databases: the
// same base tables with the same rows by value (see Digest) and the same
// SHOW CREATE TABLE but for AUTO_INCREMENT, and the same default character
// sets. Tables excluded are named "database.table". The failure shows the
// difference of the structures and, for some tables, the rows that only one
// side has.
func RequireEqual(t testing.TB, source, target *servers.Server, databases []string, excludeTables ...string) {
	t.Helper()
	if diff := Diff(t, source, target, databases, excludeTables...); diff != "" {
		t.Fatalf("source and target differ (- source, + target):\n%s", diff)
	}
}

// Diff is RequireEqual that returns the difference, empty if there is none.
func Diff(t testing.TB, source, target *servers.Server, databases []string, excludeTables ...string) string {
	t.Helper()
	var digests, texts [2]map[string]string
	var group errgroup.Group
	for i, srv := range []*servers.Server{source, target} {
		group.Go(func() (err error) {
			if digests[i], err = digest(t.Context(), srv, databases); err != nil {
				return err
			}
			texts[i], err = creates(t.Context(), srv, databases)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatalf("compare: %v", err)
	}
	for i := range digests {
		for _, name := range excludeTables {
			delete(digests[i], name)
			delete(texts[i], name)
		}
	}
	if len(texts[0]) == 0 {
		t.Fatalf("compare: the source has none of the databases %q", databases)
	}
	diff := cmp.Diff(texts[0], texts[1])
	if rows := cmp.Diff(digests[0], digests[1]); rows != "" {
		diff += rows + differingRows(t, source, target, databases, digests)
	}
	return diff
}

// differingRows shows rows of tables that both sides have.
func differingRows(t testing.TB, source, target *servers.Server, databases []string, digests [2]map[string]string) string {
	var b strings.Builder
	shown := 0
	for _, name := range sortedKeys(digests[0]) {
		other, both := digests[1][name]
		if !both || other == digests[0][name] {
			continue
		}
		if shown++; shown > maxDiffTables {
			b.WriteString("and more tables\n")
			break
		}
		fmt.Fprintf(&b, "%s\n", name)
		left, err := rowTexts(t.Context(), source, databases, name)
		if err != nil {
			fmt.Fprintf(&b, "  source: %v\n", err)
			continue
		}
		right, err := rowTexts(t.Context(), target, databases, name)
		if err != nil {
			fmt.Fprintf(&b, "  target: %v\n", err)
			continue
		}
		showRows(&b, left, right)
	}
	return b.String()
}

func showRows(b *strings.Builder, left, right map[string]int) {
	shown := 0
	show := func(sign string, mine, others map[string]int) {
		for _, row := range sortedKeys(mine) {
			if n := mine[row] - others[row]; n > 0 && shown < 2*maxDiffRows {
				shown++
				fmt.Fprintf(b, "  %s %d × %s\n", sign, n, row)
			}
		}
	}
	show("-", left, right)
	shown = min(shown, maxDiffRows)
	show("+", right, left)
}

// rowTexts returns how often each row is there, as text: first the key, then
// the values, cut, then a piece of the hash of the whole.
func rowTexts(ctx context.Context, srv *servers.Server, databases []string, name string) (map[string]int, error) {
	conn, err := pin(ctx, srv)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	all, err := tables(ctx, conn, databases)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(all, func(t *table) bool { return t.String() == name })
	if i < 0 {
		return nil, fmt.Errorf("table is gone")
	}
	rows, err := column(ctx, conn, fmt.Sprintf("SELECT %s FROM %s LIMIT %d", rowText(all[i]), all[i].quoted(), int(maxRowsToDiff)))
	if err != nil {
		return nil, err
	}
	counts := map[string]int{}
	for _, r := range rows {
		counts[r]++
	}
	return counts, nil
}

func rowText(t *table) string {
	var key, values []string
	for _, c := range t.columns {
		text := "COALESCE(LEFT(" + c.readable() + ", 40), 'NULL')"
		if slices.Contains(t.key, c.name) {
			key = append(key, text)
		} else {
			values = append(values, text)
		}
	}
	return "CONCAT('key (', CONCAT_WS(', ', NULL" + join(key) + "), ') values (', LEFT(CONCAT_WS(', ', NULL" + join(values) +
		"), 400), ') hash ', LEFT(" + rowHash(t) + ", 8))"
}

func join(expressions []string) string {
	var b strings.Builder
	for _, e := range expressions {
		b.WriteString(", " + e)
	}
	return b.String()
}

// readable is like value but made for people: text in UTF-8 instead of bytes.
func (c columnInfo) readable() string {
	switch c.dataType {
	case "char", "varchar", "tinytext", "text", "mediumtext", "longtext", "enum", "set":
		return "QUOTE(CONVERT(LEFT(" + quote(c.name) + ", 30) USING utf8mb4))"
	case "tinyblob", "blob", "mediumblob", "longblob":
		return "HEX(LEFT(" + quote(c.name) + ", 16))"
	case "json":
		return "CONVERT(" + quote(c.name) + " USING utf8mb4)"
	default:
		return "CONVERT(" + c.value() + " USING utf8mb4)"
	}
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
