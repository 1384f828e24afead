package testdb

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/copydb/copydb/test/servers"
	"github.com/go-sql-driver/mysql"
)

// ScratchDatabase is where a load keeps copies of rows of the tables that it
// writes to, on the same server. It is dropped by Stop. A migration that runs
// under load should not select it.
const ScratchDatabase = "copydb_load_scratch"

const (
	defaultSessions  = 4
	defaultRate      = 250
	defaultBigEvery  = 5 * time.Second
	defaultBigRows   = 1000
	maxLoadTableSize = 4 << 20 // bytes in long columns of a table that is written to by copies of rows
	stopLoadTimeout  = 30 * time.Second
)

// LoadOptions say what a load writes.
type LoadOptions struct {
	// Databases whose tables are written to: those of CreateLoadTables with
	// every kind of change, all other InnoDB tables that have a primary key
	// with inserts, updates and deletes of whole rows and of single columns.
	Databases []string
	// Exclude names tables, as "database.table", that are left alone.
	Exclude []string
	// Sessions that write at the same time; 0 means 4.
	Sessions int
	// Rate is the changes (rows) per second of all sessions together that the
	// load holds itself to, if the server can; 0 means 250, below 0 as many as
	// it can. The rows of big transactions don't count for it.
	Rate int
	// BigEvery is how often a transaction of BigRows rows runs; 0 means every
	// 5 s, below 0 never.
	BigEvery time.Duration
	// BigRows is the number of rows of a big transaction; 0 means 1000.
	BigRows int
	// Seed makes the choices of each session repeat; 0 means a random one,
	// which the test's log names.
	Seed uint64
}

// LoadResult is what a load has done.
type LoadResult struct {
	Changes    int64 // rows inserted, updated and deleted, those of big transactions included; rolled back ones not
	BigChanges int64 // rows of big transactions
	Commits    int64
	Elapsed    time.Duration
	Errors     map[uint16]int64 // by the server's error number, 0 for a broken connection; each was rolled back
}

// Rate returns the changes per second, without big transactions.
func (r LoadResult) Rate() float64 {
	return float64(r.Changes-r.BigChanges) / r.Elapsed.Seconds()
}

// Generator is a set of sessions that write until they are stopped.
type Generator struct {
	t       testing.TB
	srv     *servers.Server
	options LoadOptions
	load    []*table // of CreateLoadTables
	other   []*scratch
	began   time.Time
	cancel  context.CancelFunc
	stop    chan struct{} // closed to let each session end after its transaction
	once    sync.Once
	wait    sync.WaitGroup

	mu     sync.Mutex
	result LoadResult
}

// StartLoad starts writing to a server and returns when the sessions are about
// to. They go on over deadlocks, lock waits, refused rows and restarts of the
// server. Stop ends them; so does the end of the test.
func StartLoad(t testing.TB, srv *servers.Server, o LoadOptions) *Generator {
	t.Helper()
	o.fillDefaults()
	t.Logf("load: %d sessions, %d changes/s, seed %d", o.Sessions, o.Rate, o.Seed)
	l := &Generator{t: t, srv: srv, options: o, stop: make(chan struct{}), result: LoadResult{Errors: map[uint16]int64{}}}
	if err := l.prepare(t.Context()); err != nil {
		t.Fatalf("prepare load: %v", err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	l.cancel, l.began = cancel, time.Now()
	for i := range o.Sessions {
		l.wait.Go(func() { l.session(ctx, i) })
	}
	t.Cleanup(func() { l.Stop() })
	return l
}

func (o *LoadOptions) fillDefaults() {
	if o.Sessions == 0 {
		o.Sessions = defaultSessions
	}
	if o.Rate == 0 {
		o.Rate = defaultRate
	}
	if o.BigEvery == 0 {
		o.BigEvery = defaultBigEvery
	}
	if o.BigRows == 0 {
		o.BigRows = defaultBigRows
	}
	if o.Seed == 0 {
		o.Seed = rand.Uint64()
	}
}

// prepare finds the tables and copies rows of those that are not of
// CreateLoadTables.
func (l *Generator) prepare(ctx context.Context) error {
	conn, err := pin(ctx, l.srv)
	if err != nil {
		return err
	}
	defer conn.Close()
	all, err := tables(ctx, conn, l.options.Databases)
	if err != nil {
		return err
	}
	excluded := map[string]bool{}
	for _, name := range l.options.Exclude {
		excluded[name] = true
	}
	var others []*table
	for _, t := range all {
		switch {
		case excluded[t.String()] || t.engine != "InnoDB" || len(t.key) == 0:
		case isLoadTable(t):
			l.load = append(l.load, t)
		default:
			others = append(others, t)
		}
	}
	if len(others) > 0 {
		if l.other, err = copyToScratch(ctx, conn, others); err != nil {
			return err
		}
	}
	if len(l.load)+len(l.other) == 0 {
		return fmt.Errorf("no table with a primary key in %q", l.options.Databases)
	}
	return nil
}

func isLoadTable(t *table) bool {
	var names []string
	for _, c := range t.columns {
		names = append(names, c.name)
	}
	return strings.HasPrefix(t.name, "load") && strings.Join(names, ",") == "id,k,u,c,pad,b,ts"
}

// Stop lets each session finish its transaction, ends them, drops the scratch
// database and returns what was done. After Stop nothing of the load is
// written any more. It may be called twice, and from any goroutine.
func (l *Generator) Stop() LoadResult {
	l.once.Do(func() {
		close(l.stop)
		hard := time.AfterFunc(stopLoadTimeout, l.cancel) // for a server that does not answer
		l.wait.Wait()
		hard.Stop()
		l.cancel()
		l.mu.Lock()
		l.result.Elapsed = time.Since(l.began)
		l.mu.Unlock()
		l.dropScratch()
		r := l.Result()
		l.t.Logf("load: %d changes in %.1f s (%.0f/s without big ones), %d commits, errors %v",
			r.Changes, r.Elapsed.Seconds(), r.Rate(), r.Commits, r.Errors)
	})
	return l.Result()
}

// Result returns what was done so far. It may be called from any goroutine.
func (l *Generator) Result() LoadResult {
	l.mu.Lock()
	defer l.mu.Unlock()
	r := l.result
	if r.Elapsed == 0 {
		r.Elapsed = time.Since(l.began)
	}
	r.Errors = map[uint16]int64{}
	for number, n := range l.result.Errors {
		r.Errors[number] = n
	}
	return r
}

func (l *Generator) dropScratch() {
	if len(l.other) == 0 || !l.srv.Running() {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), stopLoadTimeout)
	defer cancel()
	if _, err := l.srv.DB().ExecContext(ctx, "DROP DATABASE IF EXISTS "+ScratchDatabase); err != nil {
		l.t.Logf("load: drop scratch database: %v", err)
	}
}

// session writes until it is stopped, over any number of connections.
func (l *Generator) session(ctx context.Context, number int) {
	w := &writer{load: l, rand: rand.New(rand.NewPCG(l.options.Seed, uint64(number)))}
	defer w.disconnect()
	began, nextBig := time.Now(), time.Now().Add(l.options.BigEvery)
	paced := int64(0)
	for !l.stopped(ctx, 0) {
		big := number == 0 && l.options.BigEvery > 0 && len(l.load) > 0 && time.Now().After(nextBig)
		n, err := w.transaction(ctx, big)
		l.count(n, big, err)
		if big {
			nextBig = time.Now().Add(l.options.BigEvery)
		} else {
			paced += n
		}
		if err != nil && w.conn == nil {
			l.stopped(ctx, 100*time.Millisecond) // the server is away
		}
		if l.options.Rate > 0 {
			due := time.Duration(float64(paced) * float64(l.options.Sessions) / float64(l.options.Rate) * float64(time.Second))
			l.stopped(ctx, time.Until(began.Add(due)))
		}
	}
}

// stopped waits and tells whether the load is to end, at once if it is.
func (l *Generator) stopped(ctx context.Context, wait time.Duration) bool {
	if wait <= 0 {
		select {
		case <-l.stop:
			return true
		default:
			return ctx.Err() != nil
		}
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-l.stop:
		return true
	case <-ctx.Done():
		return true
	case <-timer.C:
		return false
	}
}

func (l *Generator) count(n int64, big bool, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err != nil {
		var server *mysql.MySQLError
		number := uint16(0)
		if errors.As(err, &server) {
			number = server.Number
		}
		if l.result.Errors[number]++; l.result.Errors[number] == 1 {
			l.t.Logf("load: first of its kind: %v", err)
		}
		return
	}
	l.result.Changes += n
	l.result.Commits++
	if big {
		l.result.BigChanges += n
	}
}
