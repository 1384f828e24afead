package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/copydb/copydb/test/servers"
	"github.com/go-sql-driver/mysql"
	"golang.org/x/sync/errgroup"
)

const (
	writers    = 3
	writePause = 20 * time.Millisecond // of each writer between two transactions
)

// writes are the sessions that write to the shop until they are stopped.
type writes struct {
	cancel context.CancelFunc
	group  *errgroup.Group
	db     *sql.DB
	mu     sync.Mutex
	done   counts
}

// counts is what was written.
type counts struct{ placed, changed, deleted int64 }

func (c counts) transactions() int64 { return c.placed + c.changed + c.deleted }

func startWrites(ctx context.Context, srv *servers.Server) (*writes, error) {
	ctx, cancel := context.WithCancel(ctx)
	g, ctx := errgroup.WithContext(ctx)
	w := &writes{cancel: cancel, group: g, db: srv.Open()}
	var orders int64
	if err := w.db.QueryRowContext(ctx, "SELECT MAX(id) FROM shop.orders").Scan(&orders); err != nil {
		return nil, errors.Join(err, w.db.Close())
	}
	for range writers {
		g.Go(func() error { return w.write(ctx, orders) })
	}
	return w, nil
}

// stop ends the writes and returns how many there were. It may be called twice.
func (w *writes) stop() (counts, error) {
	w.cancel()
	err := w.group.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.done, errors.Join(err, w.db.Close())
}

// write does one transaction after the other until ctx ends.
func (w *writes) write(ctx context.Context, orders int64) error {
	tick := time.NewTicker(writePause)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		if err := w.transaction(ctx, orders); err != nil && ctx.Err() == nil {
			return err
		}
	}
}

// again are the servers' ways to say "try the transaction again": a lock wait
// that was given up, a deadlock, and MariaDB's deadlock over AUTO_INCREMENT.
var again = []uint16{1205, 1213, 1467}

func (w *writes) transaction(ctx context.Context, orders int64) error {
	kinds := []struct {
		do    func(context.Context, *sql.Tx, int64) error
		count *int64
	}{
		{place, &w.done.placed}, {place, &w.done.placed}, {change, &w.done.changed}, {change, &w.done.changed}, {remove, &w.done.deleted},
	}
	kind := kinds[rand.IntN(len(kinds))]
	for {
		err := w.attempt(ctx, func(tx *sql.Tx) error { return kind.do(ctx, tx, 1+rand.Int64N(orders)) })
		var server *mysql.MySQLError
		if errors.As(err, &server) && slices.Contains(again, server.Number) {
			continue
		}
		if err == nil {
			w.mu.Lock()
			*kind.count++
			w.mu.Unlock()
		}
		return err
	}
}

func (w *writes) attempt(ctx context.Context, do func(*sql.Tx) error) error {
	tx, err := w.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	if err := do(tx); err != nil {
		return errors.Join(err, tx.Rollback())
	}
	return tx.Commit()
}

// place puts a new order, with its lines and its payment, by a customer who may
// be new, too.
func place(ctx context.Context, tx *sql.Tx, like int64) error {
	if like%5 == 0 {
		email := fmt.Sprintf("new%d-%d@example.org", like, rand.Uint64())
		if _, err := tx.ExecContext(ctx, "INSERT INTO shop.customers (email, name, country) VALUES (?, 'Nǐ hǎo', 'SG')", email); err != nil {
			return err
		}
	}
	res, err := tx.ExecContext(ctx, "INSERT INTO shop.orders (customer, placed, note)"+
		" SELECT customer, UTC_TIMESTAMP(3), CONCAT('as ordered before: ', ?) FROM shop.orders WHERE id >= ? ORDER BY id LIMIT 1", like, like)
	if err != nil {
		return err
	}
	id, err := res.LastInsertId()
	if err != nil {
		return err
	}
	for line := range 1 + rand.IntN(4) {
		if _, err := tx.ExecContext(ctx, "INSERT INTO shop.order_items (order_id, line, sku, quantity, price)"+
			" SELECT ?, ?, sku, ?, price FROM shop.products WHERE sku >= CONCAT('SKU-', LPAD(?, 8, '0')) ORDER BY sku LIMIT 1",
			id, line+1, 1+rand.IntN(9), rand.Int64N(like)/50); err != nil {
			return err
		}
	}
	_, err = tx.ExecContext(ctx, "INSERT INTO shop.payments (token, order_id, amount, reply) VALUES (UNHEX(REPLACE(UUID(), '-', '')), ?, ?, JSON_OBJECT('ok', TRUE))",
		id, float64(like%10000)/100)
	return err
}

// change moves an order on to its next status, and a product's price.
func change(ctx context.Context, tx *sql.Tx, id int64) error {
	if _, err := tx.ExecContext(ctx, "UPDATE shop.orders SET status = 1 + status % 4 WHERE id BETWEEN ? AND ?", id, id+2); err != nil {
		return err
	}
	_, err := tx.ExecContext(ctx, "UPDATE shop.products SET price = price + 0.01, tags = tags | 2"+
		" WHERE sku = CONCAT('SKU-', LPAD(?, 8, '0'))", id/25)
	return err
}

// remove deletes an order with what belongs to it.
func remove(ctx context.Context, tx *sql.Tx, id int64) error {
	for _, q := range []string{"DELETE FROM shop.payments WHERE order_id = ?", "DELETE FROM shop.order_items WHERE order_id = ?",
		"DELETE FROM shop.orders WHERE id = ?"} {
		if _, err := tx.ExecContext(ctx, q, id); err != nil {
			return err
		}
	}
	return nil
}
