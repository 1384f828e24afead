package table

import (
	"bytes"
	"encoding/binary"
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
	return append(AppendEscaped(append(dst, '\''), b, &escapeFor), '\'')
}

// AppendEscaped appends b with a backslash and what escape has for it in the
// place of each byte that escape has something for. Those must be below 27, quotes
// or backslashes.
func AppendEscaped(dst, b []byte, escape *[256]byte) []byte {
	from, at := 0, 0
	for at < len(b) {
		for at+8 <= len(b) && !special(binary.LittleEndian.Uint64(b[at:])) {
			at += 8
		}
		for end := min(at+8, len(b)); at < end; at++ {
			if e := escape[b[at]]; e != 0 {
				dst = append(append(dst, b[from:at]...), '\\', e)
				from = at + 1
			}
		}
	}
	return append(dst, b[from:]...)
}

// special reports whether one of eight bytes is below 27, a quote or a backslash.
func special(bytes uint64) bool {
	const ones, tops = 0x0101010101010101, 0x8080808080808080
	quotes, slashes := bytes^'\''*ones, bytes^'\\'*ones // zero where one is
	return ((bytes-27*ones)&^bytes|(quotes-ones)&^quotes|(slashes-ones)&^slashes)&tops != 0
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
