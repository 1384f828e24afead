package streamer

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/copydb/copydb/internal/applier"
	"github.com/copydb/copydb/internal/mysqlconn"
	"github.com/copydb/copydb/internal/table"
	"github.com/copydb/copydb/state"
	"github.com/go-mysql-org/go-mysql/replication"
	"github.com/google/uuid"
)

// Flags of MariaDB's GTID event that the library has no names for.
const (
	mariadbPreparedXA  = 64
	mariadbCompletedXA = 128
)

// MariaDB's extra flags, in a byte of their own.
const (
	mariadbStartAlter    = 2
	mariadbRollbackAlter = 8
	mariadbKnownExtra    = 1 | mariadbStartAlter | 4 | mariadbRollbackAlter | 16 // engines, COMMIT ALTER, thread id
	mariadbGTIDHeader    = 13                                                    // before what flags say is there; zeros fill the event up to 19
)

// group is the transaction that is being read.
type group struct {
	gtid   string
	add    func() // moves the reader's set over it
	inside state.Position
	// open says that the group goes on until its commit; else its one statement
	// is all of it.
	open bool
	xa   bool // its changes may wait for another group's XA COMMIT
	// mayRollBack says that it may end in a ROLLBACK although it is logged: the
	// servers do that where a table was changed whose engine does not roll back.
	mayRollBack bool
	idle        bool // its statement did nothing: the start of an ALTER in two phases, or one that was given up

	committedAt time.Time
	changes     []applier.Change
	bytes       int64
	handed      int          // changes that were handed over in parts
	undoable    bool         // some of them would be undone by a rollback
	spill       *spill       // changes behind those, before the ones in memory; nil where there are none
	lost        []spillTable // see spillEnd
	ended       string       // the spill file that the group was the end of
	marks       []mark
	named       map[string]int // the marks that can be rolled back to
	layouts     map[*replication.TableMapEvent]*layout
	cascading   bool // foreign keys have carried on a change of the statement that goes on
	ddl         *DDL
	created     []table.Name // by CREATE TABLE … SELECT
}

// mark is a savepoint: how many changes were there.
type mark struct {
	name string // in lower case
	at   int
}

func (r *reader) mysqlGroup(h *replication.EventHeader, e *replication.GTIDEvent) error {
	g := &group{committedAt: committedAt(h, e.ImmediateCommitTimestamp)}
	if h.EventType != replication.ANONYMOUS_GTID_EVENT {
		id, err := uuid.FromBytes(e.SID)
		if err != nil {
			return err
		}
		tag := e.Tag.String()
		g.gtid = id.String() + ":"
		if tag != "" {
			g.gtid += tag + ":"
		}
		g.gtid += strconv.FormatInt(e.GNO, 10)
		g.add = func() { r.set.AddMySQL(id, tag, e.GNO) }
	}
	return r.begin(g)
}

func (r *reader) mariadbGroup(h *replication.EventHeader, e *replication.MariadbGTIDEvent, body []byte) error {
	id := e.GTID
	id.ServerID = h.ServerID
	g := &group{gtid: id.String(), committedAt: committedAt(h, 0), open: !e.IsStandalone(),
		xa: e.Flags&mariadbPreparedXA != 0, mayRollBack: e.Flags&replication.BINLOG_MARIADB_FL_TRANSACTIONAL == 0,
		add: func() { r.set.AddMariaDB(id.DomainID, id.ServerID, id.SequenceNumber) }}
	extra, err := mariadbExtra(e.Flags, body)
	if err != nil {
		return err
	}
	g.idle = extra&(mariadbStartAlter|mariadbRollbackAlter) != 0
	if err := r.begin(g); err != nil {
		return err
	}
	if extra&^mariadbKnownExtra != 0 {
		return r.stop(table.Name{}, "", fmt.Sprintf("a transaction with flags that are not known (%#x)", extra), "")
	}
	return nil
}

// mariadbExtra reads the flags behind those that the library knows; 0 where the
// event has none.
func mariadbExtra(flags byte, body []byte) (byte, error) {
	at := mariadbGTIDHeader
	if flags&replication.BINLOG_MARIADB_FL_GROUP_COMMIT_ID != 0 {
		at += 8
	}
	if flags&(mariadbPreparedXA|mariadbCompletedXA) != 0 {
		if len(body) < at+6 {
			return 0, errors.New("a GTID event ends inside its XID")
		}
		at += 6 + int(body[at+4]) + int(body[at+5])
	}
	if len(body) <= at {
		return 0, nil
	}
	return body[at], nil
}

func committedAt(h *replication.EventHeader, micros uint64) time.Time {
	if micros != 0 {
		return time.UnixMicro(int64(micros)).UTC()
	}
	return time.Unix(int64(h.Timestamp), 0).UTC()
}

func (r *reader) begin(g *group) error {
	if r.group != nil {
		return r.stop(table.Name{}, "", "a transaction begins inside another one", "")
	}
	g.inside = r.here()
	if r.cfg.Version.Flavor == mysqlconn.MariaDB && !r.cfg.byFile() {
		g.inside = state.Position{} // may be the file of another server than the tables' starts
	}
	if r.cfg.Version.Flavor == mysqlconn.MySQL && g.gtid == "" {
		g.mayRollBack = true // with GTIDs MySQL does not mix engines in a transaction
	}
	g.layouts = map[*replication.TableMapEvent]*layout{}
	r.group = g
	if g.gtid == "" && r.cfg.GTIDs {
		return r.stop(table.Name{}, "", "a transaction without a GTID on a source that gives them (gtid_mode was changed)",
			"start over with gtid_mode at one value")
	}
	return nil
}

// ensure opens a group for an event that has none: servers older than 5.7 write
// no event in front of it.
func (r *reader) ensure(h *replication.EventHeader) error {
	if r.group != nil {
		return nil
	}
	return r.begin(&group{committedAt: committedAt(h, 0)})
}

// end closes the group at its last event.
func (r *reader) end(h *replication.EventHeader, rolledBack bool) error {
	if err := r.ensure(h); err != nil {
		return err
	}
	g := r.group
	if rolledBack {
		if err := r.cut(0); err != nil {
			return err
		}
	}
	if g.spill != nil {
		if err := r.unspill(); err != nil {
			return err
		}
	}
	if r.behind != 0 {
		r.pos = r.behind
	}
	tx := &Transaction{Start: r.at, GTID: g.gtid, CommittedAt: g.committedAt, Changes: g.changes, Bytes: g.bytes,
		DDL: g.ddl, Streamed: r.here(), SpillEnded: g.ended}
	if r.known || r.behind != 0 {
		tx.End = resumable(r.here())
	}
	r.at = r.here()
	if r.scan != nil {
		r.scan.end(r.at)
	}
	if r.set != nil && g.add != nil {
		g.add()
	}
	r.group = nil
	return r.pass(tx)
}

// part makes room once a group takes too much: what is certain is handed over,
// what may be undone or waits for another group goes to a file.
func (r *reader) part() error {
	g := r.group
	switch {
	case g.bytes <= r.cfg.PartBytes:
		return nil
	case g.xa || g.mayRollBack || g.spill != nil || len(g.marks) > 0:
		return r.spillOut()
	}
	return r.handOver()
}

// handOver gives what there is of a group to the handler.
func (r *reader) handOver() error {
	g := r.group
	for i := range g.changes {
		g.undoable = g.undoable || g.changes[i].Table.Transactional()
	}
	tx := &Transaction{Start: r.at, GTID: g.gtid, CommittedAt: g.committedAt, Changes: g.changes, Bytes: g.bytes,
		Partial: true, Streamed: r.here()}
	g.handed += len(g.changes)
	g.changes, g.bytes = nil, 0
	return r.pass(tx)
}

// spillOut moves what there is of a group to its file.
func (r *reader) spillOut() error {
	g := r.group
	if g.spill == nil {
		s, err := createSpill(r.cfg.StatePath)
		if err != nil {
			return err
		}
		g.spill = s
	}
	for i := range g.changes {
		if err := g.spill.add(&g.changes[i]); err != nil {
			return err
		}
	}
	g.changes, g.bytes = nil, 0
	return nil
}

// unspill hands over what a group has in its file, which counts now.
func (r *reader) unspill() error {
	g := r.group
	s, tail := g.spill, g.changes
	g.spill, g.changes, g.bytes = nil, nil, 0
	defer s.discard()
	if err := s.replay(r.spilledTable, r.retake); err != nil {
		return err
	}
	for i := range tail {
		g.take(tail[i])
	}
	return nil
}

// retake takes a change out of a spill file.
func (r *reader) retake(c applier.Change) error {
	g := r.group
	if g.xa && r.tables.covered(c.Table.FullName(), g) {
		return nil
	}
	g.take(c)
	if g.bytes <= r.cfg.PartBytes {
		return nil
	}
	return r.handOver()
}

// savepoint remembers where the group is, in place of an older one of that name;
// names compare without case.
func (r *reader) savepoint(name string) {
	g := r.group
	if g.named == nil {
		g.named = map[string]int{}
	}
	name = strings.ToLower(name)
	g.named[name] = len(g.marks)
	g.marks = append(g.marks, mark{name, g.handed + g.spilled() + len(g.changes)})
}

func (g *group) spilled() int {
	if g.spill == nil {
		return 0
	}
	return g.spill.end.Count
}

// rollbackTo undoes what followed a savepoint, and those behind it. The servers
// log rows that they undo where a table is involved that cannot be rolled back.
func (r *reader) rollbackTo(name string) error {
	g := r.group
	i, known := g.named[strings.ToLower(name)]
	if !known {
		return r.stop(table.Name{}, "", "a rollback to a savepoint that is not in the log", "")
	}
	for k := i + 1; k < len(g.marks); k++ {
		if g.named[g.marks[k].name] == k {
			delete(g.named, g.marks[k].name)
		}
	}
	g.marks = g.marks[:i+1]
	return r.cut(g.marks[i].at)
}

// cut undoes the changes from number at on, but for those of tables whose
// engine doesn't roll back.
func (r *reader) cut(at int) error {
	g := r.group
	if at < g.handed && g.undoable {
		return r.stop(table.Name{}, "", "a large transaction rolls back changes of which a part is applied already",
			"start over: only a new copy has all rows")
	}
	from := max(at-g.handed, 0)
	if g.spill != nil {
		from = g.spill.rollBack(from)
	}
	kept := g.changes[:from]
	for _, c := range g.changes[from:] {
		if !c.Table.Transactional() {
			kept = append(kept, c)
		}
	}
	clear(g.changes[len(kept):])
	g.changes = kept
	g.bytes = 0
	for i := range kept {
		g.bytes += size(&kept[i])
	}
	return nil
}
