package copydb

import "time"

const (
	forecastOver = time.Minute      // how far back the forecast looks
	forecastStep = time.Second      // between the distances that it keeps
	forecastMin  = 5 * time.Second  // less says nothing
	outrunAgain  = 10 * time.Minute // between two warnings of the same
)

// forecast tells from how the distance to the source's end changes when there
// will be none left.
type forecast struct {
	points []distanceAt // oldest first
	warned time.Time
}

type distanceAt struct {
	at    time.Time
	bytes int64 // of log, to its end
}

// add takes a distance; one that is not known (-1) is left out.
func (f *forecast) add(at time.Time, bytes int64) {
	if n := len(f.points); bytes < 0 || n > 0 && at.Sub(f.points[n-1].at) < forecastStep {
		return
	}
	f.points = append(f.points, distanceAt{at, bytes})
	for at.Sub(f.points[0].at) > forecastOver {
		f.points = f.points[1:]
	}
}

// left is how long catching up takes if all goes on as it does; false where that
// is not known, or never.
func (f *forecast) left() (time.Duration, bool) {
	over, closer := f.change()
	if over < forecastMin || closer <= 0 {
		return 0, false
	}
	now := float64(f.points[len(f.points)-1].bytes)
	return time.Duration(now / float64(closer) * float64(over)), true
}

// change is by how many bytes the end came closer, and in which time.
func (f *forecast) change() (over time.Duration, closer int64) {
	if len(f.points) < 2 {
		return 0, 0
	}
	first, last := f.points[0], f.points[len(f.points)-1]
	return last.at.Sub(first.at), first.bytes - last.bytes
}

// outrun reports, not too often, that the source has been writing faster than
// the target takes it.
func (f *forecast) outrun(now time.Time) bool {
	over, closer := f.change()
	if over < forecastOver-2*forecastStep || closer >= 0 || now.Sub(f.warned) < outrunAgain {
		return false
	}
	f.warned = now
	return true
}
