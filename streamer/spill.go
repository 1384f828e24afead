package streamer

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/copydb/copydb/internal/applier"
	"github.com/copydb/copydb/internal/table"
	"github.com/copydb/copydb/state"
)

// ErrSpillLost is returned where a spill file that the start position needs is
// gone or damaged.
var ErrSpillLost = errors.New("a spill file that this state needs cannot be used")

// tempSpill ends the name of a spill file whose group is still being read.
const tempSpill = "tmp"

// spill is a file of changes that wait for the end of their group, or for
// another group that commits them. Changes are numbered from 0 on; what is
// rolled back stays in the file and is void.
type spill struct {
	path   string
	file   *os.File
	w      *bufio.Writer
	tables map[*table.Table]uint64
	buf    []byte
	end    spillEnd
}

// spillEnd is the last record of a finished file.
type spillEnd struct {
	XID   string `json:"xid"`
	Count int    `json:"count"`
	Void  []span `json:"void"` // changes that were rolled back, but for tables that do not roll back
	// Lost are tables whose rows could not be read and that a copy which covers
	// the PREPARE is likely to have.
	Lost []spillTable `json:"lost"`
}

// span are the numbers From <= n < To.
type span struct {
	From int `json:"from"`
	To   int `json:"to"`
}

func createSpill(statePath string) (*spill, error) {
	if statePath == "" {
		return nil, errors.New("no place for spill files is configured")
	}
	path := state.SpillPath(statePath, state.SpillPrefix+tempSpill)
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, fmt.Errorf("make spill file: %w", err)
	}
	return &spill{path: path, file: f, w: bufio.NewWriterSize(f, 256<<10), tables: map[*table.Table]uint64{}}, nil
}

// add appends a change.
func (s *spill) add(c *applier.Change) error {
	id, known := s.tables[c.Table]
	if !known {
		id = uint64(len(s.tables))
		s.tables[c.Table] = id
		if err := s.write(appendTable(s.buf[:0], c.Table)); err != nil {
			return err
		}
	}
	if err := s.write(appendChange(s.buf[:0], id, c)); err != nil {
		return err
	}
	s.end.Count++
	return nil
}

func (s *spill) write(record []byte) error {
	s.buf = record
	if err := writeRecord(s.w, record); err != nil {
		return fmt.Errorf("write spill file: %w", err)
	}
	return nil
}

// rollBack makes the changes from number at on void. It returns how many of
// those behind the file's are to be kept.
func (s *spill) rollBack(at int) int {
	if at >= s.end.Count {
		return at - s.end.Count
	}
	s.end.Void = slices.DeleteFunc(s.end.Void, func(v span) bool { return v.From >= at })
	if n := len(s.end.Void); n > 0 && s.end.Void[n-1].To >= at {
		at = s.end.Void[n-1].From
		s.end.Void = s.end.Void[:n-1]
	}
	s.end.Void = append(s.end.Void, span{at, s.end.Count})
	return 0
}

// keep finishes the file and gives it its name, on the disk for good.
func (s *spill) keep(statePath, name string) error {
	if err := s.write(appendEnd(s.buf[:0], &s.end)); err != nil {
		return err
	}
	err := s.w.Flush()
	if err == nil {
		err = s.file.Sync()
	}
	if cerr := s.file.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = state.KeepSpill(s.path, statePath, name)
	}
	if err != nil {
		return fmt.Errorf("finish spill file: %w", err)
	}
	return nil
}

// discard removes a file that was not kept.
func (s *spill) discard() {
	_ = s.file.Close()
	_ = os.Remove(s.path) // the next stream removes what is left
}

// replay reads an unfinished file back; it is not written to afterwards.
func (s *spill) replay(tables func(spillTable) (*table.Table, error), each func(applier.Change) error) error {
	if err := s.w.Flush(); err != nil {
		return fmt.Errorf("write spill file: %w", err)
	}
	if _, err := s.file.Seek(0, io.SeekStart); err != nil {
		return fmt.Errorf("read spill file: %w", err)
	}
	_, err := readSpill(s.file, &s.end, tables, each)
	return err
}

// spillName names the file of one prepared transaction: an XID may be used
// again, in another place of the log.
func spillName(xid, gtid, at string) string {
	sum := sha256.Sum256([]byte(xid + "\x00" + gtid + "\x00" + at))
	return state.SpillPrefix + hex.EncodeToString(sum[:16])
}

// checkSpill reads a kept file to its end and returns what that says.
func checkSpill(path string) (*spillEnd, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrSpillLost, err)
	}
	defer f.Close()
	end, err := readSpill(f, nil, nil, nil)
	if err == nil && end == nil {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %s is damaged: %w", ErrSpillLost, path, err)
	}
	return end, nil
}
