package model

import (
	"errors"
	"maps"
)

// progress is what _copydb on the target keeps.
type progress struct {
	low     int             // resumable: all before it is wholly committed
	high    int             // the end of the newest window begun
	start   map[string]int  // of each table whose copy was begun
	done    map[string]bool // chunks
	until   map[string]int  // the log's end at a table's last chunk
	markers map[string]int  // of exact tables
	journal map[int]entry   // of DDL, by place
	image   int             // consistent_at; 0: not known
}

// entry says which tables a DDL will find, and whether it was seen to end.
type entry struct {
	ids       []int
	confirmed bool
}

func (p progress) clone() progress {
	p.start, p.done, p.until = maps.Clone(p.start), maps.Clone(p.done), maps.Clone(p.until)
	p.markers, p.journal = maps.Clone(p.markers), maps.Clone(p.journal)
	return p
}

// database is all that a target holds; a commit makes a new one.
type database struct {
	tables  tables
	epoch   int
	kept    progress
	ids     int
	ddl     bool // the commit that made it was a DDL: it and all before it are on disk
	dropped bool // the bookkeeping was removed
}

func (d *database) clone() *database {
	c := *d
	c.tables, c.kept, c.ddl = d.tables.clone(), d.kept.clone(), false
	return &c
}

// target is the server that is copied to. The last of its states is what a
// client sees; a crash may put it back to an earlier one.
type target struct {
	states []*database
	zombie func(*database) error // sent by a run that is dead, not yet carried out
}

func newTarget(s *source) *target {
	d := &database{tables: tables{}, kept: progress{
		start: map[string]int{}, done: map[string]bool{}, until: map[string]int{}, markers: map[string]int{}, journal: map[int]entry{},
	}}
	for _, name := range s.names {
		d.ids++
		d.tables[name] = &table{schema: schemas[name], id: d.ids}
	}
	return &target{states: []*database{d}}
}

func (t *target) now() *database { return t.states[len(t.states)-1] }

func (t *target) commit(write func(*database) error) error {
	d := t.now().clone()
	if err := write(d); err != nil {
		return err
	}
	t.states = append(t.states, d)
	return nil
}

// forget is a crash of the target that drops commits which were acknowledged but
// are not on disk. It ends all sessions, and what they were waiting for.
func (t *target) forget(n int) {
	for ; n > 0 && len(t.states) > 1 && !t.now().ddl; n-- {
		t.states = t.states[:len(t.states)-1]
	}
}

var (
	errCrash  = errors.New("crash")
	errFenced = errors.New("another run has taken over")
	errStop   = errors.New("a row the target cannot hold")
)

// step is one transaction of the run on the target. Before it the source goes
// on, and the run may die: with the transaction done, not done, or still to be
// done when the next run is at work already.
func (r *run) step(what line, write func(*database) error) error {
	w := r.world
	w.pass()
	fenced := func(d *database) error {
		if d.epoch != r.epoch && w.fault != noFence {
			return errFenced
		}
		return write(d)
	}
	if w.crashes < maxCrashes && w.choices.rarely(10) {
		w.crashes++
		return w.crash(what, fenced)
	}
	w.note("%v", what)
	return w.target.commit(fenced)
}

// schemaStep is a statement on the schema. Nothing fences it, so a resume waits
// for its end first: a crash leaves it done or not done.
func (r *run) schemaStep(what line, write func(*database) error) error {
	w := r.world
	ddl := func(d *database) error {
		d.ddl = true
		return write(d)
	}
	w.pass()
	w.note("%v", what)
	if w.crashes < maxCrashes && w.choices.rarely(10) {
		w.crashes++
		if w.choices.n(2) == 0 {
			w.note("crash before")
			return errCrash
		}
		w.note("crash after")
		return errors.Join(w.target.commit(ddl), errCrash)
	}
	return w.target.commit(ddl)
}

func (w *world) crash(what line, write func(*database) error) error {
	switch w.choices.n(3) {
	case 0:
		w.note("crash before: %v", what)
	case 1:
		w.note("crash after: %v", what)
		if err := w.target.commit(write); err != nil {
			return err
		}
	case 2:
		w.note("crash while it waits: %v", what)
		w.target.zombie = write
	}
	if n := w.choices.n(6); n > 2 {
		n := min(n-2, len(w.target.states)-1)
		w.note("the target forgets %d commits", n)
		w.target.forget(n)
		if w.fault != sessionReopened {
			w.target.zombie = nil
		}
	}
	return errCrash
}

// pass lets time pass: the source commits, the target ends what a dead run sent.
func (w *world) pass() {
	c := w.choices
	switch c.n(4) {
	case 2, 3:
		if len(w.source.log) < maxEvents {
			w.sourceMoves()
		}
	}
	w.source.see(c)
	w.endZombie()
}

// endZombie is, perhaps, the end of what a dead run sent.
func (w *world) endZombie() {
	z := w.target.zombie
	if z == nil || w.choices.n(3) != 1 {
		return
	}
	w.target.zombie = nil
	if err := w.target.commit(z); err != nil {
		w.note("the dead run's transaction fails: %v", err)
	} else {
		w.note("the dead run's transaction ends")
	}
}

func (w *world) sourceMoves() {
	from := len(w.source.log)
	if w.source.choices.rarely(12) {
		w.source.define()
	} else {
		w.source.transact()
	}
	w.noteLog(from)
}

// idsOf are the TABLE_IDs of the tables that have these names now.
func (d *database) idsOf(names []string) []int {
	var ids []int
	for _, name := range names {
		ids = append(ids, d.tables[name].id)
	}
	return ids
}
