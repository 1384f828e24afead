package copydb

import (
	"fmt"
	"time"

	"github.com/copydb/copydb/copydb/config"
	"github.com/copydb/copydb/internal/position"
	"github.com/copydb/copydb/state"
)

// givenStop takes the stop point from the configuration, where one is given.
func (c *catcher) givenStop() error {
	u := c.r.opt.Config.CatchUp.Until
	if u.Word != "" {
		return nil
	}
	stop := state.Position{File: u.File, Pos: u.Pos, GTIDSet: u.GTID}
	c.stop = &stop
	image := c.r.sourceState().ConsistentAt
	if image == nil || position.Reached(c.flavor, stop, *image) {
		return nil
	}
	if cmp, ok := position.Compare(stop, *image); ok && cmp < 0 {
		return c.stopsTooEarly(fmt.Sprintf("the stop point lies before %s, from where on the target is an image of the source", image))
	}
	return nil
}

func (c *catcher) stopsTooEarly(message string) error {
	return &Error{Code: ExitResumable, Where: c.stop.String(), Message: message,
		Next: "give a later one with --until, or none, and resume: " + c.r.resumeCommand()}
}

// atStop reports whether the window reaches the stop point.
func (c *catcher) atStop() bool {
	return c.stop != nil && c.reaches(*c.stop)
}

// reaches reports whether the window, or what the target has, reaches p.
func (c *catcher) reaches(p state.Position) bool {
	last := c.win.last
	if last == nil && c.busy != nil {
		last = c.busy.last
	}
	switch {
	case last == nil:
		return position.Reached(c.flavor, c.have, p)
	case last.Partial:
		return false
	}
	if _, ok := position.Compare(last.End, p); ok {
		return position.Reached(c.flavor, last.End, state.Position{File: p.File, Pos: p.Pos})
	}
	return position.Reached(c.flavor, last.EndPosition(), p)
}

// endsConsistent keeps the stop point, if it is reached and the target is an
// image of the source there.
func (c *catcher) endsConsistent() error {
	if !c.atStop() {
		return nil
	}
	if !c.consistent() {
		return c.stopsTooEarly("the stop point is reached before the target is an image of the source")
	}
	if !c.indexed {
		return c.stopsTooEarly("foreign keys have rows without a parent at the stop point, and whether the source had them, too, cannot be told: it has gone on")
	}
	c.r.change(func(st *state.State) { st.Sources[0].StopPoint = c.stop })
	return nil
}

// consistent reports whether everything that a snapshot may have seen is
// applied.
func (c *catcher) consistent() bool {
	src := c.r.sourceState()
	if !c.r.highWater.IsZero() && !position.Reached(c.flavor, c.have, c.r.highWater) {
		return false // rows from up to there may be on the target
	}
	return src.ConsistentAt != nil && position.Reached(c.flavor, c.have, *src.ConsistentAt) ||
		src.SnapshotSeen != nil && src.SnapshotSeen.GTIDSet != "" && position.Reached(c.flavor, c.have, *src.SnapshotSeen)
}

// judgeEnd takes the source's end as the stop point once the lag is under its
// limit.
func (c *catcher) judgeEnd(end sourceEnd) {
	var lag time.Duration
	known := true
	switch {
	case c.win.last == nil && c.busy == nil && position.Reached(c.flavor, c.have, end.at):
	case c.committed.IsZero():
		known = false
	default:
		lag = max(end.now.Sub(c.committed), 0)
	}
	outrun := c.r.meter.behind(lag, known, end.distance(c.have))
	if c.stop != nil || c.r.opt.Config.CatchUp.Until.Word != config.UntilCaughtUp {
		return
	}
	if outrun {
		c.r.log.Warn("the source writes faster than the target takes it: the run does not end by itself unless that changes; --deadline bounds it")
	}
	if c.stopNow || known && lag < c.r.opt.Config.CatchUp.MaxLag && c.consistent() && c.indexed {
		at := end.at
		c.stop = &at
		c.r.stopAt = end.now
		c.r.log.Debug("almost caught up; the stop point is the source's end", "position", at.String())
	}
}
