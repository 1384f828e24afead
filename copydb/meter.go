package copydb

import (
	"sync"
	"time"

	"github.com/copydb/copydb/state"
)

// meter counts what the run moves, for reports and for telling whether anything
// moves at all.
type meter struct {
	mu           sync.Mutex
	rows, bytes  int64 // copied by this run
	transactions int64 // applied by this run
	applied      int64 // row changes
	lag          time.Duration
	lagKnown     bool
	distance     int64 // bytes of the log to its end; -1 = not known
	backlog      int64 // bytes of changes that are read and not applied
	forecast     forecast
	touched      int64
	phases       []PhaseTotal
	since        time.Time
	base         PhaseTotal
	points       []point // recent, for rates
}

type point struct {
	at          time.Time
	rows, bytes int64
}

// enter ends the phase before and begins p, unless that is under way.
func (m *meter) enter(p state.Phase) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.base.Phase == p {
		return false
	}
	m.closePhase()
	m.base = PhaseTotal{Phase: p, Rows: m.rows + m.applied, Bytes: m.bytes}
	m.since, m.points = time.Now(), nil
	return true
}

func (m *meter) closePhase() {
	if m.base.Phase == "" || m.base.Phase == state.PhaseDone {
		return
	}
	m.phases = append(m.phases, PhaseTotal{Phase: m.base.Phase, Seconds: time.Since(m.since).Seconds(),
		Rows: m.rows + m.applied - m.base.Rows, Bytes: m.bytes - m.base.Bytes})
	m.base.Phase = ""
}

func (m *meter) copied(rows, bytes int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.rows += rows
	m.bytes += bytes
	m.touched++
}

func (m *meter) bytesCopied() int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.bytes
}

func (m *meter) caught(transactions, changes, bytes int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.transactions += transactions
	m.applied += changes
	m.bytes += bytes
	m.touched++
}

// built notes that an index was made, or that the run pauses because it is told
// to: nothing else may move meanwhile.
func (m *meter) built() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.touched++
}

// behind notes how far the target is from the source. It reports whether the
// source has been writing faster than the target takes it.
func (m *meter) behind(lag time.Duration, known bool, distance int64) (outrun bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now()
	m.lag, m.lagKnown, m.distance = lag, known, distance
	m.forecast.add(now, distance)
	return m.forecast.outrun(now)
}

// follows begins a catch-up: nothing is read ahead, and nothing known of the end.
func (m *meter) follows() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.backlog, m.forecast, m.distance, m.lagKnown = 0, forecast{warned: m.forecast.warned}, -1, false
}

// readAhead notes that bytes of changes wait for the target, or that they were
// applied where negative.
func (m *meter) readAhead(bytes int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.backlog += bytes
}

// moved changes with everything that was done on the target.
func (m *meter) moved() int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.touched
}

// moves is what this run has moved so far.
func (m *meter) moves() state.Throughput {
	m.mu.Lock()
	defer m.mu.Unlock()
	return state.Throughput{Rows: m.rows + m.applied, Bytes: m.bytes, Transactions: m.transactions}
}

// sample fills the figures of a report; rates are over the last half minute.
// left is what is still to be copied, as estimated.
func (m *meter) sample(rec *ProgressRecord, left amount) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now()
	rec.Rows, rec.Bytes, rec.Transactions = m.rows+m.applied, m.bytes, m.transactions
	rec.RowsTotal, rec.BytesTotal = m.rows+left.rows, m.bytes+left.bytes
	rec.LagSeconds, rec.DistanceBytes, rec.BacklogBytes, rec.ETASeconds = -1, m.distance, m.backlog, -1
	if m.lagKnown {
		rec.LagSeconds = m.lag.Seconds()
	}
	m.points = append(m.points, point{now, rec.Rows, rec.Bytes})
	for len(m.points) > 2 && now.Sub(m.points[0].at) > 30*time.Second {
		m.points = m.points[1:]
	}
	first := m.points[0]
	if d := now.Sub(first.at).Seconds(); d > 0 {
		rec.RowsPerSecond = float64(rec.Rows-first.rows) / d
		rec.BytesPerSecond = float64(rec.Bytes-first.bytes) / d
		rec.ETASeconds = eta(left, amount{rec.Rows - first.rows, rec.Bytes - first.bytes}, now.Sub(first.at))
	}
	if left, ok := m.forecast.left(); ok && rec.Phase == state.PhaseCatchUp {
		rec.ETASeconds = left.Seconds()
	}
}

// totals ends the phase under way and returns all that was counted.
func (m *meter) totals(s *SummaryRecord) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closePhase()
	s.Rows, s.Bytes, s.Transactions, s.Phases = m.rows+m.applied, m.bytes, m.transactions, m.phases
}
