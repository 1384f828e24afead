package streamer

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/copydb/copydb/internal/table"
	"github.com/copydb/copydb/state"
	"github.com/go-mysql-org/go-mysql/replication"
)

// preparedXA is an XA transaction that another group commits or rolls back.
type preparedXA struct {
	file string // the name of its spill file; "" where it has nothing to keep
	end  spillEnd
}

// loadSpills takes over what is prepared at the start position, and removes the
// files of what is not: the log has that again.
func (r *reader) loadSpills() error {
	if r.cfg.StatePath == "" {
		return nil
	}
	for _, name := range r.cfg.Spilled {
		end, err := checkSpill(state.SpillPath(r.cfg.StatePath, name))
		if err != nil {
			return err
		}
		r.prepared[end.XID] = preparedXA{file: name, end: *end}
	}
	r.listSpills()
	all, err := state.Spills(r.cfg.StatePath)
	if err != nil {
		return fmt.Errorf("look for spill files: %w", err)
	}
	return state.RemoveSpills(r.cfg.StatePath, slices.DeleteFunc(all, func(name string) bool { return slices.Contains(r.cfg.Spilled, name) }))
}

// listSpills notes which files are needed from here on.
func (r *reader) listSpills() {
	names := []string{}
	for _, p := range r.prepared {
		if p.file != "" {
			names = append(names, p.file)
		}
	}
	slices.Sort(names)
	r.spilled = names
}

// dropSpill removes the unfinished file of the group that is being read.
func (r *reader) dropSpill() {
	if r.group != nil && r.group.spill != nil {
		r.group.spill.discard()
		r.group.spill = nil
	}
}

// xaPrepare ends the group of an XA transaction: with its commit where it has
// one phase, else it waits for an XA COMMIT in another group.
func (r *reader) xaPrepare(e *replication.BinlogEvent) error {
	if err := r.ensure(e.Header); err != nil {
		return err
	}
	body := r.bodyOf(e)
	if len(body) < 13 {
		return r.stop(table.Name{}, "", "an XA PREPARE that cannot be read", "")
	}
	if body[0] == 1 {
		return r.commitXA(e.Header, r.group.lost)
	}
	xid := xidOf(body[1:])
	if xid == "" {
		return r.stop(table.Name{}, "", "an XA PREPARE that cannot be read", "")
	}
	if err := r.keepPrepared(xid); err != nil {
		return err
	}
	return r.end(e.Header, false)
}

// keepPrepared puts the group's changes on the disk. Where only what was
// streamed may be committed, the transaction is remembered without any, too.
func (r *reader) keepPrepared(xid string) error {
	g := r.group
	p := preparedXA{}
	if len(g.changes) > 0 || g.spill != nil || len(g.lost) > 0 || r.cfg.StopUnseenXA {
		if err := r.spillOut(); err != nil {
			return err
		}
		s := g.spill
		s.end.XID, s.end.Lost = xid, g.lost
		p = preparedXA{file: spillName(xid, g.gtid, r.here().String()), end: s.end}
		if err := s.keep(r.cfg.StatePath, p.file); err != nil {
			return err
		}
		g.spill = nil
	}
	g.ended = r.prepared[xid].file
	r.prepared[xid] = p
	r.listSpills()
	return nil
}

// xidOf reads the format and the two parts of an XID; "" where it is cut.
func xidOf(b []byte) string {
	format := binary.LittleEndian.Uint32(b)
	gtrid, bqual := uint64(binary.LittleEndian.Uint32(b[4:])), uint64(binary.LittleEndian.Uint32(b[8:]))
	if data := b[12:]; uint64(len(data)) >= gtrid+bqual {
		return xidText(format, data[:gtrid], data[gtrid:gtrid+bqual])
	}
	return ""
}

// xaDecided handles XA COMMIT and XA ROLLBACK of what was prepared in another
// group.
func (r *reader) xaDecided(h *replication.EventHeader, st *statement) error {
	g := r.group
	p, seen := r.prepared[st.name]
	delete(r.prepared, st.name)
	r.listSpills()
	g.ended = p.file
	if st.kind == stXACommit && !seen && r.cfg.StopUnseenXA && !r.tables.allCovered(g) {
		return r.stop(table.Name{}, "", "an XA COMMIT of a transaction that was prepared before the copy began",
			"start over while no XA transaction is prepared")
	}
	g.xa = true // its changes were kept whatever copies cover the PREPARE
	if st.kind == stXARollback {
		p.end.Void, p.end.Lost = []span{{0, p.end.Count}}, nil
	}
	if p.file != "" {
		if err := r.readPrepared(p); err != nil {
			return err
		}
	}
	return r.commitXA(h, p.end.Lost)
}

func (r *reader) readPrepared(p preparedXA) error {
	f, err := os.Open(state.SpillPath(r.cfg.StatePath, p.file))
	if err != nil {
		return fmt.Errorf("%w: %w", ErrSpillLost, err)
	}
	defer f.Close()
	_, err = readSpill(f, &p.end, r.spilledTable, r.retake)
	if errors.Is(err, errSpillFormat) {
		err = fmt.Errorf("%w: %s is damaged: %w", ErrSpillLost, p.file, err)
	}
	return err
}

// commitXA ends the group that an XA transaction is committed in.
func (r *reader) commitXA(h *replication.EventHeader, lost []spillTable) error {
	g := r.group
	for i := range lost {
		if !r.tables.covered(lost[i].name(), g) {
			return r.stop(lost[i].name(), "", "rows of an XA transaction that was prepared before the copy of the table began cannot be read",
				"start over while no XA transaction is prepared")
		}
	}
	kept := g.changes[:0]
	g.bytes = 0
	for i := range g.changes {
		if c := &g.changes[i]; !r.tables.covered(c.Table.FullName(), g) {
			g.bytes += size(c)
			kept = append(kept, *c)
		}
	}
	g.changes = kept
	return r.end(h, false)
}

// spilledTable finds the table that changes in a spill file are of.
func (r *reader) spilledTable(t spillTable) (*table.Table, error) {
	tr := r.tables.find(t.name())
	if tr == nil || !slices.Equal(columnsOf(tr.Structure), t.Columns) {
		return nil, r.stop(t.name(), "", "the table is not as it was when an XA transaction that is committed here was prepared",
			"start over: only a new copy has all rows")
	}
	return tr.Structure, nil
}

// lose notes a table whose rows cannot be read. A copy that covers the PREPARE
// is likely to cover the commit, too.
func (g *group) lose(n table.Name) {
	t := spillTable{Database: state.Text(n.Database), Table: state.Text(n.Table)}
	if !slices.ContainsFunc(g.lost, func(o spillTable) bool { return o.name() == n }) {
		g.lost = append(g.lost, t)
	}
}
