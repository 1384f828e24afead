package dumper

import (
	"context"
	"fmt"
	"strings"

	"github.com/copydb/copydb/internal/mysqlconn"
	"github.com/copydb/copydb/internal/table"
)

// tableID returns InnoDB's ids of the table's parts, or "" where they cannot be
// had: without the PROCESS privilege, of another engine, and of names that
// InnoDB writes in its file name encoding. What it misses, the binary log
// shows.
func (d *Dumper) tableID(ctx context.Context, s *mysqlconn.Session, t *table.Table) (string, error) {
	if t.Engine != "InnoDB" || !plainName(t.Database) || !plainName(t.Table) {
		return "", nil
	}
	view := "INNODB_TABLES"
	if d.flavor() == mysqlconn.MariaDB {
		view = "INNODB_SYS_TABLES"
	}
	name := t.Database + "/" + t.Table
	like := strings.ReplaceAll(name, "_", "\\_") + "#%"
	row, err := s.QueryRow(ctx, fmt.Sprintf("SELECT GROUP_CONCAT(TABLE_ID ORDER BY TABLE_ID) FROM information_schema.%s WHERE NAME = '%s' OR NAME LIKE '%s'",
		view, name, like))
	switch {
	case mysqlconn.IsAccessDenied(err):
		return "", nil
	case err != nil:
		return "", fmt.Errorf("read InnoDB's id of %s: %w", t, err)
	}
	return string(row[0]), nil
}

func plainName(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool {
		return r != '_' && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
	}) < 0
}
