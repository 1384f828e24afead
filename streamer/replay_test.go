package streamer

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// replay applies changes of tables with one number for a key, and returns
// "table keys" of each.
func replay(all []*Transaction) map[string]bool {
	rows := map[string]map[int]bool{}
	for _, tx := range all {
		for _, c := range tx.Changes {
			if rows[c.Table.Table] == nil {
				rows[c.Table.Table] = map[int]bool{}
			}
			if c.Before != nil {
				n, _ := strconv.Atoi(string(c.Before[0]))
				delete(rows[c.Table.Table], n)
			}
			if c.After != nil {
				n, _ := strconv.Atoi(string(c.After[0]))
				rows[c.Table.Table][n] = true
			}
		}
	}
	out := map[string]bool{}
	for name, keys := range rows {
		var sorted []int
		for k := range keys {
			sorted = append(sorted, k)
		}
		slices.Sort(sorted)
		out[name+" "+strings.Trim(strings.ReplaceAll(fmt.Sprint(sorted), " ", ","), "[]")] = true
	}
	return out
}
