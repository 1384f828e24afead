package testdb

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/copydb/copydb/test/servers"
)

// Digest returns, for each base table of the databases, "rows N digest D" under
// "database.table". Two tables have the same digest if they hold the same rows
// by value, in any order: strings by their own bytes, FLOAT at full width,
// enum and set by number and text, BIT by number, geometry by SRID and WKB,
// JSON by its text, TIMESTAMP in UTC, NULL apart from everything. Of system-versioned
// tables that is the current rows, without the times of their versions.
func Digest(t testing.TB, srv *servers.Server, databases []string) map[string]string {
	t.Helper()
	digests, err := digest(t.Context(), srv, databases)
	if err != nil {
		t.Fatal(err)
	}
	return digests
}

func digest(ctx context.Context, srv *servers.Server, databases []string) (map[string]string, error) {
	conn, err := pin(ctx, srv)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	all, err := tables(ctx, conn, databases)
	if err != nil {
		return nil, err
	}
	digests := map[string]string{}
	for _, tab := range all {
		var rows, sum string
		// the sum of 48 bits of each row's hash cannot overflow a DECIMAL
		query := "SELECT COUNT(*), COALESCE(SUM(CAST(CONV(SUBSTR(" + rowHash(tab) + ", 1, 12), 16, 10) AS UNSIGNED)), 0) FROM " + tab.quoted()
		if err := conn.QueryRowContext(ctx, query).Scan(&rows, &sum); err != nil {
			return nil, fmt.Errorf("digest %s: %w", tab, err)
		}
		digests[tab.String()] = fmt.Sprintf("rows %s digest %s", rows, sum)
	}
	return digests, nil
}

// rowHash returns an expression over a row of the table: hex of a hash of all
// its values.
func rowHash(t *table) string {
	var values []string
	for _, c := range t.columns {
		if !c.rowTime {
			values = append(values, "COALESCE("+c.value()+", '~N')")
		}
	}
	return "SHA2(CONCAT_WS('|', " + strings.Join(values, ", ") + "), 256)"
}

// value returns an expression for the column as ASCII text that differs
// whenever the value does. Long types are hashed on their own: their hex could
// be longer than max_allowed_packet, and then is NULL.
func (c columnInfo) value() string {
	n := quote(c.name)
	switch c.dataType {
	case "enum", "set":
		return "CONCAT(HEX(" + n + "), '/', CAST(" + n + " AS UNSIGNED))"
	case "tinytext", "text", "mediumtext", "longtext", "tinyblob", "blob", "mediumblob", "longblob":
		return "CONCAT(LENGTH(" + n + "), ':', SHA2(CAST(" + n + " AS BINARY), 256))"
	case "char", "varchar", "binary", "varbinary", "vector",
		"geometry", "point", "linestring", "polygon", "multipoint", "multilinestring", "multipolygon",
		"geometrycollection", "geomcollection":
		return "HEX(" + n + ")"
	case "float", "double":
		return "CONCAT(" + n + " * 1e0)" // the whole of the stored number, the sign of zero too
	case "bit":
		return "HEX(" + n + " + 0)"
	case "json":
		return "SHA2(CAST(CAST(" + n + " AS CHAR) AS BINARY), 256)"
	default:
		return "CONCAT(" + n + ")"
	}
}
