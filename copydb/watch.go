package copydb

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/copydb/copydb/internal/group"
	"github.com/copydb/copydb/internal/mysqlconn"
)

// loadEvery is how often the source is asked how busy it is.
const loadEvery = time.Second

// watches are those that the configuration asks for.
func (r *run) watches() ([]watch, error) {
	var out []watch
	if r.opt.Config.Throttle.SourceMaxThreadsRunning > 0 {
		out = append(out, watch{"the source", forSource, r.watchSource})
	}
	replicas, err := r.opt.Config.Replicas()
	if err != nil || len(replicas) == 0 {
		return out, err
	}
	beats := &beats{seen: map[string]int64{}}
	out = append(out, watch{"the target", 0, func(ctx context.Context) error { return r.beat(ctx, beats) }})
	for _, c := range replicas {
		w, err := r.newReplicaWatch(c, beats)
		if err != nil {
			return nil, err
		}
		out = append(out, watch{w.name, forTarget, w.run})
	}
	return out, nil
}

// watchSource has the run pause while the source runs too many threads.
func (r *run) watchSource(ctx context.Context) error {
	most := r.opt.Config.Throttle.SourceMaxThreadsRunning
	conn, err := r.source.OpenProved(ctx, r.facts.Source.Identity)
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := boundIdle(ctx, conn); err != nil {
		return err
	}
	for {
		n, err := r.threadsRunning(ctx, conn)
		if err != nil {
			return err
		}
		why := ""
		if n > most {
			why = fmt.Sprintf("the source runs %d threads (throttle.source_max_threads_running: %d)", n, most)
		}
		r.throttle.set("the source", why)
		if err := group.Pause(ctx, loadEvery); err != nil {
			return err
		}
	}
}

// threadsRunning is the source's Threads_running without the run's own sessions:
// the dump of the log counts as running all the time.
func (r *run) threadsRunning(ctx context.Context, conn *mysqlconn.Control) (int, error) {
	var name string
	var all, ours int
	if err := conn.QueryRow(ctx, []any{&name, &all}, "SHOW GLOBAL STATUS LIKE 'Threads_running'"); err != nil {
		return 0, fmt.Errorf("read Threads_running of the source: %w", err)
	}
	var ids []string
	for _, s := range r.source.Sessions() {
		ids = append(ids, strconv.FormatUint(s.ConnectionID, 10))
	}
	list := processList(r.facts.Source.Identity.Version.Flavor)
	err := conn.QueryRow(ctx, []any{&ours}, "SELECT COUNT(*) FROM "+list+" WHERE COMMAND <> 'Sleep' AND ID IN ("+strings.Join(ids, ", ")+")")
	if err != nil {
		return 0, fmt.Errorf("count the run's own sessions on the source: %w", err)
	}
	return max(all-ours, 0), nil
}
