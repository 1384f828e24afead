package table

import (
	"math"
	"testing"
)

func TestMaxOrdinal(t *testing.T) {
	for text, want := range map[string]uint64{
		"enum('a')":                   1,
		"enum('a','b''c,d','',',''')": 4,
		"set('a','b','c')":            7,
		"int":                         math.MaxUint64,
	} {
		c := Column{FullType: text, Kind: Enum}
		switch text[0] {
		case 's':
			c.Kind = Set
		case 'i':
			c.Kind = Integer
		}
		if got := c.MaxOrdinal(); got != want {
			t.Errorf("%s: %d, want %d", text, got, want)
		}
	}
}
