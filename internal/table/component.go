package table

import (
	"slices"
	"strings"
)

// Components numbers the groups of tables, from 1 on, whose rows change or keep
// from changing together by foreign keys, given that the source does not log
// what CASCADE and SET NULL do. Tables that are in none are left out. Fold says
// that names differing in case only are one.
//
// A cascade ties child and parent. Every other child of both is tied to them,
// too: its rows may refuse the cascade. So is a parent where the cascade is one
// of ON UPDATE: the server looks for its row when a key that points at it is
// among the columns that change.
func Components(tables []*Table, fold bool) map[Name]int {
	ties := newTies(tables, fold)
	moved := map[*Table]bool{}   // a cascade begins or ends there
	updated := map[*Table]bool{} // one of ON UPDATE does
	ties.each(func(child, parent *Table, fk *ForeignKey) {
		if fk.Cascades() {
			moved[child], moved[parent] = true, true
		}
		if Cascades(fk.OnUpdate) {
			updated[child], updated[parent] = true, true
		}
	})
	ties.each(func(child, parent *Table, fk *ForeignKey) {
		if fk.Cascades() || moved[parent] || updated[child] {
			ties.join(child, parent)
		}
	})
	return ties.number()
}

// EachForeign calls fn for each foreign key whose parent is among the tables.
func EachForeign(tables []*Table, fold bool, fn func(child, parent *Table, fk *ForeignKey)) {
	newTies(tables, fold).each(fn)
}

// Tie says of a table, and of each of its foreign keys, whether they are in one
// of the components.
func (t *Table) Tie(components map[Name]int, fold bool) {
	t.Component = components[t.FullName()]
	names := map[Name]int{}
	for n, c := range components {
		names[n.Folded(fold)] = c
	}
	for i := range t.Foreign {
		fk := &t.Foreign[i]
		fk.Tied = t.Component != 0 && names[fk.Parent().Folded(fold)] == t.Component
	}
}

// TiedForeign returns the clauses of Parts.Foreign of the keys that are inside
// the table's component.
func (t *Table) TiedForeign() []string {
	return slices.DeleteFunc(t.Part(true).Foreign, func(clause string) bool {
		return !slices.ContainsFunc(t.Foreign, func(fk ForeignKey) bool {
			return fk.Tied && strings.HasPrefix(clause, "ADD CONSTRAINT "+Quote(fk.Name)+" ")
		})
	})
}

// ties joins tables to groups.
type ties struct {
	tables []*Table
	byName map[Name]*Table
	next   map[*Table]*Table // towards the one that stands for the group
	fold   bool
}

func newTies(tables []*Table, fold bool) *ties {
	s := &ties{tables: slices.Clone(tables), byName: map[Name]*Table{}, next: map[*Table]*Table{}, fold: fold}
	slices.SortFunc(s.tables, func(a, b *Table) int { return a.FullName().Compare(b.FullName()) })
	for _, t := range s.tables {
		s.byName[t.FullName().Folded(fold)] = t
	}
	return s
}

// each calls fn for each foreign key whose parent is among the tables.
func (s *ties) each(fn func(child, parent *Table, fk *ForeignKey)) {
	for _, child := range s.tables {
		for i := range child.Foreign {
			fk := &child.Foreign[i]
			if parent := s.byName[fk.Parent().Folded(s.fold)]; parent != nil {
				fn(child, parent, fk)
			}
		}
	}
}

func (s *ties) root(t *Table) *Table {
	for s.next[t] != nil && s.next[t] != t {
		t = s.next[t]
	}
	return t
}

func (s *ties) join(a, b *Table) {
	to := s.root(a)
	s.next[to] = to
	s.next[s.root(b)] = to
}

// number numbers the groups in the order of their first names.
func (s *ties) number() map[Name]int {
	numbers := map[*Table]int{}
	out := map[Name]int{}
	for _, t := range s.tables {
		if s.next[t] == nil {
			continue
		}
		root := s.root(t)
		if numbers[root] == 0 {
			numbers[root] = len(numbers) + 1
		}
		out[t.FullName()] = numbers[root]
	}
	return out
}
