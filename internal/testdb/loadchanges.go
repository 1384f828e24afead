package testdb

import (
	"fmt"
	"strings"
)

const insertColumns = " (id, k, u, c, pad, b) VALUES "

func (w *writer) insert(tx *change, t string) {
	tx.exec("INSERT INTO " + t + insertColumns + w.values("NULL"))
}

func (w *writer) insertMany(tx *change, t string) {
	rows := make([]string, 2+w.rand.IntN(10))
	for i := range rows {
		rows[i] = w.values("NULL")
	}
	tx.exec("INSERT INTO " + t + insertColumns + strings.Join(rows, ", "))
}

func (w *writer) update(tx *change, t string) {
	for _, id := range w.ids(tx, t, "TRUE", 1) {
		set := []string{"k = k + 1", "c = CONCAT('new ', k)", "b = NULL", "u = " + w.unique(), "k = k + 1, pad = ''"}
		tx.exec(fmt.Sprintf("UPDATE %s SET %s WHERE id = %d", t, set[w.rand.IntN(len(set))], id))
	}
}

func (w *writer) updateRange(tx *change, t string) {
	for _, id := range w.ids(tx, t, "TRUE", 1) {
		tx.exec(fmt.Sprintf("UPDATE %s SET k = k + 1, pad = LEFT(CONCAT('r', pad), 60) WHERE id BETWEEN %d AND %d", t, id, id+w.rand.Int64N(20)))
	}
}

func (w *writer) remove(tx *change, t string) {
	for _, id := range w.ids(tx, t, "TRUE", 1) {
		tx.exec(fmt.Sprintf("DELETE FROM %s WHERE id = %d", t, id))
	}
}

func (w *writer) removeRange(tx *change, t string) {
	for _, id := range w.ids(tx, t, "TRUE", 1) {
		tx.exec(fmt.Sprintf("DELETE FROM %s WHERE id BETWEEN %d AND %d", t, id, id+w.rand.Int64N(10)))
	}
}

// moveKey gives a row another primary key: far up, into a gap, or below zero.
func (w *writer) moveKey(tx *change, t string) {
	for _, id := range w.ids(tx, t, "TRUE", 1) {
		to := "(SELECT * FROM (SELECT MAX(id) + 1 FROM " + t + ") m)"
		switch w.rand.IntN(3) {
		case 0:
			to = fmt.Sprint(-1 - w.rand.Int64N(1_000_000))
		case 1:
			to = fmt.Sprint(1 + w.rand.Int64N(max(id, 1)))
		}
		tx.exec(fmt.Sprintf("UPDATE %s SET id = %s WHERE id = %d", t, to, id))
	}
}

// swapUnique exchanges the unique values of two rows.
func (w *writer) swapUnique(tx *change, t string) { w.rotate(tx, t, 2) }

// rotateUnique passes the unique values of three rows on.
func (w *writer) rotateUnique(tx *change, t string) { w.rotate(tx, t, 3) }

func (w *writer) rotate(tx *change, t string, n int) {
	ids := w.ids(tx, t, "u IS NOT NULL", n)
	if len(ids) < 2 {
		return
	}
	values := make([]int64, len(ids))
	for i, id := range ids {
		u := tx.ints(fmt.Sprintf("SELECT u FROM %s WHERE id = %d AND u IS NOT NULL FOR UPDATE", t, id))
		if len(u) == 0 {
			return
		}
		values[i] = u[0]
	}
	last := len(ids) - 1
	tx.exec(fmt.Sprintf("UPDATE %s SET u = NULL WHERE id = %d", t, ids[last]))
	for i := last - 1; i >= 0; i-- {
		// row i+1 has given its value away, so row i's value is the one that moves
		tx.exec(fmt.Sprintf("UPDATE %s SET u = NULL WHERE id = %d", t, ids[i]))
		tx.exec(fmt.Sprintf("UPDATE %s SET u = %d WHERE id = %d", t, values[i], ids[i+1]))
	}
	tx.exec(fmt.Sprintf("UPDATE %s SET u = %d WHERE id = %d", t, values[last], ids[0]))
}

// swapKeys exchanges the primary keys of two rows.
func (w *writer) swapKeys(tx *change, t string) {
	ids := w.ids(tx, t, "TRUE", 2)
	if len(ids) < 2 {
		return
	}
	free := -2_000_000 - w.rand.Int64N(1_000_000)
	for _, move := range [][2]int64{{ids[0], free}, {ids[1], ids[0]}, {free, ids[1]}} {
		tx.exec(fmt.Sprintf("UPDATE %s SET id = %d WHERE id = %d", t, move[1], move[0]))
	}
}

// oneKeyManyTimes deletes and inserts one key again and again.
func (w *writer) oneKeyManyTimes(tx *change, t string) {
	for _, id := range w.ids(tx, t, "TRUE", 1) {
		remove := fmt.Sprintf("DELETE FROM %s WHERE id = %d", t, id)
		tx.exec(remove)
		tx.exec("INSERT INTO " + t + insertColumns + w.values(fmt.Sprint(id)))
		tx.exec(fmt.Sprintf("UPDATE %s SET k = -1, u = %s WHERE id = %d", t, w.unique(), id))
		tx.exec(remove)
		tx.exec("INSERT INTO " + t + insertColumns + w.values(fmt.Sprint(id)))
	}
}

// big changes many rows in one transaction: half by one statement, half by
// deleting rows and putting as many new ones in.
func (w *writer) big(tx *change) {
	t := w.load.load[w.rand.IntN(len(w.load.load))].quoted()
	half := w.load.options.BigRows / 2
	for _, id := range w.ids(tx, t, "TRUE", 1) {
		tx.exec(fmt.Sprintf("UPDATE %s SET k = k + 1 WHERE id >= %d ORDER BY id LIMIT %d", t, id, half))
		tx.exec(fmt.Sprintf("DELETE FROM %s WHERE id >= %d ORDER BY id LIMIT %d", t, id, half/2))
		for left := half - half/2; left > 0; left -= 100 {
			rows := make([]string, min(left, 100))
			for i := range rows {
				rows[i] = w.values("NULL")
			}
			tx.exec("INSERT INTO " + t + insertColumns + strings.Join(rows, ", "))
		}
	}
}
