package streamer

import (
	"runtime"
	"testing"
	"weak"

	"github.com/copydb/copydb/internal/table"
)

// Rows share cells and memory, and yet a row that nobody wants any more holds no
// more than a few of its size.
func TestArenaHoldsLittle(t *testing.T) {
	for _, size := range []int{100, 5 << 10, 100 << 10, 1 << 20} {
		var memory arena
		var was []weak.Pointer[byte]
		for range 40 {
			row := memory.row(2)
			for i := range row {
				lit, err := memory.literal(&table.Column{Kind: table.Binary}, false, make([]byte, size))
				if err != nil {
					t.Fatal(err)
				}
				row[i] = lit
			}
			was = append(was, weak.Make(&memory.own(row)[0][0]))
		}
		runtime.GC()
		alive := 0
		for _, p := range was {
			if p.Value() != nil {
				alive++
			}
		}
		if held := alive * size; held > 256<<10 && alive > 1 {
			t.Errorf("of 40 rows of %d bytes that nobody wants, %d are in memory", 2*size, alive)
		}
		runtime.KeepAlive(&memory)
	}
}
