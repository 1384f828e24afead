package check

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/copydb/copydb/internal/position"
	"github.com/copydb/copydb/state"
)

// checkBinlog looks at the settings without which row changes are lost or
// cannot be read.
func checkBinlog(_ context.Context, r *runner) error {
	s := r.source
	if !s.on("log_bin") {
		r.fail("log_bin", "log_bin", "the source writes no binary log", "start the source with log_bin and binlog_format = ROW")
		return nil
	}
	if v := s.value("binlog_format"); s.has("binlog_format") && v != "ROW" {
		r.fail("binlog_format", "binlog_format", fmt.Sprintf("the source has binlog_format = %s; only ROW carries the rows", v),
			"SET GLOBAL binlog_format = ROW on the source, in its option file too, and reconnect its clients")
	}
	if v := s.value("binlog_row_image"); s.has("binlog_row_image") && v != "FULL" {
		r.fail("binlog_row_image", "binlog_row_image", fmt.Sprintf("the source has binlog_row_image = %s; rows are logged in part", v),
			"SET GLOBAL binlog_row_image = FULL on the source, in its option file too, and reconnect its clients")
	}
	if v := s.value("binlog_row_value_options"); strings.Contains(strings.ToUpper(v), "PARTIAL_JSON") {
		r.fail("binlog_row_value_options", "binlog_row_value_options", "the source logs JSON changes in part (binlog_row_value_options = PARTIAL_JSON)",
			"SET GLOBAL binlog_row_value_options = '' on the source, in its option file too, and reconnect its clients")
	}
	if v := s.value("gtid_mode"); s.has("gtid_mode") && v != "ON" && v != "OFF" {
		r.fail("gtid_mode", "gtid_mode", fmt.Sprintf("the source has gtid_mode = %s: some transactions have GTIDs, some have none", v),
			"go on to gtid_mode = ON, or back to OFF, before the copy")
	}
	return nil
}

// checkBinlogEnd takes the end of the log into the facts, and looks at the
// filters that stand beside it.
func checkBinlogEnd(_ context.Context, r *runner) error {
	s := r.source
	f := &r.in.Facts
	f.GTID = s.mariadb() || s.value("gtid_mode") == "ON"
	if len(r.end) == 0 {
		return nil
	}
	f.End.File = column(r.end, "File")
	f.End.Pos, _ = strconv.ParseUint(column(r.end, "Position"), 10, 64)
	if s.mariadb() {
		f.End.GTIDSet = s.value("gtid_binlog_pos")
	} else if f.GTID {
		f.End.GTIDSet = position.OneLine(column(r.end, "Executed_Gtid_Set"))
	}
	return nil
}

// binlogFilters adds an error for each selected database that the source does
// not log.
func (r *runner) binlogFilters(databases []Database) {
	do, ignore := splitNames(column(r.end, "Binlog_Do_DB")), splitNames(column(r.end, "Binlog_Ignore_DB"))
	contains := func(names []string, db string) bool {
		for _, n := range names {
			if n == db || r.in.Facts.FoldCase && strings.EqualFold(n, db) {
				return true
			}
		}
		return false
	}
	for _, d := range databases {
		switch {
		case len(do) > 0 && !contains(do, d.Name):
			r.fail("binlog_filter", d.Name, fmt.Sprintf("the source does not log database %s: binlog_do_db lists others only", d.Name),
				"add it to binlog_do_db, or remove that option, and restart the source; or exclude the database")
		case len(do) == 0 && contains(ignore, d.Name):
			r.fail("binlog_filter", d.Name, fmt.Sprintf("the source does not log database %s: binlog_ignore_db lists it", d.Name),
				"remove it from binlog_ignore_db and restart the source; or exclude the database")
		}
	}
}

func splitNames(list string) []string {
	var out []string
	for _, n := range strings.Split(list, ",") {
		if n = strings.TrimSpace(n); n != "" {
			out = append(out, n)
		}
	}
	return out
}

// shortExpiry is the retention under which a copy may lose the race.
const shortExpiry = 48 * time.Hour

func checkExpiry(_ context.Context, r *runner) error {
	s := r.source
	if keep := s.retention(); keep > 0 {
		message := fmt.Sprintf("the source keeps its binary logs for %s; the copy must be done by then", human(keep))
		fix := "raise binlog_expire_logs_seconds on the source for the time of the copy"
		if keep < shortExpiry {
			r.warn("binlog_expiry", "binlog_expire_logs_seconds", message, fix)
		} else {
			r.info("binlog_expiry", "binlog_expire_logs_seconds", message, fix)
		}
	}
	if n := s.number("max_binlog_total_size"); n > 0 {
		r.warn("binlog_expiry", "max_binlog_total_size", fmt.Sprintf("the source keeps at most %d MiB of binary logs, however short the copy", n>>20),
			"set max_binlog_total_size = 0 on the source for the time of the copy")
	}
	return nil
}

// retention is how long binary logs are kept; 0 means for ever.
func (s *side) retention() time.Duration {
	if s.has("binlog_expire_logs_auto_purge") && !s.on("binlog_expire_logs_auto_purge") {
		return 0
	}
	if n := s.number("binlog_expire_logs_seconds"); n > 0 {
		return time.Duration(n) * time.Second
	}
	days, _ := strconv.ParseFloat(s.value("expire_logs_days"), 64)
	return time.Duration(days * 24 * float64(time.Hour))
}

func human(d time.Duration) string {
	if d >= 48*time.Hour {
		return fmt.Sprintf("%.0f days", d.Hours()/24)
	}
	return d.Round(time.Second).String()
}

// fileNumber splits binlog.000123; ok is false where there is no number.
func fileNumber(name string) (base string, n uint64, ok bool) {
	i := strings.LastIndexByte(name, '.')
	if i < 0 {
		return name, 0, false
	}
	n, err := strconv.ParseUint(name[i+1:], 10, 64)
	return name[:i], n, err == nil
}

// before compares two places in one server's log. ok is false where the file
// names cannot be compared.
func before(a, b state.Position) (is, ok bool) {
	baseA, nA, okA := fileNumber(a.File)
	baseB, nB, okB := fileNumber(b.File)
	if !okA || !okB || baseA != baseB {
		return false, false
	}
	return nA < nB || nA == nB && a.Pos < b.Pos, true
}
