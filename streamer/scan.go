package streamer

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/copydb/copydb/internal/position"
	"github.com/copydb/copydb/internal/table"
	"github.com/copydb/copydb/state"
	"github.com/go-mysql-org/go-mysql/replication"
)

// scanHeartbeat is how soon a scan notices that nothing comes any more.
const scanHeartbeat = time.Second

// errScanned ends a scan at its end.
var errScanned = errors.New("the part of the log is read")

// Scanned is what Scan has found of some tables in a part of the log.
type Scanned struct {
	// LastDDL is the end of the last DDL of each table that has one. Whatever the
	// log has of the table up to there was committed before that DDL could begin.
	LastDDL map[table.Name]state.Position
	// Foreign is what a stream could not apply behind a table's last DDL, in the
	// order of the log: at most one entry for each table, and one without a table
	// for what may touch any.
	Foreign []*StopError
}

// Scan reads the log from cfg.Start to until, an end of an event, and collects
// what it has of the tables names, without decoding rows or knowing structures.
// It is for a source whose positions are file and place (MySQL without GTIDs).
// cfg.Tables and cfg.Selected are not looked at. Errors are those of Stream.Run.
func Scan(ctx context.Context, cfg Config, names []table.Name, until state.Position) (*Scanned, error) {
	s := &scan{fold: cfg.FoldNames, until: until, names: map[table.Name]table.Name{},
		ddl: map[table.Name]state.Position{}, foreign: map[table.Name]*StopError{}}
	for _, n := range names {
		s.names[s.key(n)] = n
	}
	cfg.Tables, cfg.TableListAt, cfg.Ignore, cfg.StopUnseenXA = nil, state.Position{}, nil, false
	cfg.StatePath, cfg.Spilled = "", nil
	cfg.Heartbeat = scanHeartbeat
	cfg.Selected = func(db, tbl string) bool { return s.has(table.Name{Database: db, Table: tbl}) }
	stream, err := New(cfg)
	if err != nil {
		return nil, err
	}
	r := newReader(&stream.cfg, stream.tables, func(*Transaction) error { return nil })
	r.scan = s
	if err := stream.run(ctx, r); !errors.Is(err, errScanned) {
		return nil, fmt.Errorf("look through the binary log up to %s: %w", until, err)
	}
	return &Scanned{LastDDL: s.ddl, Foreign: s.found()}, nil
}

// scan collects for a reader. Names are those that were asked for, however the
// log writes them.
type scan struct {
	fold    bool
	until   state.Position
	names   map[table.Name]table.Name
	ddl     map[table.Name]state.Position
	foreign map[table.Name]*StopError // the last one of each table
	any     *StopError                // the last one that may touch any table

	defined []table.Name // by the group at hand
}

func (s *scan) key(n table.Name) table.Name { return n.Folded(s.fold) }

func (s *scan) has(n table.Name) bool {
	_, ok := s.names[s.key(n)]
	return ok
}

// add keeps something that cannot be applied.
func (s *scan) add(e *StopError) {
	if e.Table == (table.Name{}) {
		s.any = e
		return
	}
	s.foreign[s.names[s.key(e.Table)]] = e
}

// rows looks at a row event's kind and columns only.
func (s *scan) rows(r *reader, h *replication.EventHeader, e *replication.RowsEvent) {
	n := table.Name{Database: string(e.Table.Schema), Table: string(e.Table.Table)}
	if !s.has(n) {
		return
	}
	switch update := e.Type() == replication.EnumRowsEventTypeUpdate; {
	case partialJSON(h, e):
		s.add(r.found(n, "", partialReason, ""))
	case !allBits(e.ColumnBitmap1, e.ColumnCount) || update && !allBits(e.ColumnBitmap2, e.ColumnCount):
		s.add(r.found(n, "", lackingReason, ""))
	}
}

func allBits(bitmap []byte, n uint64) bool {
	for i := range n {
		if bitmap[i>>3]&(1<<(i&7)) == 0 {
			return false
		}
	}
	return true
}

// statement takes a change that was logged as its statement.
func (s *scan) statement(r *reader, wanted []table.Name, unsure bool) {
	for _, n := range wanted {
		s.add(r.found(n, "", statementReason, ""))
	}
	if unsure {
		s.add(r.found(table.Name{}, "", statementReason+", and may touch selected tables", ""))
	}
}

// definition takes a DDL.
func (s *scan) definition(r *reader, st *statement) {
	for _, n := range st.tables {
		if s.has(n) {
			s.defined = append(s.defined, s.names[s.key(n)])
		}
	}
	for _, db := range st.dropped {
		for k, n := range s.names {
			if k.Database == s.key(table.Name{Database: db}).Database {
				s.defined = append(s.defined, n)
			}
		}
	}
	if st.unsure {
		s.add(r.found(table.Name{}, "", "a statement that may change the structure of selected tables", ""))
	}
}

// end takes the end of a group: what it has of the tables that it defines is
// covered, too.
func (s *scan) end(at state.Position) {
	for _, n := range s.defined {
		s.ddl[n] = at
		delete(s.foreign, n)
	}
	s.forget()
}

func (s *scan) forget() { s.defined = nil }

// done reports whether the reader, between two groups, has come to the end.
func (s *scan) done(r *reader) bool {
	c, ok := position.Compare(r.here(), s.until)
	return r.group == nil && ok && c >= 0
}

// found lists what is foreign behind the last DDL of a table.
func (s *scan) found() []*StopError {
	out := slices.Collect(maps.Values(s.foreign))
	if s.any != nil {
		for _, n := range s.names {
			if c, ok := position.Compare(s.ddl[n], s.any.Position); !ok || c < 0 {
				out = append(out, s.any)
				break
			}
		}
	}
	slices.SortFunc(out, func(a, b *StopError) int {
		c, _ := position.Compare(a.Position, b.Position)
		return c
	})
	return out
}
