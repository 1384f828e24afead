package main

import (
	"context"
	"database/sql"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/copydb/copydb/test/servers"
	"golang.org/x/sync/errgroup"
)

const database = "bench"

// dataset is what is copied.
type dataset struct {
	name   string
	tables []table
}

type table struct {
	name  string // with the database
	seed  int    // tells tables of one shape apart
	rows  int
	shape *shape
}

// shape is how the rows of a table look. Their text needs no escapes, in
// statements as in the files of LOAD DATA.
type shape struct {
	columns []string // definitions
	key     string   // the primary key
	indexes []string // all others
	values  string   // expressions of n, from 1 on; %d is the table's seed. MySQL 9.7 has no MD5 and no SHA1
	batch   int      // rows that one statement fills in, at most 10,000
	pieces  int      // rows of one file of mydumper
}

func (s *shape) names() string {
	var names []string
	for _, c := range s.columns {
		name, _, _ := strings.Cut(c, " ")
		names = append(names, name)
	}
	return strings.Join(names, ", ")
}

// plain rows are those of sysbench.
var plain = &shape{
	columns: []string{"id INT NOT NULL AUTO_INCREMENT", "k INT NOT NULL DEFAULT 0", "c CHAR(120) NOT NULL DEFAULT ''", "pad CHAR(60) NOT NULL DEFAULT ''"},
	key:     "PRIMARY KEY (id)",
	indexes: []string{"KEY k (k)"},
	values:  "n, 1 + CRC32(n + %d) %% 500000, " + groups(10) + ", " + groups(5),
	batch:   10_000,
	pieces:  500_000,
}

var wide = &shape{
	columns: []string{"id INT NOT NULL", "body MEDIUMBLOB NOT NULL"},
	key:     "PRIMARY KEY (id)",
	values:  "n, REPEAT(SHA2(n + %d, 256), 1024)",
	batch:   500,
	pieces:  2_000,
}

// text rows come in the order of n, which is not that of their key.
var text = &shape{
	columns: []string{"code VARCHAR(64) NOT NULL", "note VARCHAR(100) NOT NULL", "amount DECIMAL(12,2) NOT NULL"},
	key:     "PRIMARY KEY (code)",
	indexes: []string{"KEY note (note)"},
	values:  "CONCAT(LEFT(SHA2(n + %d, 256), 32), '-', LPAD(n, 8, '0')), CONCAT('note ', SHA2(n, 256)), CRC32(n) / 100",
	batch:   10_000,
	pieces:  500_000,
}

var composite = &shape{
	columns: []string{"customer INT NOT NULL", "day DATE NOT NULL", "line SMALLINT NOT NULL", "sku VARCHAR(40) NOT NULL", "price DECIMAL(10,2) NOT NULL"},
	key:     "PRIMARY KEY (customer, day, line)",
	indexes: []string{"KEY sku (sku)", "KEY day (day)"},
	values:  "n DIV 20, DATE '2026-01-01' + INTERVAL n DIV 4 %% 5 DAY, n %% 4, CONCAT('sku-', LEFT(SHA2(n %% 5000 + %d, 256), 32)), CRC32(n) %% 1000000 / 100",
	batch:   10_000,
	pieces:  500_000,
}

// mainSet is the data set that write loads are measured on.
const mainSet = "main"

// part is some tables of one shape.
type part struct {
	shape        *shape
	tables, rows int
}

var datasets = map[string][]part{
	mainSet: {{plain, 4, 500_000}},
	"big":   {{plain, 1, 4_000_000}},
	"many":  {{plain, 400, 5_000}},
	"wide":  {{wide, 1, 20_000}},
	"keys":  {{text, 2, 250_000}, {composite, 2, 250_000}},
}

var grid = regexp.MustCompile(`^([1-9][0-9]*)x([1-9][0-9]*)$`)

// parseDataset returns a data set by its name, or one of plain rows for a name
// like 100x5000, which is tables x rows. The scale is for the rows of each table.
func parseDataset(name string, scale float64) (dataset, error) {
	parts, ok := datasets[name]
	if m := grid.FindStringSubmatch(name); m != nil {
		tables, terr := strconv.Atoi(m[1])
		rows, rerr := strconv.Atoi(m[2])
		parts, ok = []part{{plain, tables, rows}}, terr == nil && rerr == nil
	}
	if !ok {
		return dataset{}, fmt.Errorf("unknown data set %q, want one of %s, or TABLESxROWS",
			name, strings.Join(slices.Sorted(maps.Keys(datasets)), ", "))
	}
	d := dataset{name: name}
	for _, p := range parts {
		for range p.tables {
			n := len(d.tables) + 1
			d.tables = append(d.tables, table{fmt.Sprintf("%s.sbtest%d", database, n), n, max(1, int(float64(p.rows)*scale)), p.shape})
		}
	}
	return d, nil
}

// String is the data set in a table of results.
func (d dataset) String() string {
	return fmt.Sprintf("%s: %d × %d rows", d.name, len(d.tables), d.tables[0].rows)
}

func (t table) create(indexes bool) string {
	parts := append(slices.Clone(t.shape.columns), t.shape.key)
	if indexes {
		parts = append(parts, t.shape.indexes...)
	}
	return "CREATE TABLE " + t.name + " (" + strings.Join(parts, ", ") + ")"
}

// addIndexes makes what create has left out; empty if there is nothing.
func (t table) addIndexes() string {
	if len(t.shape.indexes) == 0 {
		return ""
	}
	return "ALTER TABLE " + t.name + " ADD " + strings.Join(t.shape.indexes, ", ADD ")
}

const createDatabase = "CREATE DATABASE " + database + " CHARACTER SET utf8mb4"

// fill makes the tables. The server makes the rows; neither they nor the time
// that they take are what is measured, so they are not logged and not flushed.
func (d dataset) fill(ctx context.Context, srv *servers.Server) error {
	flush := func(n int) string {
		return fmt.Sprintf("SET GLOBAL innodb_flush_log_at_trx_commit = %[1]d, GLOBAL sync_binlog = %[1]d", n)
	}
	if _, err := srv.DB().ExecContext(ctx, flush(0)+"; "+createDatabase); err != nil {
		return err
	}
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(2)
	for _, t := range d.tables {
		g.Go(func() error { return t.fill(gctx, srv.DB()) })
	}
	if err := g.Wait(); err != nil {
		return err
	}
	_, err := srv.DB().ExecContext(ctx, flush(1))
	return err
}

func (t table) fill(ctx context.Context, db *sql.DB) error {
	conn, err := db.Conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	if _, err := conn.ExecContext(ctx, t.create(true)+"; SET SESSION sql_log_bin = 0"); err != nil {
		return err
	}
	for from := 0; from < t.rows; from += t.shape.batch {
		if _, err := conn.ExecContext(ctx, t.insert(from, min(t.shape.batch, t.rows-from))); err != nil {
			return err
		}
	}
	_, err = conn.ExecContext(ctx, "ANALYZE NO_WRITE_TO_BINLOG TABLE "+t.name+"; SET SESSION sql_log_bin = 1")
	return err
}

// insert makes rows from+1 to from+count, at most 10,000.
func (t table) insert(from, count int) string {
	const digit = "(SELECT 0 d UNION ALL SELECT 1 UNION ALL SELECT 2 UNION ALL SELECT 3 UNION ALL SELECT 4" +
		" UNION ALL SELECT 5 UNION ALL SELECT 6 UNION ALL SELECT 7 UNION ALL SELECT 8 UNION ALL SELECT 9)"
	return fmt.Sprintf("INSERT INTO %s (%s) SELECT %s"+
		" FROM (SELECT %d + a.d + 10 * b.d + 100 * c.d + 1000 * e.d + 1 n FROM %[5]s a, %[5]s b, %[5]s c, %[5]s e) numbers"+
		" WHERE n <= %[6]d ORDER BY n", t.name, t.shape.names(), fmt.Sprintf(t.shape.values, t.seed), from, digit, from+count)
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

// contents is what all tables of the data set hold on a server.
type contents struct {
	rows, bytes int64  // bytes as text
	digest      string // equal for equal rows and indexes
}

func (d dataset) contents(ctx context.Context, db *sql.DB) (contents, error) {
	var all contents
	sums := make([]string, len(d.tables))
	for i, t := range d.tables {
		var rows, bytes int64
		names := t.shape.names()
		query := fmt.Sprintf("SELECT COUNT(*), COALESCE(SUM(LENGTH(%s)), 0), CONCAT(COALESCE(SUM(CRC32(CONCAT_WS('|', %s))), 0), '/',"+
			" (SELECT COUNT(*) FROM information_schema.statistics WHERE table_schema = '%s' AND table_name = '%s')) FROM %s",
			strings.ReplaceAll(names, ", ", ") + LENGTH("), names, database, strings.TrimPrefix(t.name, database+"."), t.name)
		if err := db.QueryRowContext(ctx, query).Scan(&rows, &bytes, &sums[i]); err != nil {
			return all, fmt.Errorf("read %s: %w", t.name, err)
		}
		all.rows, all.bytes = all.rows+rows, all.bytes+bytes
	}
	all.digest = strings.Join(sums, " ")
	return all, nil
}
