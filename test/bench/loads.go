package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/go-sql-driver/mysql"
	"golang.org/x/sync/errgroup"
)

const (
	sessions  = 4  // that write
	hotRows   = 50 // of each table, with hot keys
	ofEachRow = 4  // changes in a transaction of every load but the large one
)

// load is a way to write to tables of plain rows.
type load struct {
	name, text string
	// transaction makes the statements of one transaction; nil: all is one.
	transaction func(t table) string
}

var loads = []load{
	{"uniform", "two updates, a delete and an insert", uniform},
	{"hot", "four updates of few rows", hot},
	{"inserts", "four inserts", inserts},
	{"large", "one transaction of updates, deletes and inserts", nil},
}

func uniform(t table) string {
	id := func() int { return 1 + rand.IntN(t.rows) }
	return fmt.Sprintf("UPDATE %[1]s SET k = k + 1 WHERE id = %[2]d;"+
		" UPDATE %[1]s SET c = CONCAT('%011[3]d', SUBSTR(c, 12)) WHERE id = %[4]d;"+
		" DELETE FROM %[1]s WHERE id = %[5]d; INSERT INTO %[1]s (id, k, c, pad) VALUES (%[5]d, %[6]d, REPEAT('c', 119), REPEAT('p', 59))",
		t.name, id(), rand.Uint32(), id(), id(), rand.IntN(500_000))
}

func hot(t table) string {
	var ids, statements []string
	for range ofEachRow {
		ids = append(ids, fmt.Sprintf("%d", 1+rand.IntN(hotRows)*max(1, t.rows/hotRows)%t.rows))
	}
	slices.Sort(ids) // the same order for all, so that they wait but are no deadlock
	for _, id := range ids {
		statements = append(statements, "UPDATE "+t.name+" SET k = k + 1 WHERE id = "+id)
	}
	return strings.Join(statements, "; ")
}

func inserts(t table) string {
	one := func() string {
		return fmt.Sprintf("INSERT INTO %s (k, c, pad) VALUES (%d, CONCAT('%011d', REPEAT('c', 108)), REPEAT('p', 59))",
			t.name, rand.IntN(500_000), rand.Uint32())
	}
	return strings.Join([]string{one(), one(), one(), one()}, "; ")
}

// written is what a load has written.
type written struct{ transactions, changes int64 }

// write writes so many transactions, or one with as many changes.
func (b *bench) write(ctx context.Context, l load, transactions int) (written, error) {
	if l.transaction == nil {
		return b.writeLarge(ctx, transactions)
	}
	var begun atomic.Int64
	return b.writeWhile(ctx, l, func() bool { return begun.Add(1) <= int64(transactions) })
}

// writeWhile writes over several sessions as long as more says so.
func (b *bench) writeWhile(ctx context.Context, l load, more func() bool) (written, error) {
	var n atomic.Int64
	g, ctx := errgroup.WithContext(ctx)
	for range sessions {
		g.Go(func() error {
			conn, err := b.lab.Source.DB().Conn(ctx)
			if err != nil {
				return err
			}
			defer conn.Close()
			for more() {
				t := b.data.tables[rand.IntN(len(b.data.tables))]
				if err := transact(ctx, conn, func() string { return l.transaction(t) }); err != nil {
					return err
				}
				n.Add(1)
			}
			return nil
		})
	}
	err := g.Wait()
	return written{n.Load(), n.Load() * ofEachRow}, err
}

func transact(ctx context.Context, conn *sql.Conn, statements func() string) error {
	for {
		_, err := conn.ExecContext(ctx, "BEGIN; "+statements()+"; COMMIT")
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

// writeLarge changes so many rows of each table, half of them by updates.
func (b *bench) writeLarge(ctx context.Context, rows int) (written, error) {
	tx, err := b.lab.Source.DB().BeginTx(ctx, nil)
	if err != nil {
		return written{}, err
	}
	defer tx.Rollback() //nolint:errcheck // of a transaction that failed, or is committed
	w := written{transactions: 1}
	for _, t := range b.data.tables {
		half := min(rows, t.rows) / 2
		for _, q := range []string{
			fmt.Sprintf("UPDATE %s SET k = k + 1 WHERE id <= %d", t.name, half),
			fmt.Sprintf("DELETE FROM %s WHERE id > %d AND id <= %d", t.name, half, half+half/2),
			fmt.Sprintf("INSERT INTO %[1]s (k, c, pad) SELECT k, c, pad FROM %[1]s WHERE id <= %[2]d", t.name, half/2),
		} {
			res, err := tx.ExecContext(ctx, q)
			if err != nil {
				return w, err
			}
			n, err := res.RowsAffected()
			if err != nil {
				return w, err
			}
			w.changes += n
		}
	}
	return w, tx.Commit()
}
