package model

import (
	"errors"
	"fmt"
	"slices"
)

// catchUp applies the log from low-water until the target is an image of the
// source at a stop point.
func (r *run) catchUp() error {
	w := r.world
	for place := r.kept().low; ; {
		if r.isImage(place) {
			if err := r.buildUniques(place); err != nil {
				return err
			}
			if place == len(w.source.log) || w.choices.rarely(4) {
				w.note("finished at %d", place)
				r.end = place
				return nil
			}
		}
		var err error
		if place, err = r.forward(place); err != nil {
			return err
		}
		if r.world.choices.n(4) == 1 {
			w.pass()
		}
	}
}

// forward applies what comes at a place, and returns the next one.
func (r *run) forward(place int) (int, error) {
	if r.world.source.log[place].ddl() {
		return place + 1, r.define(place)
	}
	to := r.cut(place)
	if err := r.window(place, to); !errors.Is(err, errStop) {
		return to, err
	}
	return r.oneByOne(place, to)
}

// oneByOne applies the transactions of a window that failed up to the one that
// does.
func (r *run) oneByOne(place, to int) (int, error) {
	for place < to {
		next := r.world.source.boundary(place + 1)
		if err := r.window(place, next); err != nil {
			return place, err
		}
		place = next
	}
	return place, nil
}

// isImage reports whether a place is an end of a transaction at which the target
// is an image of the source.
func (r *run) isImage(place int) bool {
	return place >= r.kept().image && place == r.world.source.boundary(place)
}

func (r *run) buildUniques(place int) error {
	for _, name := range r.world.source.names {
		t := r.world.target.now().tables[name]
		if t.uniques || !t.schema.uniques {
			continue
		}
		err := r.schemaStep(say("build unique keys of %s at %d", name, place), func(d *database) error {
			return d.tables[name].build()
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// cut says where the window from a place ends: before a DDL at the latest. It
// may be in the middle of a transaction.
func (r *run) cut(from int) int {
	to := from + 1 + r.world.choices.n(8)
	for i := from; i < to; i++ {
		if i == len(r.world.source.log) || r.world.source.log[i].ddl() {
			return i
		}
	}
	return to
}

// window applies a part of the log: high-water first, then parts in any order,
// low-water when all of them are committed.
func (r *run) window(from, to int) error {
	high := func() error {
		return r.step(say("window %d to %d", from, to), func(d *database) error {
			d.kept.high = max(d.kept.high, to)
			return nil
		})
	}
	low := func() error {
		err := r.step(say("low-water %d", r.resumable(to)), func(d *database) error {
			d.kept.low = max(d.kept.low, r.resumable(to))
			return nil
		})
		r.save()
		return err
	}
	steps := []func() error{high}
	if r.world.fault == checkpointFirst {
		steps = append(steps, low)
	}
	steps = append(steps, r.parts(from, to)...)
	if r.world.fault != checkpointFirst {
		steps = append(steps, low)
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// resumable is the last end of a transaction at or before a place.
func (r *run) resumable(place int) int {
	for place > 0 && !r.world.source.log[place-1].last {
		place--
	}
	return place
}

// parts are the transactions of a window on the target, in any order but for
// that between deletes and writes in one of the ways.
func (r *run) parts(from, to int) []func() error {
	w := r.world
	way := way(w.choices.n(int(ways)))
	switch w.fault {
	case classSpread:
		way = ways // none
	case windowsOverlap:
		way = inClass
	}
	var parts []func() error
	for _, units := range way.rounds(r.units(from, to, way)) {
		for _, part := range w.deal(units) {
			parts = append(parts, func() error {
				return r.step(say("  part %v", part), func(d *database) error { return w.apply(d, part) })
			})
		}
	}
	if w.fault == updateWhere || w.fault == cascadesOverChunks {
		parts = append(parts, r.inOrder(from, to)) // there are no others
	}
	if exact := r.exactEvents(from, to); len(exact) > 0 {
		parts = slices.Insert(parts, w.choices.n(len(parts)+1), r.exactPart(exact, to))
	}
	return parts
}

// exactPart makes all exact changes of a window in log order, and moves the
// markers with them.
func (r *run) exactPart(exact []event, to int) func() error {
	return func() error {
		return r.step(say("  exact part %v", exact), func(d *database) error {
			for _, e := range exact {
				if r.world.narrow && e.after.val == wide {
					return errStop
				}
				if err := once(d, e); err != nil {
					return err
				}
			}
			for name := range d.kept.markers {
				d.kept.markers[name] = to
			}
			return nil
		})
	}
}

// exactEvents are those of a window that the markers do not cover, in log order.
func (r *run) exactEvents(from, to int) []event {
	var events []event
	for i, e := range r.world.source.log[from:to] {
		if place := from + i; r.exact(e.table) && place >= r.kept().start[e.table] && place >= r.kept().markers[e.table] {
			events = append(events, e)
		}
	}
	return events
}

var errExact = errors.New("a change of an exact table does not hit one row")

// once makes a change to one row of an exact table, and what cascades from it.
func once(d *database, e event) error {
	t := d.tables[e.table]
	i := t.find(e.before)
	if e.op != insert && i < 0 {
		return fmt.Errorf("%w: %v", errExact, e)
	}
	switch e.op {
	case insert:
		if err := t.insert(e.after); err != nil {
			return fmt.Errorf("%v: %w", e, err)
		}
		return nil
	case update:
		t.rows[i] = e.after
	case remove:
		t.rows = append(t.rows[:i], t.rows[i+1:]...)
	}
	d.tables.cascade(e)
	return nil
}

// inOrder applies changes as they were logged: what two faults do.
func (r *run) inOrder(from, to int) func() error {
	events := r.world.source.log[from:to]
	start := r.kept().start
	return func() error {
		return r.step(say("  in order"), func(d *database) error {
			for i, e := range events {
				if !r.exact(e.table) && from+i >= start[e.table] {
					r.world.naive(d, e)
				}
			}
			return nil
		})
	}
}

func (w *world) naive(d *database, e event) {
	t := d.tables[e.table]
	switch i := t.find(e.before); {
	case e.op == insert:
		t.replace(e.after)
	case w.fault == cascadesOverChunks:
		t.deleteKey(e.before.key)
		if e.op == update {
			t.replace(e.after)
		}
		d.tables.cascade(e)
	case i < 0: // UPDATE … WHERE and DELETE … WHERE that find no row
	case e.op == update:
		t.rows = append(t.rows[:i], t.rows[i+1:]...)
		t.replace(e.after)
	case e.op == remove:
		t.rows = append(t.rows[:i], t.rows[i+1:]...)
	}
}
