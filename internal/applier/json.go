package applier

import (
	"context"
	"fmt"

	"github.com/copydb/copydb/internal/mysqlconn"
	"github.com/copydb/copydb/internal/table"
)

// MySQL does not write a row that it holds equal to the one that is there, and
// JSON documents are equal to it whose numbers are: 1 and 1.0, 0.0 and -0.0.

// passedOver reports whether the target may have left a row with a JSON column
// as it was.
func (s *statement) passedOver(res mysqlconn.Result) bool {
	if !s.writer.documents {
		return false
	}
	var matched, changed int
	switch s.verb {
	case updateOne:
		n, _ := fmt.Sscanf(res.Info, "Rows matched: %d  Changed: %d", &matched, &changed)
		return n == 2 && changed == 0
	case upsert:
		if len(s.rows) == 1 {
			return res.Affected == 0
		}
		// An insert affects one row, an update two, a REPLACE at least one for
		// each row that it writes.
		var records, duplicates int
		n, _ := fmt.Sscanf(res.Info, "Records: %d  Duplicates: %d", &records, &duplicates)
		return n == 2 && int(res.Affected)-duplicates < records
	}
	return false
}

// anew writes the same rows whatever the target holds equal. An update that
// changed nothing was one of no key, so that no cascade hangs on it.
func (s *statement) anew(ctx context.Context, on *mysqlconn.Session) (mysqlconn.Result, error) {
	if s.verb == upsert {
		return on.ExecBytes(ctx, s.replaceText())
	}
	c := s.rows[0].change
	old := *c
	old.Cascades, old.MayBeGone = false, false
	res, err := on.ExecBytes(ctx, s.writer.appendDeleteOne(make([]byte, packetRoom), &old))
	if err != nil {
		return res, err
	}
	if res.Affected != 1 {
		return res, fmt.Errorf("%w (%d rows found, 1 wanted)", ErrMissed, res.Affected)
	}
	insert := append(make([]byte, packetRoom, packetRoom+s.size+1024), s.writer.insert...)
	return on.ExecBytes(ctx, s.appendTuples(insert))
}

// hasDocuments reports whether a table has columns of MySQL's JSON.
func hasDocuments(t *table.Table) bool {
	for i := range t.Columns {
		if c := &t.Columns[i]; c.Kind == table.JSON && !c.Generated {
			return true
		}
	}
	return false
}
