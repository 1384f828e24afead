package applier

// verb is what a statement does.
type verb uint8

const (
	upsert verb = iota + 1 // INSERT … ON DUPLICATE KEY UPDATE
	remove                 // DELETE by keys
	// Of exact tables, each change once:
	insertOnly // INSERT
	updateOne  // UPDATE … LIMIT 1, by all columns
	removeOne  // DELETE … LIMIT 1, by all columns
)

// statement is one statement for rows of one table, in the form that
// Session.ExecBytes wants.
type statement struct {
	writer  *writer
	changes []*Change // those it carries out
	verb    verb
	text    []byte
	rows    int
	zeros   int
}

// planner turns changes, in log order, into statements: in order within each
// table (the order between tables is free, since foreign keys are not checked),
// runs of the same kind in one statement of at most limit bytes.
type planner struct {
	limit int
	open  map[*writer]*statement
	out   []*statement
}

func plan(changes []Change, writerOf func(*Change) (*writer, error), limit int) ([]*statement, error) {
	p := &planner{limit: limit, open: map[*writer]*statement{}}
	for i := range changes {
		c := &changes[i]
		w, err := writerOf(c)
		if err != nil {
			return nil, err
		}
		switch {
		case w.exact:
			p.exact(w, c)
		case c.Op == Delete:
			p.at(w, remove).remove(c)
		case c.Op == Update && w.keyMoved(c):
			p.at(w, remove).remove(c)
			p.at(w, upsert).put(c)
		default:
			p.at(w, upsert).put(c)
		}
	}
	for _, s := range p.out {
		if s.verb == upsert {
			s.text = append(s.text, s.writer.onDuplicate...)
		}
	}
	return p.out, nil
}

// at returns the statement of w to add a change to.
func (p *planner) at(w *writer, v verb) *statement {
	s := p.open[w]
	if s == nil || s.verb != v || v == updateOne || v == removeOne || len(s.text) >= p.limit {
		s = &statement{writer: w, verb: v, text: make([]byte, packetRoom, 1024)}
		p.open[w] = s
		p.out = append(p.out, s)
	}
	return s
}

func (p *planner) exact(w *writer, c *Change) {
	switch c.Op {
	case Insert:
		p.at(w, insertOnly).put(c)
	case Update:
		p.at(w, updateOne).updateOne(c)
	case Delete:
		p.at(w, removeOne).removeOne(c)
	}
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
