package model

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// row is a row of any table of the model. "" stands for NULL in uniq and name.
type row struct {
	key  string // primary key; of a table without a key an ordinary column
	uniq string // unique; of a child its parent's key
	name string // unique, compared without case
	val  string
}

func (r row) String() string { return fmt.Sprintf("(%s %s %s %s)", r.key, r.uniq, r.name, r.val) }

// schema says what a server knows of a table.
type schema struct {
	keyed   bool
	fold    bool   // the primary key is compared without case
	uniques bool   // uniq and name are unique
	parent  string // uniq names a row of it, ON UPDATE CASCADE ON DELETE CASCADE
}

var schemas = map[string]schema{
	"keyed":  {keyed: true, uniques: true},
	"swap":   {keyed: true, uniques: true},
	"folded": {keyed: true, fold: true, uniques: true},
	"bare":   {},
	"parent": {keyed: true},
	"child":  {keyed: true, parent: "parent"},
}

// component is a table of the exact class with those that are copied and applied
// together with it, or nil.
func component(name string) []string {
	switch name {
	case "bare":
		return []string{"bare"}
	case "parent", "child":
		return []string{"parent", "child"}
	}
	return nil
}

func (s schema) sameKey(a, b string) bool {
	return a == b || s.fold && strings.EqualFold(a, b)
}

// collides reports whether a server refuses a beside b.
func (s schema) collides(a, b row, uniques bool) bool {
	return s.keyed && s.sameKey(a.key, b.key) ||
		uniques && s.uniques && (a.uniq != "" && a.uniq == b.uniq || a.name != "" && strings.EqualFold(a.name, b.name))
}

// table is a table of a server; uniques says whether its unique keys are there.
type table struct {
	schema  schema
	id      int // InnoDB's TABLE_ID: goes with the rows at RENAME, is new after TRUNCATE
	uniques bool
	rows    []row
}

var errDuplicate = errors.New("1062 duplicate")

func (t *table) clone() *table {
	c := *t
	c.rows = slices.Clone(t.rows)
	return &c
}

// collision is the first row that r meets, the primary key looked at first.
func (t *table) collision(r row, besides int) int {
	for _, uniques := range []bool{false, true} {
		for i, have := range t.rows {
			if i != besides && t.schema.collides(have, r, uniques && t.uniques) {
				return i
			}
		}
	}
	return -1
}

func (t *table) insert(r row) error {
	if t.collision(r, -1) >= 0 {
		return errDuplicate
	}
	t.rows = append(t.rows, r)
	return nil
}

func (t *table) replace(r row) {
	t.rows = slices.DeleteFunc(t.rows, func(have row) bool { return t.schema.collides(have, r, t.uniques) })
	t.rows = append(t.rows, r)
}

// upsert is INSERT … ON DUPLICATE KEY UPDATE of every column: it turns the first
// row that r meets into r, also if that is another row.
func (t *table) upsert(r row) error {
	i := t.collision(r, -1)
	if i < 0 {
		t.rows = append(t.rows, r)
		return nil
	}
	return t.update(i, r)
}

func (t *table) update(i int, r row) error {
	if t.collision(r, i) >= 0 {
		return errDuplicate
	}
	t.rows[i] = r
	return nil
}

// upsertAll is one statement of several rows, done again as REPLACE after 1062.
func (t *table) upsertAll(rows []row) (replaced bool) {
	before := slices.Clone(t.rows)
	for _, r := range rows {
		if t.upsert(r) != nil {
			t.rows = before
			for _, r := range rows {
				t.replace(r)
			}
			return true
		}
	}
	return false
}

func (t *table) deleteKey(key string) {
	t.rows = slices.DeleteFunc(t.rows, func(have row) bool { return t.schema.sameKey(have.key, key) })
}

// find is the first row that equals r in every byte.
func (t *table) find(r row) int { return slices.Index(t.rows, r) }

func (t *table) build() error {
	t.uniques = true
	for i, r := range t.rows {
		if t.collision(r, i) >= 0 {
			return errDuplicate
		}
	}
	return nil
}

// sorted returns the rows in an order in which two copies of a table compare.
func (t *table) sorted() []row {
	rows := slices.Clone(t.rows)
	slices.SortFunc(rows, func(a, b row) int { return strings.Compare(a.String(), b.String()) })
	return rows
}

// tables are those of one server, by name.
type tables map[string]*table

func (ts tables) clone() tables {
	c := tables{}
	for name, t := range ts {
		c[name] = t.clone()
	}
	return c
}

// cascade carries a change of a parent to its children, as the foreign key does.
func (ts tables) cascade(e event) {
	for _, t := range ts {
		if t.schema.parent != e.table || e.before.key == e.after.key {
			continue
		}
		for i := len(t.rows) - 1; i >= 0; i-- {
			switch {
			case t.rows[i].uniq != e.before.key:
			case e.op == remove:
				t.rows = slices.Delete(t.rows, i, i+1)
			default:
				t.rows[i].uniq = e.after.key
			}
		}
	}
}
