package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/copydb/copydb/test/servers"
	"github.com/go-sql-driver/mysql"
	"golang.org/x/sync/errgroup"
)

const (
	database = "bench"
	tables   = 4
	sessions = 4 // that write
)

func name(table int) string { return fmt.Sprintf("%s.sbtest%d", database, table+1) }

// fillTables makes tables like those of sysbench. The server makes the rows.
func fillTables(ctx context.Context, srv *servers.Server, rows int) error {
	if _, err := srv.DB().ExecContext(ctx, "CREATE DATABASE "+database+" CHARACTER SET utf8mb4"); err != nil {
		return err
	}
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(2)
	for n := range tables {
		g.Go(func() error { return fillTable(ctx, srv.DB(), n, rows) })
	}
	return g.Wait()
}

func fillTable(ctx context.Context, db *sql.DB, n, rows int) error {
	create := "CREATE TABLE " + name(n) + ` (
	  id INT NOT NULL AUTO_INCREMENT,
	  k INT NOT NULL DEFAULT 0,
	  c CHAR(120) NOT NULL DEFAULT '',
	  pad CHAR(60) NOT NULL DEFAULT '',
	  PRIMARY KEY (id),
	  KEY k (k)
	)`
	if _, err := db.ExecContext(ctx, create); err != nil {
		return err
	}
	const batch = 10_000
	for from := 0; from < rows; from += batch {
		if _, err := db.ExecContext(ctx, fillStatement(n, from, min(batch, rows-from))); err != nil {
			return err
		}
	}
	_, err := db.ExecContext(ctx, "ANALYZE NO_WRITE_TO_BINLOG TABLE "+name(n))
	return err
}

// fillStatement inserts rows from+1 to from+count, at most 10,000.
func fillStatement(n, from, count int) string {
	const digit = "(SELECT 0 d UNION ALL SELECT 1 UNION ALL SELECT 2 UNION ALL SELECT 3 UNION ALL SELECT 4" +
		" UNION ALL SELECT 5 UNION ALL SELECT 6 UNION ALL SELECT 7 UNION ALL SELECT 8 UNION ALL SELECT 9)"
	return fmt.Sprintf("INSERT INTO %s (id, k, c, pad) SELECT n, 1 + CRC32(n + %d) %% 500000, %s, %s"+
		" FROM (SELECT %d + a.d + 10 * b.d + 100 * c.d + 1000 * e.d + 1 n FROM %[6]s a, %[6]s b, %[6]s c, %[6]s e) numbers"+
		" WHERE n <= %[7]d ORDER BY n", name(n), n, groups(10), groups(5), from, digit, from+count)
}

// groups is an expression for groups of eleven digits with dashes, as sysbench
// makes them.
func groups(n int) string {
	var parts []string
	for i := range n {
		parts = append(parts, fmt.Sprintf("LPAD(CRC32(CONCAT(n, '/%d')), 11, '%d')", i, 1+i%9))
	}
	return "CONCAT_WS('-', " + strings.Join(parts, ", ") + ")"
}

// amount returns the rows of all tables, and their bytes as text.
func amount(ctx context.Context, db *sql.DB) (rows, bytes int64, err error) {
	for n := range tables {
		var r, b int64
		query := "SELECT COUNT(*), COALESCE(SUM(LENGTH(id) + LENGTH(k) + LENGTH(c) + LENGTH(pad)), 0) FROM " + name(n)
		if err := db.QueryRowContext(ctx, query).Scan(&r, &b); err != nil {
			return 0, 0, fmt.Errorf("count %s: %w", name(n), err)
		}
		rows, bytes = rows+r, bytes+b
	}
	return rows, bytes, nil
}

// checksum is equal for equal tables.
func checksum(ctx context.Context, db *sql.DB) (string, error) {
	var all []string
	for n := range tables {
		var sum string
		query := "SELECT CONCAT(COUNT(*), ' rows ', COALESCE(SUM(CAST(CRC32(CONCAT_WS('|', id, k, c, pad)) AS UNSIGNED)), 0)) FROM " + name(n)
		if err := db.QueryRowContext(ctx, query).Scan(&sum); err != nil {
			return "", fmt.Errorf("checksum of %s: %w", name(n), err)
		}
		all = append(all, sum)
	}
	return strings.Join(all, ", "), nil
}

// load is what was written to the source.
type load struct{ transactions, changes int64 }

// write runs transactions like those of sysbench's oltp_write_only: each two
// updates, a delete, and an insert of the same row.
func write(ctx context.Context, srv *servers.Server, rows, transactions int) (load, error) {
	g, ctx := errgroup.WithContext(ctx)
	for s := range sessions {
		g.Go(func() error {
			conn, err := srv.DB().Conn(ctx)
			if err != nil {
				return err
			}
			defer conn.Close()
			for i := s; i < transactions; i += sessions {
				if err := writeOnce(ctx, conn, rows); err != nil {
					return err
				}
			}
			return nil
		})
	}
	const changes = 4
	return load{int64(transactions), changes * int64(transactions)}, g.Wait()
}

func writeOnce(ctx context.Context, conn *sql.Conn, rows int) error {
	for {
		t := name(rand.IntN(tables))
		id := func() int { return 1 + rand.IntN(rows) }
		again := id()
		_, err := conn.ExecContext(ctx, fmt.Sprintf("BEGIN; UPDATE %[1]s SET k = k + 1 WHERE id = %[2]d;"+
			" UPDATE %[1]s SET c = CONCAT('%011[3]d', SUBSTR(c, 12)) WHERE id = %[4]d;"+
			" DELETE FROM %[1]s WHERE id = %[5]d; INSERT INTO %[1]s (id, k, c, pad) VALUES (%[5]d, %[6]d, REPEAT('c', 119), REPEAT('p', 59)); COMMIT",
			t, id(), rand.Uint32(), id(), again, rand.IntN(500_000)))
		var server *mysql.MySQLError
		if !errors.As(err, &server) || server.Number != 1213 && server.Number != 1205 && server.Number != 1062 {
			return err
		}
		// Lost against another session: begin again.
		if _, err := conn.ExecContext(ctx, "ROLLBACK"); err != nil {
			return err
		}
	}
}
