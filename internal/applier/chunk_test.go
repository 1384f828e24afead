package applier

import (
	"bytes"
	"strings"
	"testing"

	"github.com/copydb/copydb/internal/table"
)

// benchTable is like those of sysbench.
func benchTable() *table.Table {
	return &table.Table{Database: "d", Table: "t", Engine: "InnoDB", Columns: []table.Column{
		{Name: "id", Type: "int", Kind: table.Integer}, {Name: "k", Type: "int", Kind: table.Integer},
		{Name: "c", Type: "char", Kind: table.Text, Charset: "utf8mb4"}, {Name: "pad", Type: "char", Kind: table.Text, Charset: "utf8mb4"}}}
}

// BenchmarkAppend adds rows of some 200 bytes to chunks of 16 MiB.
func BenchmarkAppend(b *testing.B) {
	text := []byte(strings.Repeat("83868641912-", 10)[:119])
	binary := make([]byte, 119)
	for i := range binary {
		binary[i] = byte(i * 37)
	}
	for _, method := range []Method{LoadData, Inserts} {
		for name, c := range map[string][]byte{"text": text, "binary": binary} {
			b.Run(string(method)+"/"+name, func(b *testing.B) {
				l := NewLayout(benchTable(), method, Config{MaxPacket: 64 << 20})
				row := [][]byte{[]byte("1234567"), []byte("456789"), c, bytes.Repeat([]byte("x"), 59)}
				var chunk Chunk
				chunk.Reset(l, 17<<20)
				b.SetBytes(int64(7 + 6 + 119 + 59))
				b.ReportAllocs()
				for b.Loop() {
					chunk.Append(row)
					if chunk.Size() > 16<<20 {
						chunk.Reset(l, 17<<20)
					}
				}
			})
		}
	}
}
