package applier

import (
	"bytes"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/copydb/copydb/internal/table"
)

// Whatever stands beside it and wherever it is, each byte that LOAD DATA takes for
// its own is escaped, and no other.
func TestAppendEscaped(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // a test
	alphabets := [][]byte{[]byte("\x00\t\n\\"), []byte("ab\\\n"), []byte("\x01\x08\x0b\x1b\\]["), []byte("\x80\x8a\x89\xdc\xff\\")}
	for range 50_000 {
		f := make([]byte, rnd.IntN(40))
		alphabet := alphabets[rnd.IntN(len(alphabets))]
		for i := range f {
			if f[i] = byte(rnd.Uint32()); rnd.IntN(4) > 0 {
				f[i] = alphabet[rnd.IntN(len(alphabet))]
			}
		}
		want := strings.NewReplacer("\x00", `\0`, "\t", `\t`, "\n", `\n`, `\`, `\\`).Replace(string(f))
		if got := appendEscaped([]byte("before"), f); string(got) != "before"+want {
			t.Fatalf("%q became %q, want %q", f, got, want)
		}
	}
}

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
