package copydb

import (
	"regexp"
	"strconv"
	"strings"

	"github.com/copydb/copydb/internal/position"
)

var ownerMark = regexp.MustCompile(`#\d+`)

// ownedAsSet turns gtid_owned, which names the thread behind each GTID
// ("uuid:7#12:8#13"), into a GTID set.
func ownedAsSet(s string) string { return ownerMark.ReplaceAllString(position.OneLine(s), "") }

// countGTIDs counts the transactions in a MySQL GTID set.
func countGTIDs(set string) int64 {
	var n int64
	for _, part := range strings.Split(position.OneLine(set), ",") {
		for _, iv := range strings.Split(part, ":")[1:] {
			from, to, isRange := strings.Cut(strings.TrimSpace(iv), "-")
			a, err := strconv.ParseInt(from, 10, 64)
			if err != nil {
				continue // a tag
			}
			b := a
			if isRange {
				if b, err = strconv.ParseInt(to, 10, 64); err != nil {
					continue
				}
			}
			n += b - a + 1
		}
	}
	return n
}
