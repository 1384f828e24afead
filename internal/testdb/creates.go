package testdb

import (
	"context"
	"fmt"
	"regexp"
	"testing"

	"github.com/copydb/copydb/test/servers"
)

// Creates returns SHOW CREATE TABLE of each base table of the databases under
// "database.table", without its AUTO_INCREMENT option, and the default
// character set and collation of each database under its own name.
func Creates(t testing.TB, srv *servers.Server, databases []string) map[string]string {
	t.Helper()
	all, err := creates(t.Context(), srv, databases)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func creates(ctx context.Context, srv *servers.Server, databases []string) (map[string]string, error) {
	conn, err := pin(ctx, srv)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	all, err := tables(ctx, conn, databases)
	if err != nil {
		return nil, err
	}
	texts := map[string]string{}
	for _, tab := range all {
		var name, text string
		if err := conn.QueryRowContext(ctx, "SHOW CREATE TABLE "+tab.quoted()).Scan(&name, &text); err != nil {
			return nil, fmt.Errorf("show create table %s: %w", tab, err)
		}
		texts[tab.String()] = withoutCounter(text)
	}
	return texts, addDatabases(ctx, conn, databases, texts)
}

func addDatabases(ctx context.Context, c *pinned, databases []string, texts map[string]string) error {
	rows, err := c.QueryContext(ctx, "SELECT schema_name, CONCAT(default_character_set_name, ' ', default_collation_name)"+
		" FROM information_schema.schemata WHERE "+among("schema_name", databases))
	if err != nil {
		return fmt.Errorf("list databases: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		var name, text string
		if err := rows.Scan(&name, &text); err != nil {
			return err
		}
		texts[name] = text
	}
	return rows.Err()
}

// The option stands after the engine on the line that ends the columns; in a
// comment or default the same words are left alone.
var counterOption = regexp.MustCompile(`(?m)^(\) ENGINE=\w+) AUTO_INCREMENT=[0-9]+`)

func withoutCounter(create string) string { return counterOption.ReplaceAllString(create, "$1") }
