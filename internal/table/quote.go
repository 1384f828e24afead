package table

import (
	"bytes"
	"strings"
)

// Quote writes a name as an SQL identifier.
func Quote(name string) string { return "`" + strings.ReplaceAll(name, "`", "``") + "`" }

// AppendString appends b as a string literal for a session whose sql_mode lacks
// NO_BACKSLASH_ESCAPES and whose character_set_client is binary or utf8mb4.
func AppendString(dst, b []byte) []byte {
	if len(b) > LargeValue {
		dst = Room(dst, len(b)+countEscapes(b)+2)
	}
	dst = append(dst, '\'')
	for len(b) > 0 {
		n := 0
		for n < len(b) && escapeFor[b[n]] == 0 {
			n++
		}
		dst = append(dst, b[:n]...)
		if n == len(b) {
			break
		}
		dst = append(dst, '\\', escapeFor[b[n]])
		b = b[n+1:]
	}
	return append(dst, '\'')
}

// LargeValue is the size in bytes from which on memory is taken for exactly what
// a value needs.
const LargeValue = 1 << 20

// Room makes sure that n bytes can be appended to dst, and takes no more memory
// than that.
func Room(dst []byte, n int) []byte {
	if cap(dst)-len(dst) >= n {
		return dst
	}
	return append(make([]byte, 0, len(dst)+n), dst...)
}

func countEscapes(b []byte) int {
	n := 0
	for c, escape := range escapeFor {
		if escape != 0 {
			n += bytes.Count(b, []byte{byte(c)})
		}
	}
	return n
}

var escapeFor = [256]byte{0: '0', '\'': '\'', '\\': '\\', '\n': 'n', '\r': 'r', 0x1a: 'Z'}

const hexDigits = "0123456789ABCDEF"

// AppendHex appends b as a hexadecimal literal, x'..': bytes whatever the
// session's character set is.
func AppendHex(dst, b []byte) []byte {
	dst = append(dst, 'x', '\'')
	for _, c := range b {
		dst = append(dst, hexDigits[c>>4], hexDigits[c&15])
	}
	return append(dst, '\'')
}
