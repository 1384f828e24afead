package applier

import "github.com/copydb/copydb/internal/table"

// verb is what a statement does.
type verb uint8

const (
	remove verb = iota + 1 // DELETE by keys
	upsert                 // INSERT … ON DUPLICATE KEY UPDATE
	// Of exact tables, each change once:
	insertOnly // INSERT
	updateOne  // UPDATE … LIMIT 1, by all columns
	removeOne  // DELETE … LIMIT 1, by all columns
)

// verbsOnce are those for changes of exact tables.
var verbsOnce = map[Op]verb{Insert: insertOnly, Update: updateOne, Delete: removeOne}

const (
	// A list of more keys than this is none that servers look up one by one: they
	// weigh the ranges against a scan, and give up at a limit of memory.
	keysOfDelete  = 500
	pairsOfDelete = 100 // where the key has several columns
)

// statement is one statement for rows of one table. Its text is made when it is
// run, and again where it is repeated.
type statement struct {
	writer *writer
	verb   verb
	rows   []netRow
	size   int  // bytes of the literals
	alone  bool // of one unit: an error ends the run, and must name its row
}

// full reports whether no more rows should be added.
func (s *statement) full(limit int) bool {
	switch s.verb {
	case updateOne, removeOne:
		return true
	case remove:
		if len(s.writer.key) > 1 {
			return len(s.rows) >= pairsOfDelete
		}
		return len(s.rows) >= keysOfDelete
	}
	return s.size >= limit
}

func (s *statement) add(r netRow) {
	s.rows = append(s.rows, r)
	for _, lit := range r.row() {
		s.size += len(lit) + 1
	}
	if s.verb == updateOne {
		s.size += r.change.Before.bytes()
	}
}

// cutInto cuts rows of one verb into statements of at most limit bytes.
func cutInto(out []*statement, w *writer, v verb, rows []netRow, limit int) []*statement {
	var s *statement
	for _, r := range rows {
		if s == nil || s.full(limit) {
			s = &statement{writer: w, verb: v}
			out = append(out, s)
		}
		s.add(r)
	}
	return out
}

// exactly turns changes of exact tables into statements, in order within each
// table, and among the tables of a component. Else the order between tables is
// free, since foreign keys are not checked.
func exactly(changes []*Change, writers map[*table.Table]*writer, limit int) []*statement {
	var out []*statement
	open := map[*table.Table]*statement{}
	tied := map[int]*statement{} // by component
	for _, c := range changes {
		w := writers[c.Table]
		v := verbsOnce[c.Op]
		s, component := open[c.Table], c.Table.Component
		if component != 0 {
			s = tied[component]
		}
		if s == nil || s.writer != w || s.verb != v || s.full(limit) {
			s = &statement{writer: w, verb: v}
			out = append(out, s)
		}
		if component != 0 {
			tied[component] = s
		} else {
			open[c.Table] = s
		}
		s.add(netRow{c, c.Op == Delete})
	}
	return out
}

// text is the statement in the form that Session.ExecBytes wants.
func (s *statement) text() []byte {
	w, first := s.writer, s.rows[0]
	dst := make([]byte, packetRoom, packetRoom+s.size+1024)
	switch s.verb {
	case remove:
		return w.appendDelete(dst, s.rows)
	case updateOne:
		return w.appendUpdateOne(dst, first.change)
	case removeOne:
		return w.appendDeleteOne(dst, first.change)
	case insertOnly:
		return s.appendTuples(append(dst, w.insert...))
	}
	return append(s.appendTuples(append(dst, w.insert...)), w.onDuplicate...)
}

// replaceText is the same rows as a REPLACE: what is done where a row meets rows
// of the target under two unique keys at once (1062). Such rows are stale: the
// log's later events bring them back where they belong.
func (s *statement) replaceText() []byte {
	return s.appendTuples(append(make([]byte, packetRoom, packetRoom+s.size+1024), s.writer.replace...))
}

// evictions are the statements that make room for the rows where REPLACE has not
// (1062): MariaDB's does not remove what meets a row under a long unique key,
// which is kept through a hash, when it also meets one under another key. What
// they delete is in the way, and so stale, or is written again with the rows.
func (s *statement) evictions() [][]byte {
	var out [][]byte
	for _, columns := range s.writer.hashed {
		q := append(make([]byte, packetRoom), s.writer.delete...)
		empty := len(q)
		for _, r := range s.rows {
			q = s.writer.appendMeets(q, columns, r.change.After, len(q) > empty)
		}
		if len(q) > empty {
			out = append(out, q)
		}
	}
	return out
}

func (s *statement) appendTuples(dst []byte) []byte {
	for i, r := range s.rows {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = s.writer.appendTuple(dst, r.change.After)
	}
	return dst
}

// zeros counts the ENUM values of index 0 that the statement writes.
func (s *statement) zeros() int {
	n := 0
	if s.verb == remove || s.verb == removeOne {
		return n
	}
	for _, r := range s.rows {
		n += s.writer.zeros(r.change.After)
	}
	return n
}
