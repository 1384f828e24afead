package streamer

import (
	"errors"
	"fmt"
	"math"
	"net/netip"
	"slices"
	"strconv"

	"github.com/copydb/copydb/internal/table"
)

// arena holds literals in few pieces of memory. It is never emptied: rows keep
// what they point at alive.
type arena struct {
	buf  []byte
	rows [][]byte
}

const (
	arenaBytes = 64 << 10
	arenaCells = 1024
)

// row returns n empty cells.
func (a *arena) row(n int) [][]byte {
	if len(a.rows) < n {
		a.rows = make([][]byte, max(arenaCells, n))
	}
	row := a.rows[:n:n]
	a.rows = a.rows[n:]
	return row
}

// ownBytes is how long the literals of a row may be together for it to share its
// cells.
const ownBytes = 4 << 10

// own gives a row cells of its own where its literals are long: a piece of cells
// lives as long as any of its rows, with all that its cells point at.
func (a *arena) own(row [][]byte) [][]byte {
	n := 0
	for _, lit := range row {
		n += len(lit)
	}
	if n <= ownBytes {
		return row
	}
	own := slices.Clone(row)
	clear(row)
	return own
}

// room makes sure that n bytes can be appended without a move.
func (a *arena) room(n int) {
	if cap(a.buf)-len(a.buf) < n {
		a.buf = make([]byte, 0, max(arenaBytes, n))
	}
}

var nullLiteral = []byte("NULL")

// literal renders one value as an SQL literal for a session with binary
// character set, time_zone +00:00 and backslash escapes. Text of a key column
// carries its character set, so that a comparison with the column uses the
// index.
func (a *arena) literal(c *table.Column, inKey bool, v any) ([]byte, error) {
	if v == nil {
		return nullLiteral, nil
	}
	if n := length(v); n > table.LargeValue {
		a.buf = nil // it takes the memory that it needs
	} else {
		a.room(64 + 2*n)
	}
	start := len(a.buf)
	buf, err := appendLiteral(a.buf, c, inKey, v)
	if err != nil {
		return nil, err
	}
	a.buf = buf
	return buf[start:len(buf):len(buf)], nil
}

func length(v any) int {
	switch v := v.(type) {
	case string:
		return len(v)
	case []byte:
		return len(v)
	}
	return 0
}

var errValue = errors.New("its value in the row event has another type than the table's structure says; it was changed since it was read")

func appendLiteral(dst []byte, c *table.Column, inKey bool, v any) ([]byte, error) {
	switch c.Kind {
	case table.Integer:
		return appendInteger(dst, c, v)
	case table.Float, table.Double:
		return appendFloat(dst, v)
	case table.Bit, table.Set, table.Enum:
		n, ok := v.(int64)
		if !ok {
			return nil, errValue
		}
		return strconv.AppendUint(dst, uint64(n), 10), nil
	case table.Year:
		// A number: 0 is the year 0000, while the string '0' is 2000.
		n, ok := v.(int)
		if !ok {
			return nil, errValue
		}
		return strconv.AppendInt(dst, int64(n), 10), nil
	}
	b, ok := asBytes(v)
	if !ok {
		return nil, errValue
	}
	return appendBytes(dst, c, inKey, b)
}

func asBytes(v any) ([]byte, bool) {
	switch v := v.(type) {
	case string:
		return []byte(v), true
	case []byte:
		return v, true
	}
	return nil, false
}

func appendBytes(dst []byte, c *table.Column, inKey bool, b []byte) ([]byte, error) {
	switch c.Kind {
	case table.Decimal:
		return append(dst, b...), nil
	case table.Temporal:
		return append(append(append(dst, '\''), b...), '\''), nil
	case table.JSON:
		if len(b) == 0 {
			b = []byte("null") // what the server reads an empty document as
		}
		return table.AppendString(append(dst, "_utf8mb4"...), shortDoubles(b)), nil
	case table.Address:
		return appendAddress(dst, c.Type, b)
	case table.Binary:
		if c.Type == "binary" {
			b = padded(b, c.Length)
		}
		return table.AppendString(append(dst, "_binary"...), b), nil
	case table.Text:
		if inKey {
			dst = append(append(dst, '_'), introducer(c.Charset)...)
		}
		return table.AppendString(dst, b), nil
	case table.Geometry, table.Vector:
		return table.AppendString(dst, b), nil
	}
	return nil, fmt.Errorf("its type %s is not supported", c.FullType)
}

// introducer returns the character set that a literal of a column's text is
// written with. MySQL warns of each mention of utf8mb3, of which utf8mb4 is a
// superset.
func introducer(charset string) string {
	if charset == "utf8mb3" || charset == "utf8" {
		return "utf8mb4"
	}
	return charset
}

// padded puts back the zeros that row events leave off BINARY(n).
func padded(b []byte, n int) []byte {
	if len(b) >= n {
		return b
	}
	return append(append(make([]byte, 0, n), b...), make([]byte, n-len(b))...)
}

// appendInteger takes the sign from the structure: row events may not have it.
func appendInteger(dst []byte, c *table.Column, v any) ([]byte, error) {
	var n int64
	var width uint
	switch v := v.(type) {
	case int8:
		n, width = int64(v), 8
	case uint8:
		n, width = int64(int8(v)), 8
	case int16:
		n, width = int64(v), 16
	case uint16:
		n, width = int64(int16(v)), 16
	case int32:
		n, width = int64(v), 32
	case uint32:
		n, width = int64(int32(v)), 32
	case int64:
		n, width = v, 64
	case uint64:
		n, width = int64(v), 64
	default:
		return nil, errValue
	}
	if c.Type == "mediumint" {
		width, n = 24, n<<40>>40
	}
	if c.Unsigned {
		return strconv.AppendUint(dst, uint64(n)&(math.MaxUint64>>(64-width)), 10), nil
	}
	return strconv.AppendInt(dst, n, 10), nil
}

// appendFloat writes the exact double, also for FLOAT, with an exponent: a
// literal without one is a DECIMAL, which has no negative zero.
func appendFloat(dst []byte, v any) ([]byte, error) {
	var f float64
	switch v := v.(type) {
	case float32:
		f = float64(v)
	case float64:
		f = v
	default:
		return nil, errValue
	}
	if math.IsInf(f, 0) || math.IsNaN(f) {
		return nil, errors.New("its value is no number that SQL can write")
	}
	return strconv.AppendFloat(dst, f, 'e', -1, 64), nil
}

// appendAddress writes MariaDB's UUID and INET types in their text form: their
// bytes are refused in comparisons.
func appendAddress(dst []byte, kind string, b []byte) ([]byte, error) {
	dst = append(dst, "_ascii'"...)
	switch kind {
	case "uuid":
		if len(b) > 16 {
			return nil, errValue
		}
		for i, x := range padded(b, 16) {
			if i == 4 || i == 6 || i == 8 || i == 10 {
				dst = append(dst, '-')
			}
			dst = append(dst, lowerHex[x>>4], lowerHex[x&15])
		}
	case "inet4", "inet6":
		n := map[string]int{"inet4": 4, "inet6": 16}[kind]
		addr, ok := netip.AddrFromSlice(padded(b, n))
		if !ok || len(b) > n {
			return nil, errValue
		}
		dst = addr.AppendTo(dst)
	default:
		return nil, fmt.Errorf("its type %s is not supported", kind)
	}
	return append(dst, '\''), nil
}

const lowerHex = "0123456789abcdef"
