package check

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/copydb/copydb/internal/position"
	"github.com/copydb/copydb/internal/table"
)

// checkKeys refuses tables that cannot be copied for want of a key, and tells
// what copying without one means.
func checkKeys(_ context.Context, r *runner) error {
	for _, t := range r.in.Facts.Tables {
		if why := t.WhyNot(); why != "" {
			r.fail("exact_table", t.String(), fmt.Sprintf("table %s cannot be copied yet: %s", t, why),
				"give it a primary key, or versioning by time, on the source, or exclude the table")
			continue
		}
		if why := t.WhyExact(); why != "" {
			r.exactTable(t, why)
		} else if !t.Transactional() {
			r.warn("non_transactional", t.String(), fmt.Sprintf("table %s has engine %s: it is in no snapshot, and a part that fails is copied again whole", t, t.Engine),
				"convert it to InnoDB on the source, if that is possible")
		}
	}
	return nil
}

// exactTable tells how a table without a usable key is copied, and refuses it
// where the lock that this needs is forbidden.
func (r *runner) exactTable(t *table.Table, why string) {
	fix := "a primary key on the source would make its copy and its catch-up cheaper"
	if t.Component != 0 {
		fix = "none is needed; foreign keys with RESTRICT on the source would make its copy and its catch-up faster"
	}
	if t.Versioned {
		r.warn("history", t.String(), fmt.Sprintf("table %s is system-versioned: its current rows are copied and followed; its history is not copied, and begins anew on the target", t),
			"keep the source, or a dump of the history, if it is needed")
	}
	if t.Versioned || t.Overlaps {
		fix = "none is needed"
	}
	if t.OtherEngine() {
		r.lockedTable(t, why)
		return
	}
	rung := r.in.Facts.Rung
	always := rung == position.RungFlush || rung == position.RungFileStart
	if lacks := r.lacksLock(t); lacks || !r.in.AllowLocks {
		r.cannotLock(t, why, always, lacks)
		return
	}
	how := "is read in one snapshot, which blocks DDL on it"
	if t.Component != 0 {
		how = "is read in one snapshot with the tables of its foreign keys, which blocks DDL on them"
	}
	if always || rung == position.RungMariaDB {
		how += ", after LOCK TABLES … READ for an instant"
	}
	r.info("exact_table", t.String(), fmt.Sprintf("table %s %s, since %s", t, how, why), fix)
}

// lockedBytes is how large a table may be that is locked while it is read.
const lockedBytes = 256 << 20

// lockedTable tells of a table that no snapshot shows and that has no usable key:
// writers have to wait while it is read.
func (r *runner) lockedTable(t *table.Table, why string) {
	const way = "convert it to InnoDB or give it a primary key on the source, or exclude it"
	lacks := r.lacksLock(t)
	switch {
	case lacks || !r.in.AllowLocks:
		cause, fix := r.noLock(t, lacks)
		r.fail("exact_lock", t.String(), fmt.Sprintf("table %s has engine %s and is in no snapshot; since %s, it needs LOCK TABLES … READ while it is read, and %s", t, t.Engine, why, cause), fix+", or "+way)
	case t.Bytes > lockedBytes:
		r.fail("exact_table", t.String(), fmt.Sprintf("table %s has engine %s and is in no snapshot; since %s, it would be locked while it is read, and it has %s (up to %s are)", t, t.Engine, why, mebibytes(t.Bytes), mebibytes(lockedBytes)), way)
	default:
		r.warn("locked_table", t.String(), fmt.Sprintf("table %s has engine %s and is in no snapshot; since %s, it is read under LOCK TABLES … READ: writers wait meanwhile (%s, about %d rows, %s). It gets ENGINE=InnoDB on the target",
			t, t.Engine, why, mebibytes(t.Bytes), t.Rows, human(max(copyTime(t.Rows, t.Bytes), time.Second))), way)
	}
}

func (r *runner) lacksLock(t *table.Table) bool {
	return r.source.grantsKnown && !r.source.grants.on(t.Database, "LOCK TABLES")
}

// noLock says why a table may not be locked, and what mends it.
func (r *runner) noLock(t *table.Table, lacks bool) (cause, fix string) {
	if lacks {
		return "the source account lacks LOCK TABLES", grant([]string{"LOCK TABLES"}, scopeOf(&r.in.Facts.Source, t.Database), r.source.facts.Account)
	}
	return "source.allow_locks is false", "set source.allow_locks to true"
}

// cannotLock tells that a table may not be locked for the instant that its exact
// position takes. With GTIDs the lock is needed only if the source is never
// quiet for a moment.
func (r *runner) cannotLock(t *table.Table, why string, always, lacks bool) {
	cause, fix := r.noLock(t, lacks)
	way := "add a primary key, "
	if t.Component != 0 {
		way = ""
	}
	if always {
		r.fail("exact_lock", t.String(), fmt.Sprintf("table %s needs LOCK TABLES … READ for an instant, since %s, and %s", t, why, cause),
			fix+", turn GTIDs on at the source, "+way+"or exclude the table")
		return
	}
	if r.in.Facts.Rung == position.RungMariaDB {
		r.warn("exact_lock", t.String(), fmt.Sprintf("table %s, since %s, is read from the position that MariaDB gives with a snapshot; LOCK TABLES … READ for an instant would prove it, and %s", t, why, cause), fix)
		return
	}
	r.warn("exact_lock", t.String(), fmt.Sprintf("table %s, since %s, needs a moment in which nothing is committed on the source, or LOCK TABLES … READ for an instant, and %s", t, why, cause), fix)
}

// checkJSON tells what text does to the documents of MySQL's JSON columns: both
// paths carry them as text, which has no DECIMAL, DATE, TIME or binary values.
func checkJSON(_ context.Context, r *runner) error {
	var names []string
	for _, t := range r.in.Facts.Tables {
		for i := range t.Columns {
			if t.Columns[i].Kind == table.JSON {
				names = append(names, t.String()+"."+t.Columns[i].Name)
			}
		}
	}
	if len(names) > 0 {
		r.warn("json_text", names[0], fmt.Sprintf("JSON documents are copied as text: a DECIMAL in one becomes a DOUBLE, a date or binary value a string (%d columns: %s)", len(names), list(names)),
			"nothing, where documents were written as JSON text; compare such columns after the copy where they were made of SQL values (JSON_OBJECT and the like)")
	}
	return nil
}

// checkColumns refuses columns whose row events cannot be decoded.
func checkColumns(_ context.Context, r *runner) error {
	for _, t := range r.in.Facts.Tables {
		for i := range t.Columns {
			c := &t.Columns[i]
			object := t.String() + "." + c.Name
			const way = ", or exclude the table"
			switch {
			case c.Compressed:
				r.fail("compressed_column", object, fmt.Sprintf("column %s of table %s is COMPRESSED: its row events cannot be decoded", c.Name, t),
					"MODIFY the column without COMPRESSED on the source"+way)
			case strings.Contains(c.FullType, "/* mariadb-5.3 */") || strings.Contains(c.FullType, "/* 5.5 binary format */"):
				r.fail("old_temporal", object, fmt.Sprintf("column %s of table %s has an old temporal format: its row events cannot be decoded", c.Name, t),
					"rebuild the table on the source (ALTER TABLE … FORCE)"+way)
			case c.Kind == table.Unknown:
				r.fail("unknown_type", object, fmt.Sprintf("column %s of table %s has type %s, which is not known", c.Name, t, c.Type),
					"change the type on the source"+way)
			}
		}
	}
	return nil
}
