package check

import (
	"context"
	"fmt"
	"strconv"

	"github.com/copydb/copydb/internal/mysqlconn"
)

// checkXA refuses prepared XA transactions: their rows are in no snapshot, and
// their PREPARE is before any start position. A run that goes on has the rows of
// those that were prepared since; a table that begins again waits for none to be
// there.
func checkXA(ctx context.Context, r *runner) error {
	if r.in.Resume != nil {
		return nil
	}
	s := r.source
	rows, err := s.conn.QueryMaps(ctx, "XA RECOVER")
	// MySQL answers a missing right with XAER_RMERR (1401).
	if mysqlconn.ErrorNumber(err) == 1401 || mysqlconn.IsAccessDenied(err) {
		r.warn("xa_recover", s.facts.Account, "prepared XA transactions cannot be seen: one that is committed during the copy would stop it",
			grant([]string{"XA_RECOVER_ADMIN"}, "*.*", s.facts.Account))
		return nil
	}
	if err != nil {
		return fmt.Errorf("list prepared XA transactions: %w", err)
	}
	var ids []string
	for _, row := range rows {
		ids = append(ids, xid(row))
	}
	if len(ids) > 0 {
		r.fail("xa_prepared", list(ids), fmt.Sprintf("the source holds %d prepared XA transactions, whose rows no snapshot shows: %s", len(ids), list(ids)),
			"XA COMMIT or XA ROLLBACK them (or wait until their owner does), then try again")
	}
	return nil
}

// xid writes a row of XA RECOVER the way XA COMMIT takes it.
func xid(row map[string]string) string {
	data := column(row, "data")
	n, err := strconv.Atoi(column(row, "gtrid_length"))
	if err != nil || n > len(data) {
		return fmt.Sprintf("X'%X'", data)
	}
	return fmt.Sprintf("X'%X',X'%X',%s", data[:n], data[n:], column(row, "formatID"))
}
