package copydb

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/copydb/copydb/copydb/config"
	"github.com/copydb/copydb/internal/group"
	"github.com/copydb/copydb/internal/mysqlconn"
	"github.com/copydb/copydb/internal/progress"
)

const (
	beatEvery = 500 * time.Millisecond
	askLimit  = 10 * time.Second // for one question to a replica
	// maxBeats bounds the beats that are remembered for a replica that lags: more
	// than an hour's.
	maxBeats = 10_000
)

// beats are the heartbeats that the target has committed and some replica has
// not got. The lag of a replica is the age of the oldest one that it lacks, by
// this process's clock: no clock of a server counts, nor what a replica that is
// cut off from its source believes of its lag.
type beats struct {
	mu   sync.Mutex
	list []beat
	last int64
	seen map[string]int64 // by replica, the newest that it has got; 0 = none yet
}

type beat struct {
	number int64
	at     time.Time // when the target had committed it
}

func (b *beats) next() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.last + 1
}

func (b *beats) committed(number int64, at time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.last = number
	if len(b.list) >= maxBeats { // every second one tells nearly the same
		for i := range maxBeats / 2 {
			b.list[i] = b.list[2*i]
		}
		b.list = b.list[:maxBeats/2]
	}
	b.list = append(b.list, beat{number, at})
}

// got notes what a replica has, and forgets what all have.
func (b *beats) got(replica string, number int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.seen[replica] = max(b.seen[replica], number)
	least := number
	for _, n := range b.seen {
		least = min(least, n)
	}
	b.list = slices.Delete(b.list, 0, b.lacking(least))
}

// lacking is the place of the oldest beat that comes after number.
func (b *beats) lacking(number int64) int {
	i, _ := slices.BinarySearchFunc(b.list, number+1, func(x beat, n int64) int { return cmp.Compare(x.number, n) })
	return i
}

// lag is how far a replica is behind, and whether it has got any beat.
func (b *beats) lag(replica string, now time.Time) (lag time.Duration, known bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	seen := b.seen[replica]
	if i := b.lacking(seen); i < len(b.list) {
		lag = now.Sub(b.list[i].at)
	}
	return lag, seen > 0
}

// beat writes heartbeats on the target, into its binary log.
func (r *run) beat(ctx context.Context, b *beats) error {
	c, err := r.openDDL(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	if err := progress.EnsureHeartbeat(ctx, c); err != nil {
		return err
	}
	for {
		n := b.next()
		if err := r.prog.Beat(ctx, c, r.runID, n); err != nil {
			return err
		}
		b.committed(n, time.Now())
		if err := group.Pause(ctx, beatEvery); err != nil {
			return err
		}
	}
}

// replicaWatch has the run pause while one replica of the target lags.
type replicaWatch struct {
	r       *run
	name    string
	server  *mysqlconn.Server
	beats   *beats
	conn    *mysqlconn.Control
	version mysqlconn.Version
	pausing bool
	stuck   time.Time // since when it does not get on by itself; zero: it does
}

func (r *run) newReplicaWatch(c config.Server, b *beats) (*replicaWatch, error) {
	name := "replica " + net.JoinHostPort(c.Host, strconv.Itoa(c.Port))
	s, err := newServer(name, c, "")
	b.seen[name] = 0
	return &replicaWatch{r: r, name: name, server: s, beats: b}, err
}

func (w *replicaWatch) run(ctx context.Context) error {
	defer w.server.Close()
	defer w.hangUp()
	for {
		asked := w.ask(ctx)
		if err := context.Cause(ctx); err != nil {
			return err
		}
		if err := w.judge(ctx, asked); err != nil {
			return err
		}
		if err := group.Pause(ctx, beatEvery); err != nil {
			return err
		}
	}
}

func (w *replicaWatch) hangUp() {
	if w.conn != nil {
		w.conn.Close()
		w.conn = nil
	}
}

// ask reads which beat has come to the replica. One that does not answer may be
// less behind than it is known to be.
func (w *replicaWatch) ask(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	err := w.open(ctx)
	if err == nil {
		var n int64
		if n, err = w.r.prog.LastBeat(ctx, w.conn, w.r.runID); err == nil {
			w.beats.got(w.name, n)
			return nil
		}
	}
	w.hangUp()
	return err
}

func (w *replicaWatch) open(ctx context.Context) (err error) {
	if w.conn != nil {
		return nil
	}
	if w.conn, err = w.server.Open(ctx); err != nil {
		return err
	}
	id, err := w.conn.Identify(ctx)
	w.version = id.Version
	return err
}

// judge has the run pause from max_lag on until the replica has made up for half
// of it.
func (w *replicaWatch) judge(ctx context.Context, asked error) error {
	most := w.r.opt.Config.Throttle.TargetReplicaMaxLag
	lag, known := w.beats.lag(w.name, time.Now())
	switch {
	case !known && lag <= most:
		return nil // what it lacks is not known before the first beat has come
	case lag <= most/2, lag <= most && !w.pausing:
		w.pausing, w.stuck = false, time.Time{}
		w.r.throttle.set(w.name, "")
		return nil
	}
	why, stuck := w.cause(ctx, asked, known)
	if why == "" {
		why = fmt.Sprintf("lags %s (throttle.target_replica_max_lag: %s)", lag.Round(time.Second/10), most)
		if !known {
			why += "; it has not got the first row of _copydb.heartbeat"
		}
	}
	w.pausing = true
	w.r.throttle.set(w.name, w.name+" "+why)
	return w.bound(why, stuck)
}

// cause is what keeps the replica from getting on by itself, if anything does.
func (w *replicaWatch) cause(ctx context.Context, asked error, known bool) (why string, stuck bool) {
	var all []mysqlconn.Replication
	if asked == nil {
		ctx, cancel := context.WithTimeout(ctx, askLimit)
		defer cancel()
		all, asked = w.conn.Replication(ctx, w.version)
	}
	if asked != nil {
		w.hangUp()
		return fmt.Sprintf("cannot be asked: %v", asked), true
	}
	if len(all) == 0 {
		return "does not replicate", true
	}
	switch s := mysqlconn.From(all, w.r.facts.Target.Identity); {
	case !s.Receives:
		return "does not receive from its source" + errorText(s.ReceiveErr), true
	case !s.Applies:
		return "does not apply what it receives" + errorText(s.ApplyErr), true
	case !known && s.Behind >= 0 && s.Behind <= w.r.opt.Config.Throttle.TargetReplicaMaxLag:
		return "says that it hardly lags, and has not got what is written to _copydb.heartbeat: its filters must let that through", true
	}
	return "", false
}

func errorText(number string) string {
	if number == "" || number == "0" {
		return ""
	}
	return " (error " + number + ")"
}

// bound ends the run where the replica has not got on by itself for the retry
// timeout.
func (w *replicaWatch) bound(why string, stuck bool) error {
	limit := w.r.opt.Config.RetryTimeout
	switch {
	case !stuck:
		w.stuck = time.Time{}
	case w.stuck.IsZero():
		w.stuck = time.Now()
	case time.Since(w.stuck) > limit:
		return &Error{Code: ExitResumable, Where: w.name, Message: fmt.Sprintf("for %s it %s", limit, why),
			Next: "mend its replication, or take it out of throttle.target_replicas, then resume: " + w.r.resumeCommand()}
	}
	return nil
}
