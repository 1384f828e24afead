package state

import (
	"math/rand/v2"
	"reflect"
	"slices"
	"strconv"
	"testing"
)

func key(values ...string) (bound []Text) {
	for _, v := range values {
		bound = append(bound, Text(v))
	}
	return bound
}

func TestMergeRanges(t *testing.T) {
	r := func(after, to []Text) Range { return Range{After: after, To: to} }
	for _, tc := range []struct {
		name     string
		in, want []Range
	}{
		{"none", nil, []Range{}},
		{"one", []Range{r(key("1"), key("2"))}, []Range{r(key("1"), key("2"))}},
		{"two neighbours", []Range{r(nil, key("1")), r(key("1"), key("2"))}, []Range{r(nil, key("2"))}},
		{"backwards", []Range{r(key("2"), nil), r(key("1"), key("2")), r(nil, key("1"))}, []Range{r(nil, nil)}},
		{"a gap", []Range{r(nil, key("1")), r(key("2"), key("3"))}, []Range{r(nil, key("1")), r(key("2"), key("3"))}},
		{"open ends do not meet", []Range{r(key("1"), nil), r(nil, key("0"))}, []Range{r(key("1"), nil), r(nil, key("0"))}},
		{"columns are kept apart", []Range{r(nil, key("a", "b")), r(key("ab", ""), nil)}, []Range{r(nil, key("a", "b")), r(key("ab", ""), nil)}},
		{"of several columns", []Range{r(nil, key("a", "b")), r(key("a", "b"), nil)}, []Range{r(nil, nil)}},
		{"repeated", []Range{r(key("1"), key("2")), r(nil, key("1")), r(key("1"), key("2"))}, []Range{r(nil, key("2"))}},
		{"one begin, two ends", []Range{r(nil, key("1")), r(key("1"), key("2")), r(key("1"), key("3"))}, []Range{r(nil, key("2")), r(key("1"), key("3"))}},
		{"a ring", []Range{r(key("1"), key("2")), r(key("2"), key("1"))}, []Range{r(key("1"), key("1"))}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			before := slices.Clone(tc.in)
			if got := MergeRanges(tc.in); !reflect.DeepEqual(got, tc.want) {
				t.Errorf("got %v, want %v", got, tc.want)
			}
			if !reflect.DeepEqual(tc.in, before) {
				t.Error("the argument was changed")
			}
		})
	}
}

// The number of ranges is the number of runs of finished chunks, in whatever
// order the chunks are finished.
func TestMergeRangesCountsGaps(t *testing.T) {
	const chunks = 200
	for range 20 {
		var done []Range
		finished := [chunks + 1]bool{}
		for _, i := range rand.Perm(chunks) {
			r := Range{To: key(strconv.Itoa(i + 1))}
			if i > 0 {
				r.After = key(strconv.Itoa(i))
			}
			done = MergeRanges(append(done, r))
			finished[i] = true
			runs := 0
			for j := range chunks {
				if finished[j] && !finished[j+1] {
					runs++
				}
			}
			if len(done) != runs {
				t.Fatalf("%d ranges for %d runs: %v", len(done), runs, done)
			}
		}
	}
}
