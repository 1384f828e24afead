package model

import (
	"fmt"
	"slices"
)

type op string

const (
	insert   op = "insert"
	update   op = "update"
	remove   op = "delete"
	truncate op = "truncate"
	rename   op = "rename" // keyed and swap change their names
)

// event is one entry of the log: a row event or a DDL.
type event struct {
	table         string
	op            op
	before, after row
	last          bool // the end of its transaction
}

func (e event) ddl() bool { return e.op == truncate || e.op == rename }

// names are the tables that the event is about.
func (e event) names() []string {
	if e.op == rename {
		return []string{"keyed", "swap"}
	}
	return []string{e.table}
}

func (e event) String() string {
	s := fmt.Sprintf("%s %s", e.op, e.table)
	switch e.op {
	case insert:
		s += fmt.Sprint(" ", e.after)
	case update:
		s += fmt.Sprintf(" %v -> %v", e.before, e.after)
	case remove:
		s += fmt.Sprint(" ", e.before)
	}
	if e.last {
		s += ";"
	}
	return s
}

// source is the server that is copied from. A place in its log is the number of
// events before it.
type source struct {
	choices *choices // of what it commits
	names   []string // tables of this history
	now     tables
	log     []event
	at      map[int]tables // what the log makes, at each end of a transaction
	visible int            // up to where a snapshot sees: at or behind the log's end
	ids     int
}

var selections = [][]string{
	{"keyed"}, {"folded"}, {"bare"}, {"parent", "child"}, {"keyed", "bare"},
	{"keyed", "swap"}, {"folded", "bare"}, {"keyed", "parent", "child"}, {"keyed", "swap", "bare"},
}

func newSource(c *choices, names []string) *source {
	if names == nil {
		names = selections[c.n(len(selections))]
	}
	s := &source{choices: c, names: names, now: tables{}, at: map[int]tables{}}
	for _, name := range s.names {
		s.ids++
		s.now[name] = &table{schema: schemas[name], id: s.ids, uniques: true}
	}
	s.at[0] = s.now.clone()
	for range c.n(6) {
		s.transact()
	}
	s.visible = len(s.log)
	return s
}

// transact commits a transaction of some changes. It is in the log at once, and
// visible some time later.
func (s *source) transact() {
	from := len(s.log)
	for range 1 + s.choices.n(4) {
		s.change()
	}
	s.commit(from)
}

func (s *source) commit(from int) {
	if len(s.log) == from {
		return
	}
	s.log[len(s.log)-1].last = true
	s.at[len(s.log)] = s.now.clone()
}

// see lets snapshots see the log's next transactions.
func (s *source) see(c *choices) {
	for s.visible < len(s.log) && c.n(2) == 0 {
		s.visible = s.boundary(s.visible + 1)
	}
}

// boundary is the first end of a transaction at or after a place.
func (s *source) boundary(place int) int {
	for place > 0 && place < len(s.log) && !s.log[place-1].last {
		place++
	}
	return place
}

// define carries out a DDL. It waits for the transactions before it, and is
// visible at once.
func (s *source) define() {
	c := s.choices
	e := event{op: truncate, table: pick(c, s.names)}
	if e.table == "parent" {
		return // refused: a foreign key points at it
	}
	if s.now["swap"] != nil && c.n(2) == 0 {
		e = event{op: rename, table: "keyed"}
	}
	s.ids++
	e.define(s.now, s.ids)
	s.log = append(s.log, e)
	s.commit(len(s.log) - 1)
	s.visible = len(s.log)
}

func (e event) define(ts tables, id int) {
	switch e.op {
	case truncate:
		ts[e.table].rows, ts[e.table].id = nil, id
	case rename:
		ts["keyed"], ts["swap"] = ts["swap"], ts["keyed"]
	}
}

var (
	keys  = []string{"a", "b", "A", "c"}
	uniqs = []string{"", "1", "2", "3"}
	names = []string{"", "x", "X", "y"}
	vals  = []string{"0", "1", "2", wide}
)

// wide is a value that a narrower column of the target cannot hold.
const wide = "wide"

// change makes one or a few changes to a table; what the server would refuse is
// left out.
func (s *source) change() {
	c := s.choices
	name := s.names[c.n(len(s.names))]
	t := s.now[name]
	fresh := row{pick(c, keys), pick(c, uniqs), pick(c, names), pick(c, vals)}
	if parent := t.schema.parent; parent != "" {
		fresh.uniq = pick(c, keys)
	}
	what := c.n(8)
	if len(t.rows) == 0 {
		what = 0
	}
	if what == 0 {
		s.do(event{table: name, op: insert, after: fresh})
		return
	}
	r := t.rows[c.n(len(t.rows))]
	switch what {
	case 1:
		s.do(event{table: name, op: remove, before: r})
	case 2:
		s.set(name, r, row{r.key, r.uniq, r.name, fresh.val})
	case 3:
		s.set(name, r, row{r.key, fresh.uniq, fresh.name, r.val})
	case 4, 5:
		s.set(name, r, row{fresh.key, r.uniq, r.name, r.val})
	case 6:
		s.exchange(name, r, t.rows[c.n(len(t.rows))])
	case 7:
		s.do(event{table: name, op: remove, before: r})
		s.do(event{table: name, op: insert, after: row{fresh.key, r.uniq, r.name, r.val}})
	}
}

func (s *source) set(name string, before, after row) {
	s.do(event{table: name, op: update, before: before, after: after})
}

// exchange swaps the unique values of two rows.
func (s *source) exchange(name string, a, b row) {
	if a == b {
		return
	}
	none, other, swapped := a, b, a
	none.uniq, none.name = "", ""
	other.uniq, other.name = a.uniq, a.name
	swapped.uniq, swapped.name = b.uniq, b.name
	s.set(name, a, none)
	s.set(name, b, other)
	s.set(name, none, swapped)
}

func (s *source) do(e event) {
	t := s.now[e.table]
	if e.op != remove && s.orphan(e.after, t.schema.parent) {
		return
	}
	i := t.find(e.before)
	var err error
	switch e.op {
	case insert:
		err = t.insert(e.after)
	case update:
		if i < 0 || e.before == e.after {
			return
		}
		err = t.update(i, e.after)
	case remove:
		if i < 0 {
			return
		}
		t.rows = slices.Delete(t.rows, i, i+1)
	}
	if err != nil {
		return
	}
	s.log = append(s.log, e)
	if e.op != insert {
		s.now.cascade(e)
	}
}

func (s *source) orphan(child row, parent string) bool {
	return parent != "" && child.uniq != "" && !slices.ContainsFunc(s.now[parent].rows, func(p row) bool { return p.key == child.uniq })
}
