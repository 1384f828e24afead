package streamer

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/copydb/copydb/internal/mysqlconn"
	"github.com/copydb/copydb/internal/table"
	"github.com/copydb/copydb/state"
	gomysql "github.com/go-mysql-org/go-mysql/mysql"
	"github.com/go-mysql-org/go-mysql/replication"
)

// These tests hand events to a reader that no server makes on demand: files of
// more than 4 GiB, incidents, kinds of the future, a server that died.

// log is a reader with a log that events are written into.
type log struct {
	*reader
	t   *testing.T
	pos uint64
	all []*Transaction
}

func newLog(t *testing.T, flavor mysqlconn.Flavor, change func(*Config)) *log {
	t.Helper()
	spec := &TableSpec{Structure: &table.Table{Database: "a", Table: "t", Engine: "InnoDB", Columns: []table.Column{{Name: "id", Type: "int", Kind: table.Integer}}}}
	cfg := Config{Source: new(mysqlconn.Server), Version: mysqlconn.Version{Flavor: flavor}, ServerID: 1,
		Start: state.Position{File: "binlog.000001", Pos: 4}, Tables: map[table.Name]*TableSpec{{Database: "a", Table: "t"}: spec},
		StatePath: filepath.Join(t.TempDir(), "state.json")}
	if change != nil {
		change(&cfg)
	}
	s, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	l := &log{t: t, pos: 4}
	l.reader = newReader(&s.cfg, s.tables, func(tx *Transaction) error {
		l.all = append(l.all, tx)
		return nil
	})
	l.fake("binlog.000001")
	return l
}

// write takes an event of size bytes in.
func (l *log) write(kind replication.EventType, size uint64, e replication.Event) error {
	l.pos += size
	return l.take(&replication.BinlogEvent{Event: e,
		Header: &replication.EventHeader{EventType: kind, LogPos: uint32(l.pos), EventSize: uint32(size), Timestamp: 1}})
}

func (l *log) must(kind replication.EventType, size uint64, e replication.Event) {
	l.t.Helper()
	if err := l.write(kind, size, e); err != nil {
		l.t.Fatal(err)
	}
}

// fake opens a file as a server does: with a rotate event that is in no file,
// and the file's description.
func (l *log) fake(file string) {
	l.t.Helper()
	for _, e := range []*replication.BinlogEvent{
		{Event: &replication.RotateEvent{NextLogName: []byte(file), Position: 4},
			Header: &replication.EventHeader{EventType: replication.ROTATE_EVENT, Flags: replication.LOG_EVENT_ARTIFICIAL_F}},
		{Event: &replication.FormatDescriptionEvent{}, Header: &replication.EventHeader{EventType: replication.FORMAT_DESCRIPTION_EVENT, Timestamp: 7}},
	} {
		if err := l.take(e); err != nil {
			l.t.Fatal(err)
		}
	}
	l.pos = 4
}

func (l *log) query(text string) { l.must(replication.QUERY_EVENT, 100, query(text)) }

func query(text string) *replication.QueryEvent {
	return &replication.QueryEvent{Query: []byte(text), Schema: []byte("a")}
}

// insert writes a row into a.t, in an event of size bytes.
func (l *log) insert(size uint64) error {
	return l.write(replication.WRITE_ROWS_EVENTv2, size, l.rowsEvent())
}

// rowsEvent lets the library parse a table map and a row event for it.
func (l *log) rowsEvent() *replication.RowsEvent {
	p := replication.NewBinlogParser()
	p.SetRowsEventDecodeFunc(l.keepRows)
	var last replication.Event
	for _, ev := range []struct {
		kind replication.EventType
		body []byte
	}{
		{replication.FORMAT_DESCRIPTION_EVENT, formatBody()},
		{replication.TABLE_MAP_EVENT, []byte{7, 0, 0, 0, 0, 0, 0, 0, 1, 'a', 0, 1, 't', 0, 1, gomysql.MYSQL_TYPE_LONG, 0, 0}},
		{replication.WRITE_ROWS_EVENTv2, []byte{7, 0, 0, 0, 0, 0, 1, 0, 2, 0, 1, 1, 0, 42, 0, 0, 0}},
	} {
		raw := append(make([]byte, replication.EventHeaderSize), ev.body...)
		raw[4], raw[9] = byte(ev.kind), byte(len(raw))
		e, err := p.Parse(raw)
		if err != nil {
			l.t.Fatal(err)
		}
		last = e.Event
	}
	return last.(*replication.RowsEvent)
}

// formatBody is a description of a file.
func formatBody() []byte {
	format := make([]byte, 2+50+4+1+42+1+4)
	format[0], format[56] = 4, replication.EventHeaderSize
	copy(format[2:], "8.0.40")
	for i := range 42 {
		format[57+i] = 10 // of each event's own header
	}
	return format
}

func TestB1_14_BeyondFourGigabytes(t *testing.T) {
	for _, gtids := range []bool{false, true} {
		l := newLog(t, mysqlconn.MySQL, func(c *Config) { c.GTIDs = gtids })
		gtid := func(n int64) {
			if gtids {
				l.must(replication.GTID_EVENT, 80, &replication.GTIDEvent{SID: make([]byte, 16), GNO: n})
			} else {
				l.must(replication.ANONYMOUS_GTID_EVENT, 80, &replication.GTIDEvent{SID: make([]byte, 16)})
			}
		}
		gtid(1)
		l.query("BEGIN")
		for range 5 {
			if err := l.insert(1 << 30); err != nil {
				t.Fatal(err)
			}
		}
		l.must(replication.XID_EVENT, 31, &replication.XIDEvent{})
		gtid(2)
		l.query("BEGIN")
		l.must(replication.XID_EVENT, 31, &replication.XIDEvent{})
		l.must(replication.ROTATE_EVENT, 40, &replication.RotateEvent{NextLogName: []byte("binlog.000002"), Position: 4})
		l.fake("binlog.000002")
		if len(l.all) != 3 || len(l.all[0].Changes) != 5 {
			t.Fatalf("%d transactions: %v", len(l.all), describe(l.all))
		}
		for i, tx := range l.all[:2] {
			want := state.Position{}
			if gtids {
				want.GTIDSet = []string{"00000000-0000-0000-0000-000000000000:1", "00000000-0000-0000-0000-000000000000:1-2"}[i]
			}
			if got := tx.EndPosition(); got != want || tx.Streamed.Pos < 5<<30 {
				t.Errorf("transaction %d: end %+v, streamed %+v", i, got, tx.Streamed)
			}
		}
		last := l.all[2]
		if last.End != (state.Position{File: "binlog.000002", Pos: 4}) || last.Fingerprint != "binlog.000002@7@" {
			t.Errorf("after the rotation: %+v", last)
		}
	}
}

// TestB1_14_EndsFallBehindFourGigabytes has the numbers of a report: an event
// that ends beyond 4 GiB is one like all others.
func TestB1_14_EndsFallBehindFourGigabytes(t *testing.T) {
	l := newLog(t, mysqlconn.MySQL, func(c *Config) { c.GTIDs = true })
	l.must(replication.GTID_EVENT, 4294962881-4, &replication.GTIDEvent{SID: make([]byte, 16), GNO: 1})
	l.query("BEGIN")
	l.pos = 4294962881
	if err := l.insert(1<<32 + 3601 - 4294962881); err != nil {
		t.Fatal(err)
	}
	l.must(replication.XID_EVENT, 31, &replication.XIDEvent{})
	if len(l.all) != 1 || len(l.all[0].Changes) != 1 || l.all[0].Streamed.Pos != 1<<32+3632 || !l.all[0].End.IsZero() {
		t.Errorf("%+v", l.all)
	}
}

func TestAfter(t *testing.T) {
	for _, c := range []struct {
		pos  uint64
		low  uint32
		want uint64
	}{{4, 100, 100}, {100, 100, 100}, {1<<32 - 1, 5, 1<<32 + 5}, {5<<32 + 9, 8, 6<<32 + 8}, {5<<32 + 9, 10, 5<<32 + 10}} {
		if got := after(c.pos, c.low); got != c.want {
			t.Errorf("after(%d, %d) = %d", c.pos, c.low, got)
		}
	}
}

func TestServerDied(t *testing.T) {
	l := newLog(t, mysqlconn.MySQL, nil)
	l.query("BEGIN")
	if err := l.insert(40); err != nil {
		t.Fatal(err)
	}
	l.fake("binlog.000002") // no rotate event, no commit
	l.query("BEGIN")
	if err := l.insert(40); err != nil {
		t.Fatal(err)
	}
	l.must(replication.XID_EVENT, 31, &replication.XIDEvent{})
	if len(l.all) != 2 || len(l.all[0].Changes) != 0 || len(l.all[1].Changes) != 1 ||
		l.all[0].End != (state.Position{File: "binlog.000002", Pos: 4}) || l.all[1].Start != l.all[0].End {
		t.Errorf("%+v", l.all)
	}

	l = newLog(t, mysqlconn.MySQL, func(c *Config) { c.PartBytes, c.GTIDs = 1, true })
	l.must(replication.GTID_EVENT, 80, &replication.GTIDEvent{SID: make([]byte, 16), GNO: 1})
	l.query("BEGIN")
	if err := l.insert(40); err != nil {
		t.Fatal(err)
	}
	err := l.take(&replication.BinlogEvent{Event: &replication.RotateEvent{NextLogName: []byte("binlog.000002"), Position: 4},
		Header: &replication.EventHeader{EventType: replication.ROTATE_EVENT}})
	var stop *StopError
	if !errors.As(err, &stop) {
		t.Errorf("a part was handed over: %v", err)
	}
}

func TestMariaDBWithoutPositions(t *testing.T) {
	l := newLog(t, mysqlconn.MariaDB, func(c *Config) { c.Start.GTIDSet = "0-1-1" })
	l.must(replication.MARIADB_GTID_EVENT, 40, &replication.MariadbGTIDEvent{GTID: gomysql.MariadbGTID{SequenceNumber: 2}})
	l.must(replication.QUERY_EVENT, 60, query("SAVEPOINT x"))
	at := l.pos
	err := l.take(&replication.BinlogEvent{Event: query("COMMIT"), Header: &replication.EventHeader{EventType: replication.QUERY_EVENT}})
	if err != nil || len(l.all) != 1 || l.all[0].End != (state.Position{}) || l.all[0].Streamed.Pos != at ||
		l.all[0].EndPosition().GTIDSet != "0-0-2" {
		t.Errorf("%v %+v", err, l.all)
	}
}

// TestErrorsHoldNoRows: the library's own error texts print the event.
func TestErrorsHoldNoRows(t *testing.T) {
	err := classify(&replication.EventError{Header: &replication.EventHeader{}, Err: "bad secret", Data: []byte("secret")})
	if err == nil || len(err.Error()) > 80 {
		t.Error(err)
	}
	l := newLog(t, mysqlconn.MySQL, nil)
	e := l.rowsEvent()
	l.raw.body = l.raw.body[:len(l.raw.body)-2] // cut
	var stop *StopError
	if err := l.write(replication.WRITE_ROWS_EVENTv2, 40, e); !errors.As(err, &stop) || len(stop.Reason) > 80 {
		t.Errorf("a cut event: %v", err)
	}
}

func TestConfigIsChecked(t *testing.T) {
	good := Config{Source: new(mysqlconn.Server), Version: mysqlconn.Version{Flavor: mysqlconn.MySQL}, ServerID: 1,
		Start: state.Position{File: "b.1", Pos: 4}}
	for name, spoil := range map[string]func(*Config){
		"no source": func(c *Config) { c.Source = nil }, "no id": func(c *Config) { c.ServerID = 0 },
		"no start": func(c *Config) { c.Start = state.Position{} }, "far start": func(c *Config) { c.Start.Pos = 1 << 33 },
		"bad set": func(c *Config) { c.TableListAt.GTIDSet = "x" }, "no structure": func(c *Config) { c.Tables = map[table.Name]*TableSpec{{}: {}} },
	} {
		c := good
		spoil(&c)
		if _, err := New(c); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	s, err := New(good)
	if err != nil || s.cfg.Heartbeat != DefaultHeartbeat || s.cfg.NetworkTimeout != 15*time.Second {
		t.Fatalf("%+v, %v", s, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	s.used.Store(true)
	if err := s.Run(ctx, nil); err == nil {
		t.Error("a second run")
	}
}
