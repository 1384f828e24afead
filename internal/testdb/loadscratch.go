package testdb

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
)

// scratch is a table of any shape together with a copy of the rows it had
// when the load began. Changes are made by the server out of that copy, so
// values of every type come back exactly as they were.
type scratch struct {
	table  *table
	copy   string   // quoted name of the copy
	stored []string // quoted columns that can be written
}

// copyToScratch copies the tables; those too big or that cannot be copied are
// left out.
func copyToScratch(ctx context.Context, c *pinned, all []*table) ([]*scratch, error) {
	_, err := c.ExecContext(ctx, "DROP DATABASE IF EXISTS "+ScratchDatabase+"; CREATE DATABASE "+ScratchDatabase)
	if err != nil {
		return nil, fmt.Errorf("make scratch database: %w", err)
	}
	var copies []*scratch
	for i, t := range all {
		big, err := tooBig(ctx, c, t)
		if err != nil {
			return nil, fmt.Errorf("measure %s: %w", t, err)
		}
		if big {
			continue
		}
		s := &scratch{table: t, copy: fmt.Sprintf("%s.s%d", ScratchDatabase, i), stored: t.stored()}
		query := "CREATE TABLE " + s.copy + " ENGINE=InnoDB AS SELECT " + strings.Join(s.stored, ", ") + " FROM " + t.quoted()
		if _, err := c.ExecContext(ctx, query); err != nil {
			return nil, fmt.Errorf("copy %s: %w", t, err)
		}
		copies = append(copies, s)
	}
	return copies, nil
}

func tooBig(ctx context.Context, c *pinned, t *table) (bool, error) {
	size := []string{"COUNT(*)"}
	for _, col := range t.columns {
		switch col.dataType {
		case "mediumtext", "longtext", "mediumblob", "longblob":
			size = append(size, "COALESCE(SUM(LENGTH("+quote(col.name)+")), 0)")
		}
	}
	var big bool
	query := fmt.Sprintf("SELECT %s > %d FROM %s", strings.Join(size, " + "), maxLoadTableSize, t.quoted())
	err := c.QueryRowContext(ctx, query).Scan(&big)
	return big, err
}

// change replaces, deletes or updates a row picked at random.
func (s *scratch) change(tx *change, r *rand.Rand) {
	name := s.table.quoted()
	columns := strings.Join(s.stored, ", ")
	pick := "(SELECT " + quoteAll(s.table.key) + " FROM " + name + " ORDER BY RAND() LIMIT 1) p"
	using := " USING (" + quoteAll(s.table.key) + ")"
	switch r.IntN(6) {
	case 0, 1, 2:
		tx.exec(fmt.Sprintf("REPLACE INTO %s (%s) SELECT %s FROM %s ORDER BY RAND() LIMIT %d", name, columns, columns, s.copy, 1+r.IntN(2)))
	case 3:
		tx.exec("DELETE t FROM " + name + " t JOIN " + pick + using)
	default:
		col := s.anyColumn(r)
		value := "(SELECT " + col + " copydb_v FROM " + s.copy + " ORDER BY RAND() LIMIT 1) v"
		tx.exec("UPDATE " + name + " t JOIN " + pick + using + " JOIN " + value + " SET t." + col + " = v.copydb_v")
	}
}

// anyColumn picks a column to update, seldom one of the key.
func (s *scratch) anyColumn(r *rand.Rand) string {
	for range 4 {
		col := s.stored[r.IntN(len(s.stored))]
		if !slices.ContainsFunc(s.table.key, func(k string) bool { return quote(k) == col }) {
			return col
		}
	}
	return s.stored[r.IntN(len(s.stored))]
}
