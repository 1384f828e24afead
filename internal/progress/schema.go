package progress

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/copydb/copydb/internal/mysqlconn"
)

// Database is the name of the database on the target.
const Database = "_copydb"

// tables are the statements that make the database. Keys are binary, so that no
// collation of the target has a say; each table has a primary key, so that
// sql_require_primary_key is content.
var tables = []string{
	"CREATE DATABASE IF NOT EXISTS `_copydb` CHARACTER SET utf8mb4 COLLATE utf8mb4_bin",
	`CREATE TABLE IF NOT EXISTS _copydb.format (
		version INT NOT NULL PRIMARY KEY
	) ENGINE=InnoDB`,
	`CREATE TABLE IF NOT EXISTS _copydb.epoch (
		migration VARBINARY(32) NOT NULL PRIMARY KEY,
		epoch BIGINT UNSIGNED NOT NULL,
		run_id VARBINARY(32) NOT NULL
	) ENGINE=InnoDB`,
	`CREATE TABLE IF NOT EXISTS _copydb.migration (
		migration VARBINARY(32) NOT NULL PRIMARY KEY,
		finished TINYINT NOT NULL DEFAULT 0,
		doc LONGBLOB NOT NULL,
		low_water LONGBLOB NOT NULL,
		streamed LONGBLOB NOT NULL,
		high_water LONGBLOB NOT NULL,
		marker LONGBLOB NOT NULL
	) ENGINE=InnoDB`,
	`CREATE TABLE IF NOT EXISTS _copydb.tables (
		migration VARBINARY(32) NOT NULL,
		table_key VARBINARY(32) NOT NULL,
		database_name VARBINARY(512) NOT NULL,
		table_name VARBINARY(512) NOT NULL,
		doc LONGBLOB NOT NULL,
		PRIMARY KEY (migration, table_key)
	) ENGINE=InnoDB`,
	`CREATE TABLE IF NOT EXISTS _copydb.ranges (
		migration VARBINARY(32) NOT NULL,
		table_key VARBINARY(32) NOT NULL,
		number INT NOT NULL,
		range_after LONGBLOB NOT NULL,
		range_to LONGBLOB NOT NULL,
		range_until LONGBLOB NOT NULL,
		done TINYINT NOT NULL,
		row_count BIGINT NOT NULL,
		byte_count BIGINT NOT NULL,
		PRIMARY KEY (migration, table_key, number)
	) ENGINE=InnoDB`,
	`CREATE TABLE IF NOT EXISTS _copydb.journal (
		migration VARBINARY(32) NOT NULL,
		number INT NOT NULL,
		kind VARBINARY(32) NOT NULL,
		database_name VARBINARY(512) NOT NULL,
		object_name VARBINARY(512) NOT NULL,
		done TINYINT NOT NULL DEFAULT 0,
		PRIMARY KEY (migration, number)
	) ENGINE=InnoDB`,
	`CREATE TABLE IF NOT EXISTS _copydb.structures (
		migration VARBINARY(32) NOT NULL,
		digest VARBINARY(80) NOT NULL,
		structure LONGBLOB NOT NULL,
		PRIMARY KEY (migration, digest)
	) ENGINE=InnoDB`,
}

// formatVersion is the version of the database's tables that this program
// writes.
const formatVersion = 1

// ErrFormat is returned where the database was made by another version of the
// program whose tables this one does not know.
var ErrFormat = errors.New("the target's " + Database + " is of another format")

// Exists reports whether the target has the database with all that is in it.
func Exists(ctx context.Context, c *mysqlconn.Control) (bool, error) {
	var n int
	err := c.QueryRow(ctx, []any{&n}, "SELECT COUNT(*) FROM information_schema.TABLES WHERE TABLE_SCHEMA = '_copydb'"+
		" AND TABLE_NAME IN ('format', 'epoch', 'migration', 'tables', 'ranges', 'journal', 'structures')")
	if err != nil {
		return false, fmt.Errorf("look for %s on the target: %w", Database, err)
	}
	if n != len(tables)-1 {
		return false, nil
	}
	var v sql.NullInt64
	if err := c.QueryRow(ctx, []any{&v}, "SELECT MAX(version) FROM _copydb.format"); err != nil {
		return false, fmt.Errorf("read the format of %s on the target: %w", Database, err)
	}
	if v.Valid && v.Int64 != formatVersion {
		return false, fmt.Errorf("%w (%d; this program writes %d)", ErrFormat, v.Int64, formatVersion)
	}
	return v.Valid, nil
}

// Ensure makes the database where it is not there.
func Ensure(ctx context.Context, c *mysqlconn.Control) error {
	for _, q := range tables {
		if _, err := c.Exec(ctx, q); err != nil {
			return fmt.Errorf("make %s on the target: %w", Database, err)
		}
	}
	if _, err := c.Exec(ctx, "INSERT IGNORE INTO _copydb.format (version) VALUES (?)", formatVersion); err != nil {
		return fmt.Errorf("note the format of %s on the target: %w", Database, err)
	}
	return nil
}

// Remove deletes a migration's part, and the database with the last one.
func Remove(ctx context.Context, c *mysqlconn.Control, migration string) error {
	for _, t := range []string{"heartbeat", "structures", "journal", "ranges", "tables", "migration", "epoch"} {
		_, err := c.Exec(ctx, "DELETE FROM _copydb."+t+" WHERE migration = ?", migration)
		if err != nil && (t != "heartbeat" || !mysqlconn.IsTableGone(err)) {
			return fmt.Errorf("remove the migration from %s.%s: %w", Database, t, err)
		}
	}
	var left int
	if err := c.QueryRow(ctx, []any{&left}, "SELECT COUNT(*) FROM _copydb.epoch"); err != nil {
		return fmt.Errorf("count migrations in %s: %w", Database, err)
	}
	if left > 0 {
		return nil
	}
	if _, err := c.Exec(ctx, "DROP DATABASE _copydb"); err != nil {
		return fmt.Errorf("drop %s: %w", Database, err)
	}
	return nil
}
