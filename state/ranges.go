package state

import (
	"slices"
	"strconv"
	"strings"
)

// MergeRanges returns ranges with neighbours joined, where one's To is the
// other's After, in the order in which the lowest part of each was given, and
// without repetitions. It compares bounds for equality only, since their order
// is the source's business, so overlapping ranges stay apart. The argument is
// left as it is; the bounds are shared.
func MergeRanges(ranges []Range) []Range {
	ranges = dropRepeated(slices.Clone(ranges))
	byAfter, hasLower := neighbours(ranges)
	used := make([]bool, len(ranges))
	out := make([]Range, 0, len(ranges))
	follow := func(head int) {
		r := ranges[head]
		used[head] = true
		for len(r.To) > 0 {
			next, ok := firstUnused(byAfter[boundKey(r.To)], used)
			if !ok {
				break
			}
			used[next] = true
			r.To = ranges[next].To
		}
		out = append(out, r)
	}
	for i := range ranges {
		if !hasLower[i] {
			follow(i)
		}
	}
	// What is left has a lower neighbour that another range has joined instead,
	// or is part of a ring; kept as it is, nothing is lost.
	for i := range ranges {
		if !used[i] {
			follow(i)
		}
	}
	return out
}

// neighbours returns the ranges that begin at a bound, and which ranges have one that
// ends where they begin. An open end is nobody's neighbour.
func neighbours(ranges []Range) (byAfter map[string][]int, hasLower []bool) {
	byAfter = make(map[string][]int, len(ranges))
	ends := make(map[string]bool, len(ranges))
	for i, r := range ranges {
		if len(r.After) > 0 {
			key := boundKey(r.After)
			byAfter[key] = append(byAfter[key], i)
		}
		if len(r.To) > 0 {
			ends[boundKey(r.To)] = true
		}
	}
	hasLower = make([]bool, len(ranges))
	for i, r := range ranges {
		hasLower[i] = len(r.After) > 0 && ends[boundKey(r.After)]
	}
	return byAfter, hasLower
}

func firstUnused(candidates []int, used []bool) (int, bool) {
	for _, c := range candidates {
		if !used[c] {
			return c, true
		}
	}
	return 0, false
}

func dropRepeated(ranges []Range) []Range {
	seen := make(map[string]bool, len(ranges))
	return slices.DeleteFunc(ranges, func(r Range) bool {
		key := boundKey(r.After) + "|" + boundKey(r.To)
		was := seen[key]
		seen[key] = true
		return was
	})
}

// boundKey makes a bound comparable; lengths keep ("a","b") and ("ab","") apart.
func boundKey(bound []Text) string {
	var b strings.Builder
	for _, t := range bound {
		b.WriteString(strconv.Itoa(len(t)))
		b.WriteByte(':')
		b.WriteString(string(t))
	}
	return b.String()
}
