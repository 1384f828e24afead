package applier

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/copydb/copydb/internal/mysqlconn"
	"github.com/copydb/copydb/internal/table"
)

// writer knows how changes of one source table are written to its target table.
// It lives no longer than the session that read the target's structure, and no
// longer than the next error.
type writer struct {
	source        *table.Table
	transactional bool
	columns       []int    // of the source: those that are written
	names         []string // of the target, quoted, for columns
	key           []int    // of the source: the usable key; nil for an exact table
	inKey         []bool   // for columns: part of a unique key
	keyed         bool     // one that has no other columns
	enums         []int
	documents     bool    // it has columns of MySQL's JSON
	hashed        [][]int // of the source: the columns of each long unique key of the target
	insert        string  // INSERT INTO t (…) VALUES
	replace       string  // REPLACE INTO t (…) VALUES
	onDuplicate   string  // AS n ON DUPLICATE KEY UPDATE …
	delete        string  // DELETE FROM t WHERE
	update        string  // UPDATE t SET
	deleteChecked string  // the same two with foreign_key_checks on
	updateChecked string
}

// ColumnError says that the target's table cannot take the source's columns.
type ColumnError struct {
	Table, Column, Reason string
}

// Error names table and column.
func (e *ColumnError) Error() string {
	return fmt.Sprintf("write rows of %s: column %q %s", e.Table, e.Column, e.Reason)
}

// newWriter reads the target's table as it is now and matches columns by name:
// a target that was altered or repaired by hand is taken as it is.
func newWriter(ctx context.Context, q table.Queryer, v mysqlconn.Version, src *table.Table) (*writer, error) {
	found, err := table.Load(ctx, q, v.Flavor, src.Database, []string{src.Table})
	if err != nil {
		return nil, fmt.Errorf("read the target's structure of %s: %w", src, err)
	}
	dst := found[0]
	w := &writer{source: src, transactional: dst.Transactional(), documents: hasDocuments(src)}
	var names, updates []string
	lacking := false // the unique key has a column that is not written
	for i := range src.Columns {
		c := &src.Columns[i]
		if c.Generated {
			lacking = lacking || src.InUniqueKey(c.Name)
			continue
		}
		d := dst.Column(c.Name)
		if d == nil {
			d = dst.ColumnFold(c.Name)
		}
		switch {
		case d == nil:
			return nil, &ColumnError{src.String(), c.Name, "is not in the target's table"}
		case d.Generated:
			return nil, &ColumnError{src.String(), c.Name, "is generated in the target's table"}
		}
		w.columns = append(w.columns, i)
		w.inKey = append(w.inKey, src.InUniqueKey(c.Name))
		w.keyed = w.keyed || w.inKey[len(w.inKey)-1]
		if c.Kind == table.Enum {
			w.enums = append(w.enums, i)
		}
		name := table.Quote(d.Name)
		names = append(names, name)
		updates = append(updates, name+" = "+newValue(v, name))
	}
	if key := src.UsableKey(); key != nil {
		w.key = src.Places(key)
	} else if !w.transactional {
		return nil, fmt.Errorf("write rows of %s: it has no usable key, and the target's engine %s does not roll back", src, dst.Engine)
	}
	for i := range dst.Keys {
		if k := &dst.Keys[i]; k.Hash && dst.Engine == "InnoDB" {
			w.hashed = append(w.hashed, src.Places(k))
		}
	}
	w.names, w.keyed = names, w.keyed && !lacking
	list := " INTO " + dst.Quoted() + " (" + strings.Join(names, ", ") + ") VALUES "
	w.insert, w.replace = "INSERT"+list, "REPLACE"+list
	w.onDuplicate = " ON DUPLICATE KEY UPDATE " + strings.Join(updates, ", ")
	if rowAlias(v) {
		w.onDuplicate = " AS `copydb new`" + w.onDuplicate
	}
	w.delete = "DELETE FROM " + dst.Quoted() + " WHERE "
	w.update = "UPDATE " + dst.Quoted() + " SET "
	w.deleteChecked, w.updateChecked = withChecks(v, w.delete), withChecks(v, w.update)
	return w, nil
}

// withChecks turns foreign_key_checks on for one statement.
func withChecks(v mysqlconn.Version, statement string) string {
	if v.Flavor == mysqlconn.MariaDB {
		return "SET STATEMENT foreign_key_checks = 1 FOR " + statement
	}
	verb, rest, _ := strings.Cut(statement, " ")
	return verb + " /*+ SET_VAR(foreign_key_checks = 1) */ " + rest
}

// rowAlias reports whether the server has row aliases (and warns of VALUES()).
func rowAlias(v mysqlconn.Version) bool { return v.AtLeast(mysqlconn.MySQL, 8, 0, 19) }

func newValue(v mysqlconn.Version, quoted string) string {
	if rowAlias(v) {
		return "`copydb new`." + quoted
	}
	return "VALUES(" + quoted + ")"
}

// appendTuple appends a row's written columns as (…).
func (w *writer) appendTuple(dst []byte, r Row) []byte {
	for n, i := range w.columns {
		sep := byte(',')
		if n == 0 {
			sep = '('
		}
		dst = append(append(dst, sep), r[i]...)
	}
	return append(dst, ')')
}

// appendDelete appends the statement that deletes rows by their keys.
func (w *writer) appendDelete(dst []byte, rows []netRow) []byte {
	dst = append(dst, w.delete...)
	if len(w.key) == 1 {
		i := w.key[0]
		dst = append(append(dst, table.Quote(w.source.Columns[i].Name)...), " IN ("...)
		for n, r := range rows {
			if n > 0 {
				dst = append(dst, ',')
			}
			dst = append(dst, r.change.Before[i]...)
		}
		return append(dst, ')')
	}
	for n, r := range rows {
		if n > 0 {
			dst = append(dst, " OR "...)
		}
		dst = w.appendMatch(dst, r.change.Before)
	}
	return dst
}

// appendMeets appends the condition that finds the row which holds a row's
// values under a unique key; nothing where one of them is NULL.
func (w *writer) appendMeets(dst []byte, columns []int, r Row, more bool) []byte {
	if slices.ContainsFunc(columns, func(i int) bool { return r[i] == nil || string(r[i]) == "NULL" }) {
		return dst
	}
	if more {
		dst = append(dst, " OR "...)
	}
	for n, i := range columns {
		sep := " AND "
		if n == 0 {
			sep = "("
		}
		c := &w.source.Columns[i]
		dst = append(append(append(dst, sep...), table.Quote(c.Name)...), '=')
		if c.Kind == table.Text { // as the column compares, whatever the session's character set is
			dst = fmt.Appendf(dst, "CONVERT(%s USING %s) COLLATE %s", r[i], c.Charset, c.Collation)
			continue
		}
		dst = append(dst, r[i]...)
	}
	return append(dst, ')')
}

// appendMatch appends the condition that finds the row by its key.
func (w *writer) appendMatch(dst []byte, r Row) []byte {
	for n, i := range w.key {
		sep := " AND "
		if n == 0 {
			sep = "("
		}
		dst = append(append(dst, sep...), table.Quote(w.source.Columns[i].Name)...)
		dst = append(append(dst, '='), r[i]...)
	}
	return append(dst, ')')
}

// zeros counts ENUM values of index 0, which a strict session refuses.
func (w *writer) zeros(r Row) int {
	n := 0
	for _, i := range w.enums {
		if len(r[i]) == 1 && r[i][0] == '0' {
			n++
		}
	}
	return n
}
