package streamer

import (
	"errors"
	"fmt"
	"io"

	"github.com/copydb/copydb/internal/mysqlconn"
	"github.com/copydb/copydb/internal/position"
	"github.com/copydb/copydb/internal/table"
	"github.com/copydb/copydb/state"
	"github.com/go-mysql-org/go-mysql/replication"
)

// reader turns events into transactions. It belongs to the goroutine that
// reads; handled and failed are looked at when that has ended.
type reader struct {
	cfg    *Config
	tables *tables
	hand   func(*Transaction) error

	file  string
	pos   uint64 // end of the last event that said where it ends
	known bool   // the event at hand said so
	// behind is where the payload ends whose events are being taken, else 0.
	behind uint64

	at  state.Position // the last boundary: file and place
	set *position.Set  // executed at the last boundary; nil where unknown

	trailer int // length of the checksum behind each event
	group   *group
	memory  arena               // of the changes of all groups: most are much smaller than a piece of it
	raw     rawRows             // of the row event at hand
	ignored map[table.Name]bool // sequences made while we read

	prepared map[string]preparedXA // by XID
	spilled  []string              // the names of their files
	parsers  *parsers

	fingerprint     string
	fingerprintFile string // the file that it is of
	turned          bool   // the log went on to another file, and that is not handed over yet
	probe           bool   // only for a fingerprint
	scan            *scan  // collects in place of decoding; nil in a stream

	handled error // what the handler returned
	failed  error // what the stream found
}

func newReader(cfg *Config, t *tables, hand func(*Transaction) error) *reader {
	r := &reader{cfg: cfg, tables: t, hand: hand,
		ignored: map[table.Name]bool{}, prepared: map[string]preparedXA{},
		at: state.Position{File: cfg.Start.File, Pos: cfg.Start.Pos}}
	r.parsers = newParsers(cfg.Version.Flavor, r.keepRows)
	if cfg.GTIDs && (cfg.Start.GTIDSet != "" || cfg.Version.Flavor == mysqlconn.MySQL || cfg.Start.File == "") {
		r.set, r.failed = position.Parse(cfg.Version.Flavor, cfg.Start.GTIDSet)
	}
	return r
}

// here is the end of the last event, for messages and reports.
func (r *reader) here() state.Position { return state.Position{File: r.file, Pos: r.pos} }

// read makes an event of its bytes and takes it.
func (r *reader) read(raw []byte) error {
	if r.failed != nil {
		return r.failed
	}
	e, err := r.parsers.parse(raw)
	if err != nil {
		r.failed = fmt.Errorf("read binary log of source at %s: %w", r.here(), classify(err))
		return r.failed
	}
	return r.take(e)
}

// take handles one event. Every kind is handled, known to carry nothing, or
// stops the stream.
func (r *reader) take(e *replication.BinlogEvent) error {
	if r.failed != nil {
		return r.failed
	}
	err := r.event(e)
	if err == nil && r.scan != nil && r.scan.done(r) {
		err = errScanned
	}
	if err != nil && r.handled == nil {
		r.failed = err
	}
	return err
}

// move takes over where an event ends. Its header has four bytes for that; in
// one file positions only grow, so each lower number is a step over 4 GiB.
// Events between a transaction's GTID and its end may have none (MariaDB from
// 11.4 on).
func (r *reader) move(h *replication.EventHeader) {
	if r.behind != 0 {
		return
	}
	r.known = h.LogPos != 0 && h.Flags&replication.LOG_EVENT_ARTIFICIAL_F == 0
	if r.known {
		r.pos = after(r.pos, h.LogPos)
	}
}

// after returns the lowest place at or behind pos whose low half is low.
func after(pos uint64, low uint32) uint64 {
	next := pos&^maxUint32 | uint64(low)
	if next < pos {
		next += 1 << 32
	}
	return next
}

func (r *reader) event(e *replication.BinlogEvent) error {
	h := e.Header
	switch h.EventType {
	case replication.ROTATE_EVENT:
		return r.rotate(h, e.Event.(*replication.RotateEvent))
	case replication.FORMAT_DESCRIPTION_EVENT:
		// Where it ends is given only at the start of a file.
		return r.format(h, e.Event.(*replication.FormatDescriptionEvent))
	case replication.HEARTBEAT_EVENT, replication.HEARTBEAT_LOG_EVENT_V2:
		return r.heartbeat(h, e.Event.(*replication.HeartbeatEvent))
	}
	r.move(h)
	switch ev := e.Event.(type) {
	case *replication.MariadbGTIDListEvent:
		return r.list(ev)
	case *replication.GTIDEvent:
		return r.mysqlGroup(h, ev)
	case *replication.GtidTaggedLogEvent:
		return r.mysqlGroup(h, &ev.GTIDEvent)
	case *replication.MariadbGTIDEvent:
		return r.mariadbGroup(h, ev, r.bodyOf(e))
	case *replication.QueryEvent:
		return r.query(h, ev)
	case *replication.XIDEvent:
		return r.end(h, false)
	case *replication.TableMapEvent:
		return nil // looked at with the rows
	case *replication.RowsEvent:
		e.RawData = nil // else the packet stays in memory until the handler has taken its rows
		return r.rows(h, ev)
	}
	return r.otherEvent(e)
}

// otherEvent is event for what the library gives no type of its own, or what
// carries no rows.
func (r *reader) otherEvent(e *replication.BinlogEvent) error {
	switch t := e.Header.EventType; t {
	case replication.TRANSACTION_PAYLOAD_EVENT:
		return r.payload(e)
	case replication.XA_PREPARE_LOG_EVENT:
		return r.xaPrepare(e)
	case replication.EXECUTE_LOAD_QUERY_EVENT:
		return r.load(e)
	case replication.INCIDENT_EVENT:
		return r.stop(table.Name{}, "", "the source lost events here (incident event)",
			"start over: only a new copy has all rows")
	case replication.STOP_EVENT, replication.MARIADB_BINLOG_CHECKPOINT_EVENT, replication.MARIADB_START_ENCRYPTION_EVENT,
		replication.PREVIOUS_GTIDS_EVENT, replication.ROWS_QUERY_EVENT, replication.MARIADB_ANNOTATE_ROWS_EVENT,
		replication.TRANSACTION_CONTEXT_EVENT, replication.VIEW_CHANGE_EVENT, replication.IGNORABLE_EVENT,
		replication.SLAVE_EVENT:
		return nil
	case replication.INTVAR_EVENT, replication.RAND_EVENT, replication.USER_VAR_EVENT,
		replication.BEGIN_LOAD_QUERY_EVENT, replication.APPEND_BLOCK_EVENT, replication.DELETE_FILE_EVENT:
		return nil // the statement that follows decides
	default:
		if e.Header.Flags&replication.LOG_EVENT_IGNORABLE_F != 0 {
			return nil // its writer says that a reader may skip it
		}
		return r.stop(table.Name{}, "", "an event of kind "+t.String()+" is not known", "")
	}
}

// bodyOf returns an event's content without its header and checksum.
func (r *reader) bodyOf(e *replication.BinlogEvent) []byte {
	end := len(e.RawData)
	if r.behind == 0 {
		end -= r.trailer
	}
	if end <= eventHeader {
		return nil
	}
	return e.RawData[eventHeader:end]
}

// payload takes the events of a compressed transaction. Nothing inside is a
// place to resume from: its group ends where the payload ends.
func (r *reader) payload(e *replication.BinlogEvent) error {
	if r.behind != 0 {
		return r.badPayload(errors.New("it is inside another one"))
	}
	in, err := r.parsers.open(r.bodyOf(e))
	if err != nil {
		return r.badPayload(err)
	}
	end := r.pos
	r.pos = max(end, uint64(e.Header.EventSize)) - uint64(e.Header.EventSize)
	r.behind = end
	for {
		raw, err := nextEvent(in)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return r.badPayload(err)
		}
		inner, err := r.parsers.inner.Parse(raw)
		if err != nil {
			return r.badPayload(classify(err))
		}
		if err := r.event(inner); err != nil {
			return err
		}
	}
	r.pos, r.behind = end, 0
	return nil
}

func (r *reader) badPayload(err error) error {
	return r.stop(table.Name{}, "", "a compressed transaction cannot be read: "+err.Error(), "")
}

func (r *reader) stop(n table.Name, column, reason, next string) error {
	return r.found(n, column, reason, next)
}

// found describes something at the event at hand that cannot be applied.
func (r *reader) found(n table.Name, column, reason, next string) *StopError {
	e := &StopError{Position: r.here(), Table: n, Column: column, Reason: reason, Next: next}
	if r.group != nil {
		e.GTID = r.group.gtid
	}
	return e
}
