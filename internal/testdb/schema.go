package testdb

import (
	"context"
	"fmt"
	"strings"
)

// table is what the helpers know of a base table.
type table struct {
	database, name string
	engine         string
	columns        []columnInfo
	key            []string // columns of the primary key in its order, empty without one
}

type columnInfo struct {
	name      string
	dataType  string // as in information_schema, lower case
	generated bool
	rowTime   bool // the time of a version of the row
}

func (t *table) String() string { return t.database + "." + t.name }

func (t *table) quoted() string { return quote(t.database) + "." + quote(t.name) }

// stored returns the quoted names of the columns that can be written.
func (t *table) stored() []string {
	var names []string
	for _, c := range t.columns {
		if !c.generated {
			names = append(names, quote(c.name))
		}
	}
	return names
}

func quoteAll(names []string) string {
	quoted := make([]string, len(names))
	for i, n := range names {
		quoted[i] = quote(n)
	}
	return strings.Join(quoted, ", ")
}

// among returns a condition that a name of information_schema is one of the
// names, by bytes: the servers differ in how they compare there.
func among(column string, names []string) string {
	if len(names) == 0 {
		return "FALSE"
	}
	var all []string
	for _, n := range names {
		all = append(all, fmt.Sprintf("x'%x'", n))
	}
	return "BINARY " + column + " IN (" + strings.Join(all, ", ") + ")"
}

// tables returns the base tables of the databases, ordered by name.
func tables(ctx context.Context, c *pinned, databases []string) ([]*table, error) {
	rows, err := c.QueryContext(ctx, "SELECT table_schema, table_name, COALESCE(engine, '') FROM information_schema.tables"+
		" WHERE table_type IN ('BASE TABLE', 'SYSTEM VERSIONED') AND "+among("table_schema", databases)+
		" ORDER BY BINARY table_schema, BINARY table_name")
	if err != nil {
		return nil, fmt.Errorf("list tables: %w", err)
	}
	defer rows.Close()
	var all []*table
	byName := map[string]*table{}
	for rows.Next() {
		t := new(table)
		if err := rows.Scan(&t.database, &t.name, &t.engine); err != nil {
			return nil, err
		}
		all = append(all, t)
		byName[t.quoted()] = t
	}
	if err := rows.Err(); err != nil {
		return nil, err
	}
	if err := addColumns(ctx, c, databases, byName); err != nil {
		return nil, fmt.Errorf("list columns: %w", err)
	}
	return all, addKeys(ctx, c, databases, byName)
}

func addColumns(ctx context.Context, c *pinned, databases []string, byName map[string]*table) error {
	rows, err := c.QueryContext(ctx, "SELECT table_schema, table_name, column_name, LOWER(data_type), COALESCE(generation_expression, '') <> '' OR extra LIKE '%GENERATED%'"+
		" AND extra NOT LIKE '%DEFAULT_GENERATED%', COALESCE(generation_expression, '') IN ('ROW START', 'ROW END')"+
		" FROM information_schema.columns WHERE "+among("table_schema", databases)+" ORDER BY ordinal_position")
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var database, name string
		var col columnInfo
		if err := rows.Scan(&database, &name, &col.name, &col.dataType, &col.generated, &col.rowTime); err != nil {
			return err
		}
		if t := byName[quote(database)+"."+quote(name)]; t != nil {
			t.columns = append(t.columns, col)
		}
	}
	return rows.Err()
}

func addKeys(ctx context.Context, c *pinned, databases []string, byName map[string]*table) error {
	rows, err := c.QueryContext(ctx, "SELECT table_schema, table_name, column_name FROM information_schema.statistics"+
		" WHERE index_name = 'PRIMARY' AND "+among("table_schema", databases)+" ORDER BY seq_in_index")
	if err != nil {
		return fmt.Errorf("list keys: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		var database, name, col string
		if err := rows.Scan(&database, &name, &col); err != nil {
			return err
		}
		if t := byName[quote(database)+"."+quote(name)]; t != nil {
			t.key = append(t.key, col)
		}
	}
	return rows.Err()
}
