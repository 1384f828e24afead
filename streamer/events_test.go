package streamer

import (
	"bytes"
	"encoding/binary"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/copydb/copydb/internal/mysqlconn"
	"github.com/copydb/copydb/test/servers"
	gomysql "github.com/go-mysql-org/go-mysql/mysql"
	"github.com/go-mysql-org/go-mysql/replication"
	"github.com/klauspost/compress/zstd"
)

// harmless are the kinds of events that carry no rows and decide nothing: what
// they announce is judged by the event that follows.
var harmless = []replication.EventType{
	replication.STOP_EVENT, replication.INTVAR_EVENT, replication.SLAVE_EVENT, replication.APPEND_BLOCK_EVENT, replication.DELETE_FILE_EVENT,
	replication.RAND_EVENT, replication.USER_VAR_EVENT, replication.BEGIN_LOAD_QUERY_EVENT, replication.IGNORABLE_EVENT,
	replication.ROWS_QUERY_EVENT, replication.PREVIOUS_GTIDS_EVENT, replication.TRANSACTION_CONTEXT_EVENT, replication.VIEW_CHANGE_EVENT,
	replication.MARIADB_ANNOTATE_ROWS_EVENT, replication.MARIADB_BINLOG_CHECKPOINT_EVENT, replication.MARIADB_START_ENCRYPTION_EVENT,
}

// whole are the kinds that begin a file, or come without being in one; they are
// never anything but what the library makes of them.
var whole = []replication.EventType{replication.ROTATE_EVENT, replication.FORMAT_DESCRIPTION_EVENT,
	replication.HEARTBEAT_EVENT, replication.HEARTBEAT_LOG_EVENT_V2}

// TestEveryNumber: an event of any of the 256 kinds that the library could make
// nothing of stops the stream, unless it is known to be harmless, or its writer
// says that it may be skipped and nobody knows it.
func TestEveryNumber(t *testing.T) {
	for n := range 256 {
		kind := replication.EventType(n)
		if slices.Contains(whole, kind) {
			continue
		}
		l := newLog(t, mysqlconn.MySQL, nil)
		var stop *StopError
		err := l.write(kind, 30, &replication.GenericEvent{})
		if slices.Contains(harmless, kind) != (err == nil) || err != nil && (!errors.As(err, &stop) || stop.Position.Pos != 34) {
			t.Errorf("kind %d (%s): %v", n, kind, err)
		}
		if err := l.write(replication.XID_EVENT, 31, &replication.XIDEvent{}); stop != nil && err == nil {
			t.Errorf("kind %d: goes on after the stop", n)
		}
	}
	for kind, passes := range map[replication.EventType]bool{99: true, 200: true, replication.INCIDENT_EVENT: false,
		replication.EXECUTE_LOAD_QUERY_EVENT: false, replication.XA_PREPARE_LOG_EVENT: false, replication.TRANSACTION_PAYLOAD_EVENT: false} {
		l := newLog(t, mysqlconn.MySQL, nil)
		err := l.take(&replication.BinlogEvent{Event: &replication.GenericEvent{},
			Header: &replication.EventHeader{EventType: kind, LogPos: 50, Flags: replication.LOG_EVENT_IGNORABLE_F}})
		if passes != (err == nil) {
			t.Errorf("kind %d that may be skipped: %v", kind, err)
		}
	}
}

// raw makes the bytes of an event.
func raw(kind replication.EventType, end uint64, body []byte) []byte {
	b := make([]byte, eventHeader, eventHeader+len(body))
	b[4] = byte(kind)
	binary.LittleEndian.PutUint32(b[9:], uint32(eventHeader+len(body)))
	binary.LittleEndian.PutUint32(b[13:], uint32(end))
	return append(b, body...)
}

func rawQuery(text string) []byte {
	return raw(replication.QUERY_EVENT, 0, append([]byte{0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 'a', 0}, text...))
}

// rawInsert is a table map and an insert of 42 into a.t.
func rawInsert() []byte {
	return slices.Concat(
		raw(replication.TABLE_MAP_EVENT, 0, []byte{7, 0, 0, 0, 0, 0, 0, 0, 1, 'a', 0, 1, 't', 0, 1, gomysql.MYSQL_TYPE_LONG, 0, 0}),
		raw(replication.WRITE_ROWS_EVENTv2, 0, []byte{7, 0, 0, 0, 0, 0, 1, 0, 2, 0, 1, 1, 0, 42, 0, 0, 0}))
}

// payloadOf packs events as the server does.
func payloadOf(compression uint64, packed []byte, plain int) []byte {
	var b []byte
	field := func(kind, value uint64) {
		v := gomysql.PutLengthEncodedInt(value)
		b = append(append(append(b, byte(kind)), byte(len(v))), v...)
	}
	field(replication.OTW_PAYLOAD_COMPRESSION_TYPE_FIELD, compression)
	field(replication.OTW_PAYLOAD_UNCOMPRESSED_SIZE_FIELD, uint64(plain))
	field(replication.OTW_PAYLOAD_SIZE_FIELD, uint64(len(packed)))
	return append(append(b, 0), packed...)
}

func zstdOf(t *testing.T, b []byte) []byte {
	t.Helper()
	w, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	return w.EncodeAll(b, nil)
}

// TestPayloads: both kinds of compression, and whatever cannot be read stops.
func TestPayloads(t *testing.T) {
	events := slices.Concat(rawQuery("BEGIN"), bytes.Repeat(rawInsert(), 1000), raw(replication.XID_EVENT, 0, make([]byte, 8)))
	packed := zstdOf(t, events)
	for name, c := range map[string]struct {
		body []byte
		ok   bool
	}{
		"zstd":           {payloadOf(replication.ZSTD, packed, len(events)), true},
		"two frames":     {payloadOf(replication.ZSTD, append(zstdOf(t, events[:5000]), zstdOf(t, events[5000:])...), len(events)), true},
		"none":           {payloadOf(replication.NONE, events, len(events)), true},
		"unknown kind":   {payloadOf(7, events, len(events)), false},
		"cut":            {payloadOf(replication.ZSTD, packed[:len(packed)-9], len(events)), false},
		"not compressed": {payloadOf(replication.ZSTD, events, len(events)), false},
		"cut event":      {payloadOf(replication.NONE, events[:len(events)-3], len(events)), false},
		"no event":       {payloadOf(replication.NONE, make([]byte, 40), 40), false},
		"no head":        {nil, false},
		"open head":      {[]byte{2, 1}, false},
	} {
		l := newLog(t, mysqlconn.MySQL, func(c *Config) { c.GTIDs, c.PartBytes = true, 20000 })
		if err := l.read(raw(replication.FORMAT_DESCRIPTION_EVENT, 0, formatBody())); err != nil {
			t.Fatal(err)
		}
		l.must(replication.GTID_EVENT, 80, &replication.GTIDEvent{SID: make([]byte, 16), GNO: 1})
		end := l.pos + uint64(eventHeader+len(c.body))
		err := l.read(raw(replication.TRANSACTION_PAYLOAD_EVENT, end, c.body))
		var stop *StopError
		if !c.ok {
			if !errors.As(err, &stop) || !strings.Contains(stop.Reason, "compressed transaction") || stop.GTID == "" {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		last := l.all[len(l.all)-1]
		if err != nil || len(describe(l.all)) != 1000 || len(l.all) < 5 || last.End.Pos != end || last.Partial {
			t.Errorf("%s: %v, %d changes in %d parts, the last %+v", name, err, len(describe(l.all)), len(l.all), last)
		}
		for _, tx := range l.all[:len(l.all)-1] {
			if !tx.EndPosition().IsZero() {
				t.Errorf("%s: a place to resume from inside: %+v", name, tx.EndPosition())
			}
		}
	}
}

// TestMariaDBFlags: what the library does not read of a GTID event.
func TestMariaDBFlags(t *testing.T) {
	// As servers write it: what the flags say is there, then zeros up to 19 bytes.
	for name, c := range map[string]struct {
		flags byte
		rest  []byte
		idle  bool
		stops bool
	}{
		"none":             {1, make([]byte, 6), false, false},
		"start":            {1 | 32, []byte{2, 0, 0, 0, 0, 0}, true, false},
		"commit":           {1 | 32, []byte{4, 11, 0, 0, 0, 0, 0, 0, 0, 0}, false, false},
		"rollback":         {1 | 32, []byte{8, 11, 0, 0, 0, 0, 0, 0, 0, 0}, true, false},
		"engines":          {4, []byte{1, 255, 0, 0, 0, 0}, false, false},
		"thread":           {12, []byte{16, 8, 0, 0, 0, 0}, false, false},
		"start in a group": {1 | 2, []byte{9, 9, 9, 9, 9, 9, 9, 9, 2}, true, false},
		"behind an XID":    {mariadbPreparedXA, []byte{1, 0, 0, 0, 1, 1, 'z', '1', 17, 255, 8, 0, 0, 0}, false, false},
		"only an XID":      {mariadbCompletedXA, []byte{1, 0, 0, 0, 1, 0, 'r'}, false, false},
		"a new flag":       {1, []byte{64, 0, 0, 0, 0, 0}, false, true},
		"a cut XID":        {mariadbPreparedXA, make([]byte, 3), false, true},
	} {
		body := append(make([]byte, 13), c.rest...)
		body[12] = c.flags
		l := newLog(t, mysqlconn.MariaDB, func(c *Config) { c.Start.GTIDSet = "0-1-1" })
		err := l.take(&replication.BinlogEvent{RawData: raw(replication.MARIADB_GTID_EVENT, 50, body), Event: &replication.MariadbGTIDEvent{Flags: c.flags, GTID: gomysql.MariadbGTID{SequenceNumber: 2}},
			Header: &replication.EventHeader{EventType: replication.MARIADB_GTID_EVENT, LogPos: 50}})
		if (err != nil) != c.stops || err == nil && l.group.idle != c.idle {
			t.Errorf("%s: %v, %+v", name, err, l.group)
		}
	}
}

// TestTwoPhaseAlter: only the end of an ALTER counts, and none that was given up.
func TestTwoPhaseAlter(t *testing.T) {
	for _, kind := range []servers.Kind{servers.MariaDB1011, servers.MariaDB118} {
		onKind(t, kind, func(t *testing.T, src *source) {
			src.exec(t, "CREATE DATABASE a", "CREATE TABLE a.t (id INT PRIMARY KEY, v INT)", "INSERT INTO a.t VALUES (1,1),(2,1)")
			tables := src.tables(t, "a")
			start := src.here(t)
			if _, err := src.DB().ExecContext(t.Context(), "SET STATEMENT binlog_alter_two_phase=1 FOR ALTER TABLE a.t ADD UNIQUE (v)"); err == nil {
				t.Fatal("the ALTER went through")
			}
			src.exec(t, "SET SESSION binlog_alter_two_phase=1", "ALTER TABLE a.t ADD c INT", "DROP TABLE a.t")
			end := src.here(t)
			var texts []string
			for _, tx := range read(t, src.config(start, tables), end) {
				if tx.DDL != nil {
					texts = append(texts, tx.DDL.Query)
				}
			}
			if len(texts) != 2 || !strings.Contains(texts[0], "ADD c") {
				t.Errorf("DDL: %q", texts)
			}
		})
	}
}
