package pattern

import "regexp/syntax"

// canGoOn reports whether a string that begins with prefix and is longer could
// match prog, which is anchored at both ends. It follows every state of prog
// over prefix; assertions that depend on what comes after it are taken to hold.
func canGoOn(prog *syntax.Prog, prefix string) bool {
	live := map[uint32]bool{}
	before := rune(-1)
	starts := []uint32{uint32(prog.Start)}
	for _, r := range prefix {
		follow(prog, live, starts, syntax.EmptyOpContext(before, r))
		if starts = step(prog, live, r); len(starts) == 0 {
			return false
		}
		live = map[uint32]bool{}
		before = r
	}
	const notAnEnd = ^(syntax.EmptyEndText | syntax.EmptyBeginText)
	follow(prog, live, starts, notAnEnd)
	for pc := range live {
		if takesRune(prog.Inst[pc].Op) {
			return true
		}
	}
	return false
}

// follow adds to live everything that can be reached from pcs without a rune,
// where the assertions in holds hold.
func follow(prog *syntax.Prog, live map[uint32]bool, pcs []uint32, holds syntax.EmptyOp) {
	for len(pcs) > 0 {
		pc := pcs[len(pcs)-1]
		pcs = pcs[:len(pcs)-1]
		if live[pc] {
			continue
		}
		live[pc] = true
		switch inst := prog.Inst[pc]; inst.Op {
		case syntax.InstAlt, syntax.InstAltMatch:
			pcs = append(pcs, inst.Out, inst.Arg)
		case syntax.InstCapture, syntax.InstNop:
			pcs = append(pcs, inst.Out)
		case syntax.InstEmptyWidth:
			if syntax.EmptyOp(inst.Arg)&^holds == 0 {
				pcs = append(pcs, inst.Out)
			}
		}
	}
}

// step returns where the live states lead by r.
func step(prog *syntax.Prog, live map[uint32]bool, r rune) []uint32 {
	var to []uint32
	for pc := range live {
		if inst := &prog.Inst[pc]; takesRune(inst.Op) && inst.MatchRune(r) {
			to = append(to, inst.Out)
		}
	}
	return to
}

func takesRune(op syntax.InstOp) bool {
	switch op {
	case syntax.InstRune, syntax.InstRune1, syntax.InstRuneAny, syntax.InstRuneAnyNotNL:
		return true
	}
	return false
}
