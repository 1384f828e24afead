package config

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
)

// SelectionDigest is a digest of everything that may not change between the runs
// of one migration. The order of patterns does not matter, nor whether one is
// given twice.
func (c *Config) SelectionDigest() string {
	canonical, err := json.Marshal(struct {
		Include      []string `json:"include"`
		Exclude      []string `json:"exclude"`
		Routes       []string `json:"routes"`
		EventFilters []string `json:"event_filters"`
		RowFilters   []string `json:"row_filters"`
		Objects      []string `json:"objects"`
	}{
		Include: set(c.Tables.Include), Exclude: set(c.Tables.Exclude), Objects: set(c.Schema.Objects),
		Routes: []string{}, EventFilters: []string{}, RowFilters: []string{},
	})
	if err != nil {
		panic(err) // strings always marshal
	}
	sum := sha256.Sum256(canonical)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// set returns the sorted elements of list, each once; never nil.
func set(list []string) []string {
	sorted := append([]string{}, list...)
	slices.Sort(sorted)
	return slices.Compact(sorted)
}
