package streamer

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"sort"

	"github.com/copydb/copydb/internal/applier"
	"github.com/copydb/copydb/internal/table"
	"github.com/copydb/copydb/state"
)

// A spill file is a row of records: eight bytes of length, four of checksum
// (CRC-32C), then the content, whose first byte is its kind. A table is described
// before its first change and numbered from 0 on. A kept file ends with an end
// record.
const (
	recordTable  = 't'
	recordChange = 'c'
	recordEnd    = 'e'
	recordHeader = 12
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

var errSpillFormat = errors.New("a record is not as it was written")

// spillTable describes a table to whoever reads its changes: literals mean
// something only in columns of the same types.
type spillTable struct {
	Database state.Text   `json:"database"`
	Table    state.Text   `json:"table"`
	Columns  []state.Text `json:"columns,omitempty"`
}

func (t *spillTable) name() table.Name {
	return table.Name{Database: string(t.Database), Table: string(t.Table)}
}

func columnsOf(t *table.Table) []state.Text {
	var out []state.Text
	for i := range t.Columns {
		out = append(out, state.Text(t.Columns[i].Name+" "+t.Columns[i].FullType))
	}
	return out
}

func writeRecord(w io.Writer, content []byte) error {
	var head [recordHeader]byte
	binary.LittleEndian.PutUint64(head[:], uint64(len(content)))
	binary.LittleEndian.PutUint32(head[8:], crc32.Checksum(content, castagnoli))
	if _, err := w.Write(head[:]); err != nil {
		return err
	}
	_, err := w.Write(content)
	return err
}

func appendTable(b []byte, t *table.Table) []byte {
	return appendJSON(append(b, recordTable), spillTable{Database: state.Text(t.Database), Table: state.Text(t.Table), Columns: columnsOf(t)})
}

func appendEnd(b []byte, e *spillEnd) []byte { return appendJSON(append(b, recordEnd), e) }

// appendJSON writes plain values, which cannot fail.
func appendJSON(b []byte, v any) []byte {
	text, _ := json.Marshal(v)
	return append(b, text...)
}

// What is set beside the operation of a change.
const (
	spillCascades  = 0x80
	spillMayBeGone = 0x40
)

func appendChange(b []byte, id uint64, c *applier.Change) []byte {
	b = binary.AppendUvarint(append(b, recordChange), id)
	op := byte(c.Op)
	if c.Cascades {
		op |= spillCascades
	}
	if c.MayBeGone {
		op |= spillMayBeGone
	}
	b = append(b, op)
	b = appendCell(b, []byte(c.At))
	return appendRow(appendRow(b, c.Before), c.After)
}

// appendRow writes the number of cells, counted from 1 on; 0 is no row.
func appendRow(b []byte, row applier.Row) []byte {
	if row == nil {
		return append(b, 0)
	}
	b = binary.AppendUvarint(b, uint64(len(row))+1)
	for _, cell := range row {
		b = appendCell(b, cell)
	}
	return b
}

// appendCell writes the length, counted from 1 on; 0 is no value.
func appendCell(b, cell []byte) []byte {
	if cell == nil {
		return append(b, 0)
	}
	return append(binary.AppendUvarint(b, uint64(len(cell))+1), cell...)
}

// readSpill reads records up to the end of the file, checks them, and hands over
// the changes that count by end, if each is not nil. It returns the end record,
// or nil where there is none.
func readSpill(f *os.File, end *spillEnd, tables func(spillTable) (*table.Table, error), each func(applier.Change) error) (*spillEnd, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	in := bufio.NewReaderSize(f, 256<<10)
	var known []*table.Table
	for number, left := 0, info.Size(); ; {
		content, err := readRecord(in, left)
		if errors.Is(err, io.EOF) {
			return nil, nil //nolint:nilnil // a file without an end is a valid answer
		}
		if err != nil {
			return nil, err
		}
		left -= recordHeader + int64(len(content))
		switch kind := content[0]; {
		case kind == recordEnd:
			return readEnd(content[1:], number, left)
		case kind == recordTable && each != nil:
			t, err := readTable(content[1:], tables)
			if err != nil {
				return nil, err
			}
			known = append(known, t)
		case kind == recordChange:
			if err := handChange(content[1:], known, end, number, each); err != nil {
				return nil, err
			}
			number++
		case kind != recordTable:
			return nil, errSpillFormat
		}
	}
}

// readRecord returns the content of the next record; io.EOF only where the file
// ends before it.
func readRecord(in io.Reader, left int64) ([]byte, error) {
	var head [recordHeader]byte
	if _, err := io.ReadFull(in, head[:]); err != nil {
		return nil, err
	}
	n := binary.LittleEndian.Uint64(head[:])
	if n == 0 || n > uint64(left) {
		return nil, errSpillFormat
	}
	content := make([]byte, n)
	if _, err := io.ReadFull(in, content); err != nil {
		return nil, fmt.Errorf("%w: %w", errSpillFormat, io.ErrUnexpectedEOF)
	}
	if crc32.Checksum(content, castagnoli) != binary.LittleEndian.Uint32(head[8:]) {
		return nil, errSpillFormat
	}
	return content, nil
}

func readEnd(text []byte, changes int, left int64) (*spillEnd, error) {
	e := new(spillEnd)
	if err := json.Unmarshal(text, e); err != nil || e.Count != changes || left != 0 {
		return nil, errSpillFormat
	}
	return e, nil
}

func readTable(text []byte, tables func(spillTable) (*table.Table, error)) (*table.Table, error) {
	var t spillTable
	if err := json.Unmarshal(text, &t); err != nil {
		return nil, errSpillFormat
	}
	return tables(t)
}

func handChange(content []byte, known []*table.Table, end *spillEnd, number int, each func(applier.Change) error) error {
	if each == nil {
		return nil
	}
	p := cutter{rest: content}
	id := p.number()
	if id >= uint64(len(known)) {
		return errSpillFormat
	}
	op := p.octet()
	c := applier.Change{Table: known[id], Op: applier.Op(op &^ (spillCascades | spillMayBeGone)),
		Cascades: op&spillCascades != 0, MayBeGone: op&spillMayBeGone != 0}
	c.At = string(p.cell())
	c.Before, c.After = p.row(), p.row()
	if p.bad || len(p.rest) > 0 {
		return errSpillFormat
	}
	if end.isVoid(number) && c.Table.Transactional() {
		return nil
	}
	return each(c)
}

func (e *spillEnd) isVoid(number int) bool {
	i := sort.Search(len(e.Void), func(i int) bool { return e.Void[i].To > number })
	return i < len(e.Void) && e.Void[i].From <= number
}

// cutter takes a change apart. What it returns shares the memory it reads.
type cutter struct {
	rest []byte
	bad  bool
}

func (c *cutter) number() uint64 {
	v, n := binary.Uvarint(c.rest)
	if n <= 0 {
		c.bad = true
		return 0
	}
	c.rest = c.rest[n:]
	return v
}

func (c *cutter) octet() byte {
	if len(c.rest) == 0 {
		c.bad = true
		return 0
	}
	b := c.rest[0]
	c.rest = c.rest[1:]
	return b
}

func (c *cutter) cell() []byte {
	n := c.number()
	if n == 0 {
		return nil
	}
	if n-1 > uint64(len(c.rest)) {
		c.bad = true
		return nil
	}
	v := c.rest[: n-1 : n-1]
	c.rest = c.rest[n-1:]
	return v
}

func (c *cutter) row() applier.Row {
	n := c.number()
	if n == 0 || n-1 > uint64(len(c.rest)) {
		c.bad = c.bad || n != 0
		return nil
	}
	row := make(applier.Row, n-1)
	for i := range row {
		row[i] = c.cell()
	}
	return row
}
