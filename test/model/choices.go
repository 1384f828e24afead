package model

import "math/rand/v2"

// choices are all that is random in a history, one byte for each decision. A
// history is replayed by its choices, and made smaller by taking some away: those
// that are missing are 0, and 0 is always the quiet way (no change, no crash).
type choices struct {
	seq  []byte
	next int
	more *rand.Rand // nil: what is missing is 0
}

// longest is the number of choices after which a new history goes quiet.
const longest = 600

// fresh returns the choices of a seed.
func fresh(seed uint64) *choices {
	return &choices{more: rand.New(rand.NewPCG(seed, 0))}
}

// n chooses one of 0 … k-1.
func (c *choices) n(k int) int {
	if c.next == len(c.seq) {
		if c.more == nil || c.next >= longest {
			return 0
		}
		c.seq = append(c.seq, byte(c.more.IntN(256)))
	}
	c.next++
	return int(c.seq[c.next-1]) % k
}

// rarely is true once in k times.
func (c *choices) rarely(k int) bool { return c.n(k) == k-1 }

// shuffle puts items into any order.
func shuffle[T any](c *choices, items []T) {
	for i := len(items) - 1; i > 0; i-- {
		j := i - c.n(i+1)
		items[i], items[j] = items[j], items[i]
	}
}

// shrink takes away from seq and lowers what is left while it still fails.
func shrink(seq []byte, fails func([]byte) bool) []byte {
	for smaller := true; smaller; {
		smaller = false
		for size := max(len(seq)/2, 1); size > 0; size /= 2 {
			for at := 0; at+size <= len(seq); {
				if try := without(seq, at, size); fails(try) {
					seq, smaller = try, true
				} else {
					at += size
				}
			}
		}
		for at := range seq {
			for _, low := range []byte{0, 1, seq[at] / 2} {
				if low >= seq[at] {
					continue
				}
				try := append([]byte(nil), seq...)
				if try[at] = low; fails(try) {
					seq, smaller = try, true
					break
				}
			}
		}
	}
	return seq
}

func without(seq []byte, at, n int) []byte {
	return append(append([]byte(nil), seq[:at]...), seq[at+n:]...)
}
