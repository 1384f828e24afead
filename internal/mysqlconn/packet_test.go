package mysqlconn

import (
	"bytes"
	"errors"
	"slices"
	"testing"

	gomysql "github.com/go-mysql-org/go-mysql/mysql"
)

// A row that is larger than one packet says how large it is before it is in
// memory, and memory is taken once.
func TestLargeRowTakesMemoryOnce(t *testing.T) {
	const size = 20 << 20
	row := append(gomysql.PutLengthEncodedInt(2), "17"...)
	row = append(append(row, gomysql.PutLengthEncodedInt(size)...), make([]byte, size)...)
	row = append(append(row, gomysql.PutLengthEncodedInt(3)...), "end"...)
	var asked []int64
	p := packet{columns: 3, large: func(n int64) error { asked = append(asked, n); return nil }}
	for piece := range slices.Chunk(row, 16<<10) {
		if _, err := p.Write(piece); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(p.data, row) {
		t.Error("the packet is not what was written")
	}
	if len(asked) != 1 || asked[0] < size || cap(p.data) > size+2*firstBuffer {
		t.Errorf("asked for %v, has %d bytes for a row of %d", asked, cap(p.data), len(row))
	}
	p.reset()
	if cap(p.data) > keepBuffer {
		t.Errorf("%d bytes are kept", cap(p.data))
	}
	stop := errors.New("no room")
	p.large = func(int64) error { return stop }
	var err error
	for piece := range slices.Chunk(row, 16<<10) {
		if _, err = p.Write(piece); err != nil {
			break
		}
	}
	if err != stop { //nolint:errorlint // it is to be the very one
		t.Errorf("error %v, want %v", err, stop)
	}
}
