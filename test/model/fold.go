package model

import (
	"fmt"
	"slices"
	"strings"
)

// net is what a window does to one key: a row as it is at the end, or nothing.
type net struct {
	key string
	row *row // nil: delete
}

func (n net) String() string {
	if n.row == nil {
		return "-" + n.key
	}
	return "+" + n.row.String()
}

// way is how keys that the server holds equal are kept from harm: a delete of one
// removes the row that was written under another.
type way int

const (
	inClass      way = iota // together, deletes before the write
	inLogOrder              // together, as they were changed last
	deletesApart            // all deletes of the window are committed before its first write
	ways
)

// rounds are what is committed one after the other.
func (way way) rounds(units []unit) [][]unit {
	if way != deletesApart {
		return [][]unit{units}
	}
	var deletes, writes []unit
	for _, u := range units {
		if u.nets[0].row == nil {
			deletes = append(deletes, u)
		} else {
			writes = append(writes, u)
		}
	}
	return [][]unit{deletes, writes}
}

// unit is what must stay in one transaction, in its order: one key, or all keys
// of a class that the server holds equal.
type unit struct {
	table, class string
	window       int
	nets         []net
}

func (u unit) String() string { return fmt.Sprint(u.table, u.nets) }

// units folds the changes of converging tables to one net change per key.
func (r *run) units(from, to int, way way) []unit {
	switch r.world.fault {
	case updateWhere, cascadesOverChunks:
		return nil
	case windowsOverlap:
		mid := r.resumable((from + to) / 2)
		if mid > from {
			return append(r.fold(from, mid, inClass), r.fold(mid, to, inClass)...)
		}
	}
	return r.fold(from, to, way)
}

func (r *run) fold(from, to int, way way) []unit {
	f := &folder{fault: r.world.fault, way: way, window: from, inserted: map[string]bool{}}
	for i, e := range r.world.source.log[from:to] {
		if r.exact(e.table) || from+i < r.kept().start[e.table] {
			continue
		}
		if e.op == insert {
			f.inserted[e.table+e.after.key] = true
		}
		if e.op == remove || e.op == update && e.before.key != e.after.key {
			f.put(e.table, net{key: e.before.key})
		}
		if e.op != remove {
			f.put(e.table, net{e.after.key, &e.after})
		}
	}
	if way == inClass {
		for _, u := range f.units {
			deletesFirst(u.nets)
		}
	}
	return slices.DeleteFunc(f.units, func(u unit) bool { return len(u.nets) == 0 })
}

type folder struct {
	fault    *fault
	way      way
	window   int
	units    []unit
	inserted map[string]bool // keys that the window inserts
}

// put keeps n as the last that is known of its key. Keys are the same only if
// their bytes are.
func (f *folder) put(table string, n net) {
	class := f.class(table, n.key)
	i := slices.IndexFunc(f.units, func(u unit) bool { return u.table == table && u.class == class })
	if i < 0 {
		i = len(f.units)
		f.units = append(f.units, unit{table: table, class: class, window: f.window})
	}
	u := &f.units[i]
	u.nets = slices.DeleteFunc(u.nets, func(have net) bool {
		return have.key == n.key || f.fault == foldHeldApart && strings.EqualFold(have.key, n.key)
	})
	if n.row == nil && f.fault == cancelledDropped && f.inserted[table+n.key] {
		return
	}
	u.nets = append(u.nets, n)
}

// class is the same for all keys that go together.
func (f *folder) class(table, key string) string {
	if schemas[table].fold && f.way < deletesApart || f.fault == foldHeldApart {
		return strings.ToLower(key)
	}
	return key
}

func deletesFirst(nets []net) {
	slices.SortStableFunc(nets, func(a, b net) int {
		switch {
		case (a.row == nil) == (b.row == nil):
			return 0
		case a.row == nil:
			return -1
		}
		return 1
	})
}

// deal spreads units over transactions, in any order.
func (w *world) deal(units []unit) [][]unit {
	shuffle(w.choices, units)
	keepWindows(units)
	var parts [][]unit
	for _, u := range units {
		if len(parts) == 0 || w.choices.n(2) == 1 {
			parts = append(parts, nil)
		}
		parts[len(parts)-1] = append(parts[len(parts)-1], u)
	}
	return parts
}

// keepWindows keeps the order of two windows' changes to one key, which a
// connection for each key would.
func keepWindows(units []unit) {
	for i := range units {
		for j := i + 1; j < len(units); j++ {
			if a, b := &units[i], &units[j]; a.table == b.table && a.class == b.class && a.window > b.window {
				*a, *b = *b, *a
			}
		}
	}
}

// apply carries units out: neighbours that write rows of one table are one
// statement.
func (w *world) apply(d *database, units []unit) error {
	var into string
	var rows []row // to be written to it
	flush := func() {
		if len(rows) > 0 {
			w.write(d.tables[into], rows)
		}
		rows = nil
	}
	for _, u := range units {
		for _, n := range u.nets {
			switch {
			case n.row == nil:
				flush()
				d.tables[u.table].deleteKey(n.key)
			case w.narrow && n.row.val == wide:
				return errStop
			default:
				if into != u.table {
					flush()
				}
				into, rows = u.table, append(rows, *n.row)
			}
		}
	}
	flush()
	return nil
}

// write is one statement that writes rows.
func (w *world) write(t *table, rows []row) {
	if i := t.collision(rows[0], -1); i >= 0 && t.rows[i].key != rows[0].key {
		w.note("    turns %v into %v", t.rows[i], rows[0])
	}
	switch w.fault {
	case collisionSkipped:
		for _, r := range rows {
			_ = t.upsert(r)
		}
		return
	case keyLeftOut:
		for i := range rows {
			if met := t.collision(rows[i], -1); met >= 0 {
				rows[i].key = t.rows[met].key
			}
		}
	}
	if t.upsertAll(rows) {
		w.note("    1062, done again as REPLACE")
	}
}
