package check

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/copydb/copydb/internal/mysqlconn"
)

// side is one server under check.
type side struct {
	name        string // source or target
	server      *mysqlconn.Server
	conn        *mysqlconn.Control
	facts       *ServerFacts
	grants      grants
	grantsKnown bool
}

// variables are the global variables that the checks and the run look at.
var variables = []string{
	"binlog_do_db", "binlog_expire_logs_auto_purge", "binlog_expire_logs_seconds", "binlog_format", "binlog_row_image",
	"binlog_row_metadata", "binlog_row_value_options", "datadir", "disabled_storage_engines", "enforce_gtid_consistency",
	"expire_logs_days", "gtid_binlog_pos", "gtid_executed", "gtid_mode", "gtid_purged", "gtid_slave_pos",
	"innodb_autoinc_lock_mode", "innodb_directories", "innodb_flush_log_at_trx_commit", "innodb_native_foreign_keys", "innodb_read_only",
	"local_infile", "log_bin", "log_replica_updates", "log_slave_updates", "lower_case_table_names", "max_allowed_packet",
	"max_binlog_size", "max_binlog_total_size", "offline_mode", "partial_revokes", "read_only", "server_id",
	"sql_generate_invisible_primary_key", "sql_require_primary_key", "super_read_only", "sync_binlog", "thread_pool_size", "time_zone",
	"transaction_read_only", "tx_read_only",
}

func (s *side) close() {
	if s != nil && s.conn != nil {
		s.conn.Close()
	}
}

func (s *side) version() mysqlconn.Version { return s.facts.Identity.Version }
func (s *side) mariadb() bool              { return s.version().Flavor == mysqlconn.MariaDB }

// has reports whether the server knows the variable.
func (s *side) has(name string) bool {
	_, ok := s.facts.Variables[name]
	return ok
}

func (s *side) value(name string) string { return s.facts.Variables[name] }

// on reports whether a boolean variable is set.
func (s *side) on(name string) bool {
	v := strings.ToUpper(s.value(name))
	return v == "ON" || v == "1" || v == "YES"
}

func (s *side) number(name string) int64 {
	n, _ := strconv.ParseInt(s.value(name), 10, 64)
	return n
}

// learn reads what nearly every check needs.
func (s *side) learn(ctx context.Context) error {
	if _, err := s.conn.Exec(ctx, sessionSetup); err != nil {
		return fmt.Errorf("set up session on %s: %w", s.name, err)
	}
	var account string
	if err := s.conn.QueryRow(ctx, []any{&account}, "SELECT CURRENT_USER()"); err != nil {
		return fmt.Errorf("read account of %s: %w", s.name, err)
	}
	s.facts.Account = quoteAccount(account)
	s.facts.Variables = map[string]string{}
	err := s.conn.Query(ctx, func(rows *sql.Rows) error {
		var name string
		var value sql.NullString
		if err := rows.Scan(&name, &value); err != nil {
			return err
		}
		s.facts.Variables[strings.ToLower(name)] = value.String
		return nil
	}, "SHOW GLOBAL VARIABLES WHERE Variable_name IN ('"+strings.Join(variables, "', '")+"')")
	if err != nil {
		return fmt.Errorf("read variables of %s: %w", s.name, err)
	}
	return s.readGrants(ctx)
}

// status returns a global status variable, "" where there is none.
func (s *side) status(ctx context.Context, name string) (string, error) {
	var n, v string
	err := s.conn.QueryRow(ctx, []any{&n, &v}, "SHOW GLOBAL STATUS LIKE '"+name+"'")
	if errors.Is(err, sql.ErrNoRows) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("read status %s of %s: %w", name, s.name, err)
	}
	return v, nil
}

// column returns the field of a SHOW row whose name is one of names, whatever
// the case.
func column(row map[string]string, names ...string) string {
	for _, want := range names {
		for k, v := range row {
			if strings.EqualFold(k, want) {
				return v
			}
		}
	}
	return ""
}
