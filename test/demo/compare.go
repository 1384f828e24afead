package main

import (
	"context"
	"database/sql"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/copydb/copydb/test/servers"
	"golang.org/x/sync/errgroup"
)

// digest is what one side has of a table; comparable.
type digest struct {
	rows      int64
	sum       string // of a hash of each row
	structure string
}

// digests returns the digest of each table of the shop, per server.
func digests(ctx context.Context, sides ...*servers.Server) ([]map[string]digest, error) {
	out := make([]map[string]digest, len(sides))
	var g errgroup.Group
	for i, srv := range sides {
		g.Go(func() (err error) {
			out[i], err = digestsOf(ctx, srv.DB())
			return err
		})
	}
	return out, g.Wait()
}

func digestsOf(ctx context.Context, db *sql.DB) (map[string]digest, error) {
	out := map[string]digest{}
	for _, t := range shopTables {
		d, err := digestOf(ctx, db, t)
		if err != nil {
			return nil, fmt.Errorf("digest %s: %w", t, err)
		}
		out[t] = d
	}
	return out, nil
}

// A table's next AUTO_INCREMENT value may differ: deleted rows leave no trace.
var autoIncrement = regexp.MustCompile(` AUTO_INCREMENT=\d+`)

func digestOf(ctx context.Context, db *sql.DB, name string) (digest, error) {
	var d digest
	var columns string
	err := db.QueryRowContext(ctx, "SELECT GROUP_CONCAT(CONCAT('COALESCE(HEX(`', column_name, '`), ''-'')') ORDER BY ordinal_position SEPARATOR ', ')"+
		" FROM information_schema.columns WHERE table_schema = ? AND table_name = ?", shopDatabase, name).Scan(&columns)
	if err != nil {
		return d, err
	}
	table := shopDatabase + "." + name
	// The sum of 48 bits of each row's hash cannot overflow a DECIMAL.
	err = db.QueryRowContext(ctx, "SELECT COUNT(*), COALESCE(LPAD(SUM(CAST(CONV(LEFT(SHA2(CONCAT_WS('|', "+columns+"), 256), 12), 16, 10) AS UNSIGNED)) % 1000000000000037, 16, '0'), '')"+
		" FROM "+table).Scan(&d.rows, &d.sum)
	if err != nil {
		return d, err
	}
	err = db.QueryRowContext(ctx, "SHOW CREATE TABLE "+table).Scan(&name, &d.structure)
	d.structure = autoIncrement.ReplaceAllString(d.structure, "")
	return d, err
}

func tableCounts(ctx context.Context, db *sql.DB) (map[string]int64, error) {
	out := map[string]int64{}
	for _, t := range shopTables {
		var n int64
		if err := db.QueryRowContext(ctx, "SELECT COUNT(*) FROM "+shopDatabase+"."+t).Scan(&n); err != nil {
			return nil, fmt.Errorf("count %s: %w", t, err)
		}
		out[t] = n
	}
	return out, nil
}

// sessionsOf counts the sessions of a user.
func sessionsOf(ctx context.Context, srv *servers.Server, user string) (n int, err error) {
	list := "performance_schema.processlist"
	if srv.Kind.IsMariaDB() {
		list = "information_schema.processlist"
	}
	err = srv.DB().QueryRowContext(ctx, "SELECT COUNT(*) FROM "+list+" WHERE user = ?", user).Scan(&n)
	return n, err
}

// hasLines tells the statement that has several rows for each number.
func hasLines(insert string) bool { return strings.HasPrefix(insert, "INSERT INTO order_items") }

// number prints 1204 as 1,204.
func number(n int64) string {
	s := strconv.FormatInt(n, 10)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
