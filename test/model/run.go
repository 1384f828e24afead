package model

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

const (
	maxEvents  = 40 // of the log: a history stays small enough to read
	maxCrashes = 4
	maxEnds    = 3 // how often a finished copy is resumed
)

// world is one history: two servers, what a user keeps of the state file, and
// the runs one after the other.
type world struct {
	choices *choices // of what happens to the runs
	fault   *fault
	source  *source
	target  *target
	saved   []progress // states of the JSON file, oldest first
	narrow  bool       // a column of the target is too narrow for wide
	crashes int
	trace   []line
}

// line is one line of a history, made into text for a reader only.
type line struct {
	format string
	args   []any
}

func say(format string, args ...any) line { return line{format, args} }

func (l line) String() string { return fmt.Sprintf(l.format, l.args...) }

func (w *world) note(format string, args ...any) { w.trace = append(w.trace, say(format, args...)) }

func (w *world) noteLog(from int) {
	for i, e := range w.source.log[from:] {
		w.note("    log %d: %v", from+i, e)
	}
}

// play goes through the history that choices of the source and of the runs are,
// and returns what is wrong with it.
func play(source, c *choices, f *fault, names []string) (*world, error) {
	w := &world{choices: c, fault: f, source: newSource(source, names)}
	w.target = newTarget(w.source)
	w.note("tables %v", w.source.names)
	w.noteLog(0)
	w.narrow = c.rarely(6)
	if c.rarely(4) {
		w.note("the target has the unique keys from the start")
		for _, t := range w.target.now().tables {
			t.uniques = t.schema.uniques
		}
	}
	for ends := 0; ends < maxEnds; {
		r := &run{world: w}
		switch err := r.run(); {
		case errors.Is(err, errCrash):
			continue
		case errors.Is(err, errStop):
			w.note("stopped, and the column is made wider")
			w.narrow = false
			continue
		case err != nil:
			return w, err
		}
		if err := w.compare(r.end); err != nil {
			return w, err
		}
		if ends++; c.n(3) == 0 {
			break
		}
	}
	return w, nil
}

// compare says how the target differs from the source at a place of its log.
func (w *world) compare(place int) error {
	for _, name := range w.source.names {
		want, got := w.source.at[place][name].sorted(), w.target.now().tables[name].sorted()
		if !slices.Equal(want, got) {
			return fmt.Errorf("at %d %s is %v, source %v", place, name, got, want)
		}
	}
	return nil
}

// run is one process, from its start to its end or death.
type run struct {
	world *world
	epoch int
	end   int // the place where it finished
}

func (r *run) kept() progress { return r.world.target.now().kept }

func (r *run) run() error {
	if err := r.takeOver(); err != nil {
		return err
	}
	if err := r.copy(); err != nil {
		return err
	}
	if err := r.catchUp(); err != nil {
		return err
	}
	if r.world.fault == markerRemoved {
		return r.step(say("remove the bookkeeping"), func(d *database) error {
			d.dropped = true
			return nil
		})
	}
	return nil
}

// takeOver raises the epoch, and believes the target. It may begin at an earlier
// place than it has to.
func (r *run) takeOver() error {
	w := r.world
	w.endZombie()
	r.epoch = w.target.now().epoch + 1
	w.note("run with epoch %d, target at %d", r.epoch, w.target.now().kept.low)
	return w.target.commit(func(d *database) error {
		d.epoch = r.epoch
		if n := len(w.saved); n > 0 && w.fault == jsonBelieved && w.saved[n-1].ahead(d.kept) {
			d.kept = w.saved[n-1].clone()
		}
		if n := len(w.saved); n > 0 && d.dropped {
			d.dropped, d.kept = false, w.saved[n-1-w.choices.n(n)].clone()
			clear(d.kept.markers)
		}
		if d.kept.image > 0 {
			d.kept.low = r.earlier(d.kept)
		}
		// What a dead run began may be there in part: the target is an image only behind it.
		if d.kept.image > 0 && w.fault != highWaterIgnored {
			d.kept.image = max(d.kept.image, d.kept.high)
		}
		return nil
	})
}

// ahead reports whether a state file knows of more than the target does.
func (p progress) ahead(target progress) bool {
	return p.low > target.low || len(p.done) > len(target.done)
}

// earlier is any end of a transaction from which the log can be replayed once
// more: no DDL was carried out behind it.
func (r *run) earlier(p progress) int {
	place := p.low
	for range r.world.choices.n(4) {
		before := r.resumable(max(place-1, 0))
		if before < r.firstStart() || p.definedFrom(before) {
			break
		}
		place = before
	}
	return place
}

func (p progress) definedFrom(place int) bool {
	for defined := range p.journal {
		if defined >= place {
			return true
		}
	}
	return false
}

// save writes the JSON file, now and then.
func (r *run) save() {
	if r.world.choices.n(2) == 0 {
		r.world.saved = append(r.world.saved, r.kept().clone())
	}
}

// exact reports whether a table's changes are applied once each.
func (r *run) exact(name string) bool {
	return component(name) != nil && (r.world.fault != cascadesOverChunks || name == "bare")
}

// String is the history for a reader.
func (w *world) String() string {
	var b strings.Builder
	for _, l := range w.trace {
		fmt.Fprintln(&b, l)
	}
	return b.String()
}
