package check

import (
	"context"
	"fmt"

	"github.com/copydb/copydb/internal/mysqlconn"
	"github.com/copydb/copydb/internal/table"
)

func checkSourceVersion(_ context.Context, r *runner) error { r.version(r.source); return nil }
func checkTargetVersion(_ context.Context, r *runner) error { r.version(r.target); return nil }

// version refuses servers that nobody tests any more.
func (r *runner) version(s *side) {
	v := s.version()
	hard, soft := [2]int{5, 7}, [2]int{8, 0}
	if v.Flavor == mysqlconn.MariaDB {
		hard, soft = [2]int{10, 3}, [2]int{10, 5}
	}
	object := fmt.Sprintf("%s %s", v.Flavor, v.Text)
	switch {
	case !v.AtLeast(v.Flavor, hard[0], hard[1], 0):
		r.fail(s.name+"_version", object, fmt.Sprintf("the %s is too old: %s %d.%d is the oldest that works", s.name, v.Flavor, hard[0], hard[1]),
			"upgrade the server")
	case !v.AtLeast(v.Flavor, soft[0], soft[1], 0):
		r.warn(s.name+"_version", object, fmt.Sprintf("the %s is older than %s %d.%d, which is the oldest that is tested", s.name, v.Flavor, soft[0], soft[1]),
			"upgrade the server, or compare both sides with care afterwards")
	}
}

func checkPair(_ context.Context, r *runner) error {
	src, tgt := r.source.facts.Identity, r.target.facts.Identity
	if src.Version.Flavor != tgt.Version.Flavor {
		r.fail("family", "", fmt.Sprintf("a copy from %s to %s is not supported yet", src.Version.Flavor, tgt.Version.Flavor),
			"use a target of the source's family")
		return nil
	}
	if src.UUID == tgt.UUID {
		r.fail("same_server", r.target.server.Config().Address(), "source and target are the same server (same identity "+src.UUID+")",
			"point target at another server; if it is a clone of the source's data folder, give it an identity of its own (MySQL: remove its auto.cnf)")
	}
	if older(tgt.Version, src.Version) {
		r.warn("target_older", "", fmt.Sprintf("the target (%s) is older than the source (%s) and may not know all it has", tgt.Version.Text, src.Version.Text),
			"use a target of the source's version or newer")
	}
	return nil
}

// older compares release series only.
func older(a, b mysqlconn.Version) bool {
	return a.Major < b.Major || a.Major == b.Major && a.Minor < b.Minor
}

func checkNameCase(_ context.Context, r *runner) error {
	const name = "lower_case_table_names"
	if s, t := r.source.value(name), r.target.value(name); s != t {
		r.fail("name_case", name, fmt.Sprintf("the source has %s = %s, the target %s: names would not stay the same", name, s, t),
			"use a target that was initialised with the source's value; it cannot be changed later")
	}
	return nil
}

// checkFolding names the tables that a target which folds the case of names
// cannot tell apart.
func checkFolding(_ context.Context, r *runner) error {
	value := r.target.value("lower_case_table_names")
	if value == "0" {
		return nil
	}
	same := map[table.Name][]string{}
	for _, t := range r.in.Facts.Tables {
		n := r.targetFolded(t.FullName())
		same[n] = append(same[n], t.String())
	}
	for n, names := range same {
		if len(names) > 1 {
			r.fail("name_collision", n.String(), fmt.Sprintf("tables %s have one name on the target, which has lower_case_table_names = %s", list(names), value),
				"use a target that keeps the case of names, rename the tables on the source, or exclude all but one")
		}
	}
	return nil
}
