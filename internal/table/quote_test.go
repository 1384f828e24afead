package table

import (
	"math/rand/v2"
	"strings"
	"testing"
)

// Whatever stands beside it and wherever it is, each byte that has to be escaped
// is, and no other.
func TestAppendString(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // a test
	alphabets := []string{"\x00\r\n\\'\x1a", "ab\\\n'", "\x01\x08\x0b\x1b\\]['(&\"", "\x80\x8a\x9a\xa7\xdc\xff\\"}
	escapes := strings.NewReplacer("\x00", `\0`, "\r", `\r`, "\n", `\n`, `\`, `\\`, "'", `\'`, "\x1a", `\Z`)
	for range 50_000 {
		b := make([]byte, rnd.IntN(40))
		alphabet := alphabets[rnd.IntN(len(alphabets))]
		for i := range b {
			if b[i] = byte(rnd.Uint32()); rnd.IntN(4) > 0 {
				b[i] = alphabet[rnd.IntN(len(alphabet))]
			}
		}
		want := "before'" + escapes.Replace(string(b)) + "'"
		if got := string(AppendString([]byte("before"), b)); got != want {
			t.Fatalf("%q became %q, want %q", b, got, want)
		}
	}
}
