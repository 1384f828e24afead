package applier

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/copydb/copydb/internal/mysqlconn"
	"github.com/copydb/copydb/internal/table"
)

// ErrMissed is returned where a change of a table without a usable key did not
// find exactly one row on the target: the target is not what the log says it
// was.
var ErrMissed = errors.New("the target does not have the row as it was on the source")

// appendUpdateOne appends the statement that changes one row that has all values
// of the before image.
func (w *writer) appendUpdateOne(dst []byte, c *Change) []byte {
	dst = append(dst, w.checked(c, w.update, w.updateChecked)...)
	for n, i := range w.columns {
		if n > 0 {
			dst = append(dst, ", "...)
		}
		dst = append(append(append(dst, w.names[n]...), " = "...), c.After[i]...)
	}
	return w.appendMatchAll(append(dst, " WHERE "...), c.Before)
}

// appendDeleteOne appends the statement that deletes one row that has all values
// of the before image, or has its key where a cascade may have changed the rest.
func (w *writer) appendDeleteOne(dst []byte, c *Change) []byte {
	dst = append(dst, w.checked(c, w.delete, w.deleteChecked)...)
	if c.MayBeGone && w.keyed {
		return w.appendMatchOf(dst, c.Before, w.inKey)
	}
	return w.appendMatchAll(dst, c.Before)
}

// checked chooses the beginning of a statement: with foreign_key_checks on,
// cascades run.
func (w *writer) checked(c *Change, plain, checked string) string {
	if c.Cascades {
		return checked
	}
	return plain
}

// appendMatchAll appends the condition that finds one row that has all values of
// an image.
func (w *writer) appendMatchAll(dst []byte, r Row) []byte {
	return w.appendMatchOf(dst, r, nil)
}

// appendMatchOf is appendMatchAll for those columns that only says; nil is all.
// Columns of a unique key are compared as the key compares them, too, so that it
// finds the row.
func (w *writer) appendMatchOf(dst []byte, r Row, only []bool) []byte {
	first := true
	for n, i := range w.columns {
		if only != nil && !only[n] {
			continue
		}
		if !first {
			dst = append(dst, " AND "...)
		}
		first = false
		c := &w.source.Columns[i]
		if (c.Kind == table.Text || c.Kind == table.Binary) && w.inKey[n] {
			dst = append(append(append(append(dst, w.names[n]...), " = "...), r[i]...), " AND "...)
		}
		dst = appendSame(dst, c, w.names[n], r[i])
	}
	return append(dst, " LIMIT 1"...)
}

// appendSame appends the condition that a column has exactly the value of a
// literal: by bytes where values that differ can compare as equal, and with the
// sign of a zero.
func appendSame(dst []byte, c *table.Column, name string, literal []byte) []byte {
	put := func(before, between, after string) []byte {
		dst = append(append(append(dst, before...), name...), between...)
		return append(append(dst, literal...), after...)
	}
	switch {
	case string(literal) == "NULL":
		return append(append(dst, name...), " IS NULL"...)
	case c.Kind == table.Text || c.Kind == table.Binary:
		return put("CAST(", " AS BINARY) = CAST(", " AS BINARY)")
	case c.Kind == table.JSON:
		return put("CAST(CAST(", " AS CHAR CHARACTER SET utf8mb4) AS BINARY) = CAST(CAST(CAST(",
			" AS JSON) AS CHAR CHARACTER SET utf8mb4) AS BINARY)")
	case c.Kind == table.Geometry || c.Kind == table.Vector:
		return put("HEX(", ") = HEX(", ")")
	}
	dst = put("", " = ", "")
	if (c.Kind == table.Float || c.Kind == table.Double) && len(bytes.Trim(literal, "-0.e+")) == 0 {
		sign := "0%"
		if literal[0] == '-' {
			sign = "-%"
		}
		return fmt.Appendf(dst, " AND CAST(CONCAT(%s) AS BINARY) LIKE '%s'", name, sign)
	}
	return dst
}

// hit checks that a statement of an exact table found its row.
func (s *statement) hit(res mysqlconn.Result) error {
	found := int(res.Affected)
	switch s.verb {
	case updateOne:
		// An update that changes nothing affects no row, but matches one.
		if n, _ := fmt.Sscanf(res.Info, "Rows matched: %d", &found); n != 1 {
			return fmt.Errorf("unexpected answer to an update: %q", res.Info)
		}
	case insertOnly, removeOne:
	default:
		return nil
	}
	if found == 0 && s.verb == removeOne && s.rows[0].change.MayBeGone && (s.writer.keyed || !s.writer.source.SetNull()) {
		return nil
	}
	if found != len(s.rows) {
		return fmt.Errorf("%w (%d rows found, %d wanted)", ErrMissed, found, len(s.rows))
	}
	return nil
}
