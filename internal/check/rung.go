package check

import (
	"context"

	"github.com/copydb/copydb/internal/position"
)

// checkRung finds the best way that the source offers to start.
func checkRung(_ context.Context, r *runner) error {
	s, f := r.source, &r.in.Facts
	switch {
	case s.mariadb():
		f.Rung, f.RungReason = position.RungMariaDB, "a consistent snapshot of MariaDB says its own position"
	case s.value("gtid_mode") == "ON":
		f.Rung, f.RungReason = position.RungGTID, "gtid_mode is ON"
	case s.grantsKnown && s.grants.everywhere("RELOAD"):
		f.Rung, f.RungReason = position.RungFlush, "gtid_mode is OFF, and the account may FLUSH BINARY LOGS"
	default:
		f.Rung, f.RungReason = position.RungFileStart, "gtid_mode is OFF, and the account lacks RELOAD: the current binary log file is read from its begin"
		r.info("start_position", s.facts.Account, "without GTIDs and RELOAD the copy starts at the begin of the current binary log file, which is then read twice",
			grant([]string{"RELOAD"}, "*.*", s.facts.Account))
	}
	return nil
}
