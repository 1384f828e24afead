package check

import (
	"context"
	"fmt"
	"strings"

	"github.com/copydb/copydb/internal/mysqlconn"
	"github.com/copydb/copydb/state"
)

// checkUntil refuses a stop point that lies before the start, or that this
// source cannot reach.
func checkUntil(ctx context.Context, r *runner) error {
	f := &r.in.Facts
	start := f.End
	if r.in.Resume != nil {
		start = r.in.Resume.Source.LastStreamed
	}
	switch {
	case r.in.UntilGTID != "":
		return r.untilGTID(ctx, r.in.UntilGTID, start)
	case r.in.UntilFile != "":
		return r.untilFile(ctx, state.Position{File: r.in.UntilFile, Pos: r.in.UntilPos}, start)
	}
	return nil
}

const untilFix = "take a position at or after the start, or leave catch_up.until at caught_up"

func (r *runner) untilFile(_ context.Context, stop, start state.Position) error {
	if start.File == "" {
		return nil // whatever hid it is a finding already
	}
	early, ok := before(stop, start)
	switch {
	case !ok:
		r.fail("until", stop.String(), fmt.Sprintf("the stop point %s is no place in this source's binary log (%s)", stop, start.File), untilFix)
	case early:
		r.fail("until", stop.String(), fmt.Sprintf("the stop point %s lies before the start, %s", stop, start), untilFix)
	}
	return nil
}

func (r *runner) untilGTID(ctx context.Context, stop string, start state.Position) error {
	s := r.source
	if !r.in.Facts.GTID {
		r.fail("until", stop, "catch_up.until names GTIDs, but the source has gtid_mode = "+s.value("gtid_mode"), "give a file and a position instead")
		return nil
	}
	if s.mariadb() {
		return r.untilMariaDB(stop, start)
	}
	var reached, same bool
	err := s.conn.QueryRow(ctx, []any{&reached, &same}, "SELECT GTID_SUBSET(?, ?), GTID_SUBSET(?, ?)", stop, start.GTIDSet, start.GTIDSet, stop)
	if mysqlconn.ErrorNumber(err) == 1772 {
		r.fail("until", stop, "the stop point is not a GTID set of MySQL", "write it like 3E11FA47-71CA-11E1-9E33-C80AA9429562:1-5")
		return nil
	}
	if err != nil {
		return fmt.Errorf("compare the stop point: %w", err)
	}
	if reached && !same {
		r.fail("until", stop, "the stop point lies before the start: the source had executed it when the copy began", untilFix)
	}
	return nil
}

func (r *runner) untilMariaDB(stop string, start state.Position) error {
	want, err := parseMariaDB(stop)
	if err != nil {
		r.fail("until", stop, "the stop point is not a GTID position of MariaDB", "write it like 0-1-100, with commas between domains")
		return nil //nolint:nilerr // the finding says it
	}
	have, err := parseMariaDB(start.GTIDSet)
	if err != nil {
		return fmt.Errorf("compare the stop point: %w", err)
	}
	less, more := false, false
	for domain, seq := range want {
		less = less || seq < have[domain]
		more = more || seq > have[domain]
	}
	if less && !more {
		r.fail("until", stop, "the stop point lies before the start, "+start.GTIDSet, untilFix)
	}
	return nil
}

// parseMariaDB reads a GTID position: the newest sequence number by domain.
func parseMariaDB(text string) (map[uint32]uint64, error) {
	out := map[uint32]uint64{}
	for _, part := range strings.Split(text, ",") {
		if part = strings.TrimSpace(part); part == "" {
			continue
		}
		var domain, server uint32
		var seq uint64
		var rest string
		if n, _ := fmt.Sscanf(part, "%d-%d-%d%s", &domain, &server, &seq, &rest); n != 3 {
			return nil, fmt.Errorf("parse GTID %q", part)
		}
		out[domain] = max(out[domain], seq)
	}
	return out, nil
}
