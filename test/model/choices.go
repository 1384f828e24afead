package model

import (
	"math/rand/v2"
	"slices"
)

// tapes are all that is random in a history, one byte for each choice: what the
// source commits, and what happens to the runs. A history is replayed by its
// tapes, and made smaller by cutting some of them out: choices that are missing
// are 0, and 0 is always the quiet way (no change, no crash).
type tapes [2][]byte

const (
	onSource = iota
	onRuns
)

// longest is the number of choices after which a new history goes quiet.
const longest = 400

// choices are made from a tape, which is made longer from more.
type choices struct {
	tape []byte
	next int
	more *rand.Rand // nil: what is missing is 0
}

// record returns the choices of a seed.
func record(seed, tape uint64) *choices {
	return &choices{more: rand.New(rand.NewPCG(seed, tape))}
}

// n chooses one of 0 … k-1.
func (c *choices) n(k int) int {
	if c.next == len(c.tape) {
		if c.more == nil || c.next >= longest {
			return 0
		}
		c.tape = append(c.tape, byte(c.more.IntN(256)))
	}
	c.next++
	return int(c.tape[c.next-1]) % k
}

// rarely is true once in k times.
func (c *choices) rarely(k int) bool { return c.n(k) == k-1 }

func pick(c *choices, from []string) string { return from[c.n(len(from))] }

// shuffle puts items into any order.
func shuffle[T any](c *choices, items []T) {
	for i := len(items) - 1; i > 0; i-- {
		j := i - c.n(i+1)
		items[i], items[j] = items[j], items[i]
	}
}

// shrink cuts choices out, in blocks, and makes others quiet, while it still
// fails.
func shrink(all tapes, fails func(tapes) bool) tapes {
	for smaller := true; smaller; {
		smaller = false
		for which := range all {
			if shrinkTape(&all, which, fails) {
				smaller = true
			}
		}
	}
	return all
}

func shrinkTape(all *tapes, which int, fails func(tapes) bool) (smaller bool) {
	try := func(tape []byte) bool {
		next := *all
		if next[which] = tape; !fails(next) {
			return false
		}
		*all, smaller = next, true
		return true
	}
	for size := max(len(all[which])/2, 1); size > 0; size /= 2 {
		for at := 0; at < len(all[which]); {
			tape := all[which]
			end := min(at+size, len(tape))
			if try(slices.Delete(slices.Clone(tape), at, end)) {
				continue
			}
			if slices.ContainsFunc(tape[at:end], func(b byte) bool { return b != 0 }) {
				try(quiet(tape, at, end))
			}
			at = end
		}
	}
	return smaller
}

func quiet(tape []byte, at, end int) []byte {
	tape = slices.Clone(tape)
	clear(tape[at:end])
	return tape
}
