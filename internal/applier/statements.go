package applier

// statement is one statement for rows of one table, in the form that
// Session.ExecBytes wants.
type statement struct {
	writer  *writer
	changes []*Change // those it carries out
	upsert  bool      // else a delete
	text    []byte
	rows    int
	zeros   int
}

// plan turns changes, in log order, into statements: in order within each table
// (the order between tables is free, since foreign keys are not checked), runs
// of the same kind in one statement of at most limit bytes.
func plan(changes []Change, writerOf func(*Change) (*writer, error), limit int) ([]*statement, error) {
	open := map[*writer]*statement{}
	var out []*statement
	at := func(w *writer, upsert bool) *statement {
		s := open[w]
		if s == nil || s.upsert != upsert || len(s.text) >= limit {
			s = &statement{writer: w, upsert: upsert, text: make([]byte, packetRoom, 1024)}
			open[w] = s
			out = append(out, s)
		}
		return s
	}
	for i := range changes {
		c := &changes[i]
		w, err := writerOf(c)
		if err != nil {
			return nil, err
		}
		switch {
		case c.Op == Delete:
			at(w, false).remove(c)
		case c.Op == Update && w.keyMoved(c):
			at(w, false).remove(c)
			at(w, true).put(c)
		default:
			at(w, true).put(c)
		}
	}
	for _, s := range out {
		if s.upsert {
			s.text = append(s.text, s.writer.onDuplicate...)
		}
	}
	return out, nil
}

func (s *statement) remove(c *Change) {
	if s.rows == 0 {
		s.text = append(s.text, s.writer.delete...)
	} else {
		s.text = append(s.text, " OR "...)
	}
	s.text = s.writer.appendMatch(s.text, c.Before)
	s.add(c)
}

func (s *statement) put(c *Change) {
	if s.rows == 0 {
		s.text = append(s.text, s.writer.insert...)
	} else {
		s.text = append(s.text, ',')
	}
	s.text = s.writer.appendTuple(s.text, c.After)
	s.zeros += s.writer.zeros(c.After)
	s.add(c)
}

func (s *statement) add(c *Change) {
	s.rows++
	if n := len(s.changes); n == 0 || s.changes[n-1] != c {
		s.changes = append(s.changes, c)
	}
}

// asReplace returns the same rows as a REPLACE: what is done where a row meets
// rows of the target under two unique keys at once (1062). Such rows are stale:
// the log's later events bring them back where they belong.
func (s *statement) asReplace() []byte {
	text := append(make([]byte, packetRoom, len(s.text)), s.writer.replace...)
	for i, c := range s.changes {
		if i > 0 {
			text = append(text, ',')
		}
		text = s.writer.appendTuple(text, c.After)
	}
	return text
}
