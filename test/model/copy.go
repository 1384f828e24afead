package model

import (
	"fmt"
	"slices"
	"strings"
)

// Two chunks are enough: a row may move from one to the other.
var chunks = []int{0, 1}

func chunkOf(key string) int {
	if strings.ToLower(key) < "b" {
		return 0
	}
	return 1
}

func chunkName(table string, n int) string { return fmt.Sprintf("%s/%d", table, n) }

// copy copies what is not there yet, and then takes a place behind the last
// snapshot.
func (r *run) copy() error {
	for {
		var todo []string
		for _, name := range r.world.source.names {
			if !r.copied(name) {
				todo = append(todo, name)
			}
		}
		if len(todo) == 0 {
			break
		}
		name := pick(r.world.choices, todo)
		copyTable := r.copyChunks
		if r.exact(name) {
			copyTable = r.copyExact
		}
		if err := copyTable(name); err != nil {
			return err
		}
	}
	if r.kept().image > 0 {
		return nil
	}
	image := len(r.world.source.log)
	if r.world.fault == consistentTooEarly {
		image = r.firstStart()
	}
	return r.step(say("the target will be an image at %d", image), func(d *database) error {
		d.kept.image = max(image, d.kept.high)
		if d.kept.low == 0 { // no window yet
			d.kept.low = r.firstStart()
		}
		return nil
	})
}

func (r *run) firstStart() int {
	first := len(r.world.source.log)
	for _, place := range r.kept().start {
		first = min(first, place)
	}
	return first
}

func (r *run) copied(name string) bool {
	p := r.kept()
	return !slices.ContainsFunc(chunks, func(n int) bool { return !p.done[chunkName(name, n)] })
}

// copyChunks reads chunks of a converging table, each at an instant of its own,
// and loads them in any order.
func (r *run) copyChunks(name string) error {
	w := r.world
	if _, begun := r.kept().start[name]; !begun {
		if err := r.begin(name); err != nil {
			return err
		}
	}
	var loads []func() error
	for _, n := range chunks {
		if !r.kept().done[chunkName(name, n)] {
			loads = append(loads, r.read(name, n))
			w.pass()
		}
	}
	shuffle(w.choices, loads)
	loads = loads[:1+w.choices.n(len(loads))] // another worker's, or read again
	for _, load := range loads {
		if err := load(); err != nil {
			return err
		}
	}
	return nil
}

// begin empties the table and takes its start: a place that every later snapshot
// sees.
func (r *run) begin(name string) error {
	start := r.world.source.visible
	if r.world.fault == startInvisible {
		start = len(r.world.source.log)
	}
	return r.step(say("begin %s at %d", name, start), func(d *database) error {
		d.tables[name].rows = nil
		d.kept.start[name] = start
		return nil
	})
}

// read reads a chunk and returns what loads it.
func (r *run) read(name string, n int) func() error {
	w := r.world
	rows := slices.DeleteFunc(w.source.snapshot(name), func(have row) bool { return chunkOf(have.key) != n })
	end := len(w.source.log)
	what := say("load %s, read at %d: %v", chunkName(name, n), w.source.visible, rows)
	return func() error {
		err := r.step(what, func(d *database) error {
			d.kept.done[chunkName(name, n)] = true
			d.kept.until[name] = max(d.kept.until[name], end)
			return w.load(d.tables[name], rows)
		})
		r.save()
		return err
	}
}

func (s *source) snapshot(name string) []row { return slices.Clone(s.at[s.visible][name].rows) }

// load is LOAD DATA … REPLACE in strict mode.
func (w *world) load(t *table, rows []row) error {
	for _, row := range rows {
		switch refused := w.narrow && row.val == wide; {
		case w.fault == insertIgnore:
			if refused {
				row.val = row.val[:1]
			}
			_ = t.insert(row)
		case w.fault == repaired && !refused:
			_ = t.insert(row)
		case refused:
			return errStop
		default:
			t.replace(row)
		}
	}
	return nil
}

// copyExact copies a component in one snapshot, from empty.
func (r *run) copyExact(name string) error {
	w := r.world
	names, start := component(name), w.source.visible
	rows := map[string][]row{}
	for _, name := range names {
		rows[name] = w.source.snapshot(name)
	}
	err := r.step(say("empty %v for a snapshot at %d", names, start), func(d *database) error {
		for _, name := range names {
			d.tables[name].rows = nil
			delete(d.kept.markers, name)
		}
		return w.load(d.tables[names[0]], rows[names[0]])
	})
	if err != nil {
		return err
	}
	err = r.step(say("load %v", names), func(d *database) error {
		for i, name := range names {
			d.kept.start[name], d.kept.markers[name] = start, start
			for _, n := range chunks {
				d.kept.done[chunkName(name, n)] = true
			}
			if i > 0 {
				if err := w.load(d.tables[name], rows[name]); err != nil {
					return err
				}
			}
		}
		return nil
	})
	r.save()
	return err
}
