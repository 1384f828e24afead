package table

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// SelectExpression is what a column is read by, so that its text is exact: FLOAT
// at full width, ENUM and SET as numbers (their text depends on character sets,
// and index 0 reads like a member ”), everything else as it is.
func (c *Column) SelectExpression() string {
	q := Quote(c.Name)
	switch c.Kind {
	case Float:
		return q + "*1e0" // a sum loses the sign of zero
	case Enum, Set:
		return "CAST(" + q + " AS UNSIGNED)"
	}
	return q
}

// LoadTarget is how the column stands in LOAD DATA's column list, and the SET
// clause it then needs ("" for none). n numbers the user variable.
func (c *Column) LoadTarget(n int) (target, set string) {
	v := "@v" + strconv.Itoa(n)
	q := Quote(c.Name)
	switch c.Kind {
	case Enum, Set:
		return v, q + "=CAST(" + v + " AS UNSIGNED)"
	case JSON:
		return v, q + "=CONVERT(" + v + " USING utf8mb4)"
	case Address:
		return v, q + "=CONVERT(" + v + " USING ascii)"
	}
	return q, ""
}

// AppendLiteral appends a value that was read by SelectExpression as an SQL
// literal, for a session with binary character set and time_zone +00:00. A nil
// value is NULL.
func (c *Column) AppendLiteral(dst, v []byte) []byte {
	if v == nil {
		return append(dst, "NULL"...)
	}
	switch c.Kind {
	case Integer, Decimal, Float, Double, Enum, Set:
		return append(dst, v...)
	case Bit:
		return append(dst, BitLiteral(v)...)
	case JSON:
		return AppendString(append(dst, "_utf8mb4"...), v)
	case Address:
		return AppendString(append(dst, "_ascii"...), v)
	}
	return AppendString(dst, v)
}

// BitLiteral writes the bytes of a BIT as a number.
func BitLiteral(v []byte) string {
	var n uint64
	for _, b := range v {
		n = n<<8 | uint64(b)
	}
	return strconv.FormatUint(n, 10)
}

// AppendBound appends a key column's value as a literal for a comparison with
// the column, such that the server compares as it orders and can use the index:
// text in the column's own character set (mydumper and others failed with error
// 3988 where it was not), ENUM and SET by number, which is how they are ordered.
func (c *Column) AppendBound(dst, v []byte) []byte {
	switch c.Kind {
	case Text:
		return AppendHex(append(dst, "_"+c.Charset+" "...), v)
	case Binary:
		return AppendHex(append(dst, "_binary "...), v)
	case Year:
		// The string '0' means 2000, the number 0 means 0000.
		n, _ := strconv.Atoi(string(v))
		return strconv.AppendInt(dst, int64(n), 10)
	}
	return c.AppendLiteral(dst, v)
}

// BoundExpression is the column as it stands in a comparison with AppendBound's
// literal and in ORDER BY.
func (c *Column) BoundExpression() string {
	if c.Kind == Set && c.MaxOrdinal() > math.MaxInt64 { // compared and sorted with a sign otherwise
		return "CAST(" + Quote(c.Name) + " AS UNSIGNED)"
	}
	return Quote(c.Name)
}

// MaxOrdinal is the largest number that a value of an ENUM or SET can have, the
// largest there is for other kinds.
func (c *Column) MaxOrdinal() uint64 {
	switch c.Kind {
	case Enum:
		return uint64(members(c.FullType))
	case Set:
		if n := members(c.FullType); n < 64 {
			return 1<<n - 1
		}
	}
	return math.MaxUint64
}

// members counts what an ENUM or SET lists. A quote within a member is doubled.
func members(fullType string) int {
	n, quoted := 1, false
	for _, c := range []byte(fullType) {
		switch {
		case c == '\'':
			quoted = !quoted
		case c == ',' && !quoted:
			n++
		}
	}
	return n
}

// kindOf derives the kind from the catalogue's names.
func kindOf(dataType string, isMySQL bool) Kind {
	switch dataType {
	case "tinyint", "smallint", "mediumint", "int", "integer", "bigint":
		return Integer
	case "decimal", "numeric":
		return Decimal
	case "float":
		return Float
	case "double", "real":
		return Double
	case "bit":
		return Bit
	case "date", "time", "datetime", "timestamp":
		return Temporal
	case "year":
		return Year
	case "char", "varchar", "tinytext", "text", "mediumtext", "longtext":
		return Text
	case "binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob":
		return Binary
	case "enum":
		return Enum
	case "set":
		return Set
	case "json":
		if isMySQL {
			return JSON
		}
		return Text
	case "geometry", "point", "linestring", "polygon", "multipoint", "multilinestring", "multipolygon",
		"geometrycollection", "geomcollection":
		return Geometry
	case "vector":
		return Vector
	case "uuid", "inet4", "inet6":
		return Address
	}
	return Unknown
}

// lengthOf reads n of BINARY(n) and BIT(n).
func lengthOf(dataType, fullType string) int {
	if dataType != "binary" && dataType != "bit" {
		return 0
	}
	_, rest, ok := strings.Cut(fullType, "(")
	if !ok {
		return 1
	}
	var n int
	if _, err := fmt.Sscanf(rest, "%d", &n); err != nil {
		return 1
	}
	return n
}
