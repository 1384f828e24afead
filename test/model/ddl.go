package model

import "slices"

// define carries out the DDL at a place, once; all before it is committed.
func (r *run) define(place int) error {
	e := r.world.source.log[place]
	covered, err := r.covered(e, place)
	if err != nil {
		return err
	}
	if !covered {
		if err := r.defineOnce(e, place); err != nil {
			return err
		}
	}
	// Low-water moves behind it at once, or with the next window.
	if r.world.choices.n(2) == 1 || r.world.fault == truncateUnjournaled {
		return nil
	}
	return r.step(say("low-water %d", place+1), func(d *database) error {
		d.kept.low = max(d.kept.low, place+1)
		return nil
	})
}

// covered reports whether the copies of all tables of a DDL began behind it.
// Copies that do not stand on one side of it begin again.
func (r *run) covered(e event, place int) (bool, error) {
	for {
		old, again := r.uncovered(e, place)
		if len(old) == 0 {
			r.world.note("%v at %d is in the copies", e, place)
			return true, nil
		}
		if !again {
			return false, nil
		}
		if err := r.void(e, old); err != nil {
			return false, err
		}
	}
}

// uncovered are the tables of a DDL whose copy began before it. They are copied
// again if the DDL came before the end of their copy, or if the copies of other
// tables of the DDL began behind it: it cannot be carried out on half of them.
func (r *run) uncovered(e event, place int) (old []string, again bool) {
	kept, fault := r.kept(), r.world.fault
	for _, name := range e.names() {
		if kept.start[name] <= place {
			old = append(old, name)
			again = again || kept.until[name] > place && fault != ddlInCopy
		}
	}
	return old, again || len(old) < len(e.names()) && fault != halfCovered
}

// void copies tables again, from a later start.
func (r *run) void(e event, names []string) error {
	err := r.step(say("%v voids the copies of %v", e, names), func(d *database) error {
		for _, name := range names {
			delete(d.kept.start, name)
			delete(d.kept.until, name)
			for _, n := range chunks {
				delete(d.kept.done, chunkName(name, n))
			}
		}
		d.kept.image = 0
		return nil
	})
	if err != nil {
		return err
	}
	return r.copy()
}

// defineOnce keeps a journal: an entry that was not confirmed is decided by the
// TABLE_IDs that the tables have now.
func (r *run) defineOnce(e event, place int) error {
	w := r.world
	j, known := r.kept().journal[place]
	if !known || e.op == truncate && w.fault == truncateUnjournaled {
		j = entry{ids: w.target.now().idsOf(e.names())}
		if err := r.journal(e, place, j); err != nil {
			return err
		}
	}
	if j.confirmed {
		w.note("%v at %d was carried out", e, place)
		return nil
	}
	if slices.Equal(j.ids, w.target.now().idsOf(e.names())) || w.fault == renameTwice {
		if err := r.carryOut(e); err != nil {
			return err
		}
	}
	return r.step(say("confirm %v", e), func(d *database) error {
		d.kept.journal[place] = entry{confirmed: true}
		for name := range d.kept.markers {
			d.kept.markers[name] = max(d.kept.markers[name], place+1)
		}
		return nil
	})
}

// journal says what will be done. From then on the target is not an image of the
// source before the DDL, which high-water says.
func (r *run) journal(e event, place int, j entry) error {
	return r.step(say("journal %v at %d", e, place), func(d *database) error {
		d.kept.journal[place] = j
		if r.world.fault != ddlBelowHighWater {
			d.kept.high = max(d.kept.high, place+1)
		}
		return nil
	})
}

// carryOut runs the DDL on the target, outside of any transaction.
func (r *run) carryOut(e event) error {
	return r.schemaStep(say("carry out %v", e), func(d *database) error {
		d.ids++
		e.define(d.tables, d.ids)
		return nil
	})
}
