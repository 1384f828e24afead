package testdb

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"

	"github.com/go-sql-driver/mysql"
)

// writer is one session of a load. Not safe for concurrent use.
type writer struct {
	load *Generator
	rand *rand.Rand
	conn *pinned // nil while the server is away
}

func (w *writer) disconnect() {
	if w.conn != nil {
		_ = w.conn.Close() // it is broken or of no more use
		w.conn = nil
	}
}

func (w *writer) connect(ctx context.Context) error {
	if w.conn != nil {
		return nil
	}
	conn, err := pin(ctx, w.load.srv)
	if err != nil {
		return err
	}
	settings := "SET SESSION innodb_lock_wait_timeout = 5, lock_wait_timeout = 30"
	if len(w.load.other) > 0 {
		settings += "; USE " + ScratchDatabase // a DELETE over a join wants some database
	}
	if _, err := conn.ExecContext(ctx, settings); err != nil {
		return errors.Join(err, conn.Close())
	}
	w.conn = conn
	return nil
}

// transaction runs one transaction of some kind and returns its changes. After
// an error nothing of it is there.
func (w *writer) transaction(ctx context.Context, big bool) (int64, error) {
	if err := w.connect(ctx); err != nil {
		return 0, err
	}
	n, err := w.attempt(ctx, big)
	if err == nil {
		return n, nil
	}
	var server *mysql.MySQLError
	if !errors.As(err, &server) {
		w.disconnect()
		return 0, err
	}
	if _, rollbackErr := w.conn.ExecContext(ctx, "ROLLBACK"); rollbackErr != nil {
		w.disconnect()
	}
	return 0, err
}

func (w *writer) attempt(ctx context.Context, big bool) (int64, error) {
	tx := &change{ctx: ctx, w: w}
	tx.exec("BEGIN")
	switch {
	case big:
		w.big(tx)
	case len(w.load.load) == 0 || len(w.load.other) > 0 && w.rand.IntN(4) == 0:
		w.load.other[w.rand.IntN(len(w.load.other))].change(tx, w.rand)
	default:
		for range 1 + w.rand.IntN(3)*w.rand.IntN(4) { // up to seven in one transaction, mostly one
			w.loadChange(tx)
		}
	}
	tx.exec("COMMIT")
	return tx.rows, tx.err
}

// loadChange does one of the changes to a table of CreateLoadTables.
func (w *writer) loadChange(tx *change) {
	t := w.load.load[w.rand.IntN(len(w.load.load))].quoted()
	changes := []func(*change, string){
		w.insert, w.insert, w.insert, w.insert, w.insertMany, w.update, w.update, w.update, w.update, w.update,
		w.updateRange, w.remove, w.remove, w.remove, w.remove, w.removeRange, w.moveKey, w.moveKey, w.swapUnique, w.rotateUnique, w.swapKeys, w.oneKeyManyTimes,
	}
	changes[w.rand.IntN(len(changes))](tx, t)
}

// change is a transaction under way: after the first error it does no more.
type change struct {
	ctx  context.Context //nolint:containedctx // of one transaction, whose many small steps all need it
	w    *writer
	rows int64
	err  error
}

func (c *change) exec(query string) {
	if c.err != nil {
		return
	}
	result, err := c.w.conn.ExecContext(c.ctx, query)
	if err != nil {
		c.err = fmt.Errorf("%.200s: %w", query, err)
		return
	}
	n, err := result.RowsAffected()
	if err != nil {
		c.err = err
		return
	}
	c.rows += n
}

// ints returns the first column of a query.
func (c *change) ints(query string) []int64 {
	if c.err != nil {
		return nil
	}
	rows, err := c.w.conn.QueryContext(c.ctx, query)
	if err != nil {
		c.err = fmt.Errorf("%.200s: %w", query, err)
		return nil
	}
	defer rows.Close()
	var all []int64
	for rows.Next() {
		var v int64
		if c.err = rows.Scan(&v); c.err != nil {
			return nil
		}
		all = append(all, v)
	}
	c.err = rows.Err()
	return all
}

// ids picks up to n rows of the table, next to each other or far apart.
func (w *writer) ids(tx *change, t, condition string, n int) []int64 {
	highest := tx.ints("SELECT COALESCE(MAX(id), 0) FROM " + t)
	if len(highest) == 0 {
		return nil
	}
	from := w.rand.Int64N(min(highest[0], 1<<40) + 1)
	if w.rand.IntN(2) == 0 || n == 1 {
		return tx.ints(fmt.Sprintf("SELECT id FROM %s WHERE id >= %d AND %s ORDER BY id LIMIT %d", t, from, condition, n))
	}
	var all []int64
	for range n {
		found := tx.ints(fmt.Sprintf("SELECT id FROM %s WHERE id >= %d AND %s ORDER BY id LIMIT 1", t, from, condition))
		if len(found) > 0 && (len(all) == 0 || found[0] != all[0]) {
			all = append(all, found[0])
		}
		from = w.rand.Int64N(min(highest[0], 1<<40) + 1)
	}
	return all
}

// unique returns a value for the unique column that is most likely free.
func (w *writer) unique() string {
	if w.rand.IntN(5) == 0 {
		return "NULL"
	}
	return fmt.Sprint(1_000_000_000 + w.rand.Int64N(1_000_000_000))
}

func (w *writer) values(id string) string {
	blob := "NULL"
	if w.rand.IntN(4) > 0 {
		blob = fmt.Sprintf("REPEAT(x'%02x5C27', %d)", w.rand.IntN(256), w.rand.IntN(200))
	}
	return fmt.Sprintf("(%s, %d, %s, 'c-%d ', CONCAT('é漢😀\\'', %d), %s)",
		id, w.rand.IntN(100000), w.unique(), w.rand.Uint32(), w.rand.Uint32(), blob)
}
