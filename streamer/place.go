package streamer

import (
	"log/slog"

	"github.com/copydb/copydb/internal/mysqlconn"
	"github.com/copydb/copydb/internal/position"
	"github.com/copydb/copydb/internal/table"
	"github.com/copydb/copydb/state"
	"github.com/go-mysql-org/go-mysql/replication"
)

// eventHeader is the length of what precedes an event's body.
const eventHeader = replication.EventHeaderSize

// rotate follows the log into another file. A fake event comes after each
// connect and with each file opened; it is news only where a file ended without
// a rotate event of its own, because its server died.
func (r *reader) rotate(h *replication.EventHeader, e *replication.RotateEvent) error {
	fake := h.LogPos == 0 || h.Flags&replication.LOG_EVENT_ARTIFICIAL_F != 0
	next := string(e.NextLogName)
	if fake && (next == r.file || r.file == "") {
		if r.file == "" {
			r.file, r.pos = next, e.Position
		}
		return nil
	}
	if err := r.abandon(); err != nil {
		return err
	}
	r.file, r.pos = next, e.Position
	r.turned = true // handed over once the file's description is known
	return nil
}

// abandon drops a group that its file does not end: its server died before the
// commit, so it never happened.
func (r *reader) abandon() error {
	g := r.group
	if g == nil {
		return nil
	}
	if g.handed > 0 {
		return r.stop(table.Name{}, "", "the file ends inside a transaction of which a part is applied already",
			"start over: only a new copy has all rows")
	}
	r.cfg.Logger.Warn("binary log file ends inside a transaction, which is dropped", slog.String("position", r.here().String()))
	r.dropSpill()
	r.group = nil
	if r.scan != nil {
		r.scan.forget()
	}
	return nil
}

// heartbeat moves the position of an idle source.
func (r *reader) heartbeat(h *replication.EventHeader, e *replication.HeartbeatEvent) error {
	if r.group != nil {
		return nil
	}
	if e.Filename != "" && e.Filename != r.file {
		r.file, r.pos = e.Filename, 0
	}
	switch {
	case e.Version == 2 && e.Offset > 0:
		r.pos = max(r.pos, e.Offset)
	case h.LogPos > 0:
		r.pos = after(r.pos, h.LogPos)
	}
	return r.moved()
}

// moved hands over a boundary that is no group's end.
func (r *reader) moved() error {
	now := r.here()
	if c, ok := position.Compare(now, r.at); ok && c < 0 {
		return nil // a dump by GTIDs begins in front of the start
	}
	tx := &Transaction{Start: r.at}
	r.at = now
	tx.End, tx.Streamed = resumable(now), now
	return r.pass(tx)
}

// resumable returns p where a dump can be asked to start there, else nothing.
func resumable(p state.Position) state.Position {
	if p.Pos > position.MaxFilePos || p.Pos == 0 {
		return state.Position{}
	}
	return p
}

// pass gives a transaction to the handler.
func (r *reader) pass(tx *Transaction) error {
	if r.set != nil {
		tx.executed = r.set.Clone()
	}
	tx.SpillFiles = r.spilled
	if r.fingerprintFile == r.file {
		tx.Fingerprint = r.fingerprint
	}
	err := r.hand(tx)
	r.handled = err
	return err
}

// list takes over the set that a MariaDB file begins with, if none is known: it
// is complete, unlike what was read since the start. Of several entries of one
// domain the last one counts. MySQL's set is always known from the start.
func (r *reader) list(e *replication.MariadbGTIDListEvent) error {
	if r.set != nil || r.group != nil || !r.known {
		return nil
	}
	r.set = position.NewSet(mysqlconn.MariaDB)
	for _, g := range e.GTIDs {
		r.set.AddMariaDB(g.DomainID, g.ServerID, g.SequenceNumber)
	}
	return nil
}
