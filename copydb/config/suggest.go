package config

import (
	"slices"
	"strings"
)

// nearest returns the key or group whose path is most like path, or "".
func nearest(path string) string {
	var best string
	bestCost := len(path)/4 + 2 // beyond that it would be guessing
	for _, known := range knownPaths() {
		if cost := unlike(path, known); cost < bestCost {
			best, bestCost = known, cost
		}
	}
	return best
}

func knownPaths() []string {
	var paths []string
	for _, k := range table {
		parts := splitPath(k.Path)
		for i := range parts {
			paths = append(paths, strings.Join(parts[:i+1], "."))
		}
	}
	return paths
}

// unlike is the number of edits between two paths; one is enough from a key to
// its namesake in another place.
func unlike(path, known string) int {
	path, known = strings.ReplaceAll(path, "-", "_"), strings.ReplaceAll(known, "-", "_")
	cost := distance(path, known)
	base := leaf(path)
	knownBase := leaf(known)
	if base == knownBase {
		return min(cost, 1)
	}
	return cost
}

// leaf is the last part of a key's path.
func leaf(path string) string { return path[strings.LastIndexByte(path, '.')+1:] }

// distance is Levenshtein's.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = slices.Min([]int{cost, row[j] + 1, row[j+1] + 1})
		}
	}
	return row[len(b)]
}
