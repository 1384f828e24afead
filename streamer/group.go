package streamer

import (
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

// group is the transaction that is being read.
type group struct {
	gtid   string
	add    func() // moves the reader's set over it
	inside state.Position
	// open says that the group goes on until its commit; else its one statement
	// is all of it.
	open     bool
	xa       bool // its changes may wait for another group's XA COMMIT
	prepared bool // they certainly do

	committedAt time.Time
	changes     []applier.Change
	bytes       int64
	memory      arena
	handed      int  // changes that were handed over in parts
	undoable    bool // some of them would be undone by a rollback
	marks       []mark
	layouts     map[*replication.TableMapEvent]*layout
	ddl         *DDL
	created     []table.Name // by CREATE TABLE … SELECT
}

// mark is a savepoint: how many changes were there.
type mark struct {
	name string
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

func (r *reader) mariadbGroup(h *replication.EventHeader, e *replication.MariadbGTIDEvent) error {
	id := e.GTID
	id.ServerID = h.ServerID
	g := &group{gtid: id.String(), committedAt: committedAt(h, 0), open: !e.IsStandalone(),
		xa: e.Flags&mariadbPreparedXA != 0, prepared: e.Flags&mariadbPreparedXA != 0,
		add: func() { r.set.AddMariaDB(id.DomainID, id.ServerID, id.SequenceNumber) }}
	return r.begin(g)
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
	if r.behind != 0 {
		r.pos = r.behind
	}
	tx := &Transaction{Start: r.at, GTID: g.gtid, CommittedAt: g.committedAt, Changes: g.changes, Bytes: g.bytes,
		DDL: g.ddl, Streamed: r.here()}
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

// part hands over what there is of a large group. A group of an XA transaction
// is kept whole: whether it counts is known at its end.
func (r *reader) part() error {
	g := r.group
	if g.bytes <= r.cfg.PartBytes {
		return nil
	}
	if g.xa {
		if g.bytes <= 8*r.cfg.PartBytes {
			return nil
		}
		return r.stop(table.Name{}, "", "a large XA transaction is not supported yet", "")
	}
	for i := range g.changes {
		g.undoable = g.undoable || g.changes[i].Table.Transactional()
	}
	tx := &Transaction{Start: r.at, GTID: g.gtid, CommittedAt: g.committedAt, Changes: g.changes, Bytes: g.bytes,
		Partial: true, Streamed: r.here()}
	g.handed += len(g.changes)
	g.changes, g.bytes, g.memory = nil, 0, arena{}
	return r.pass(tx)
}

// savepoint remembers where the group is.
func (r *reader) savepoint(name string) {
	g := r.group
	g.drop(name)
	g.marks = append(g.marks, mark{name, g.handed + len(g.changes)})
}

// drop forgets an older savepoint of that name; names compare without case.
func (g *group) drop(name string) {
	for i, m := range g.marks {
		if strings.EqualFold(m.name, name) {
			g.marks = append(g.marks[:i:i], g.marks[i+1:]...)
			return
		}
	}
}

// rollbackTo undoes what followed a savepoint. The servers log rows that they
// undo where a table is involved that cannot be rolled back.
func (r *reader) rollbackTo(name string) error {
	g := r.group
	for i := len(g.marks) - 1; i >= 0; i-- {
		if strings.EqualFold(g.marks[i].name, name) {
			at := g.marks[i].at
			g.marks = g.marks[:i+1]
			return r.cut(at)
		}
	}
	return r.stop(table.Name{}, "", "a rollback to a savepoint that is not in the log", "")
}

// cut undoes the changes from number at on, but for those of tables whose
// engine doesn't roll back.
func (r *reader) cut(at int) error {
	g := r.group
	if at < g.handed && g.undoable {
		return r.stop(table.Name{}, "", "a large transaction rolls back changes of which a part is applied already",
			"let the next run hold more of a transaction in memory, or start over")
	}
	from := max(at-g.handed, 0)
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
	for i := range g.marks {
		g.marks[i].at = min(g.marks[i].at, g.handed+len(kept))
	}
	return nil
}
