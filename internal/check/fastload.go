package check

import (
	"context"
	"database/sql"
	"fmt"
	"slices"

	"github.com/copydb/copydb/internal/mysqlconn"
)

// redoPrivilege is the right to switch the redo log off and on.
const redoPrivilege = "INNODB_REDO_LOG_ENABLE"

// checkRedo refuses a target whose redo log somebody else has switched off.
func checkRedo(ctx context.Context, r *runner) error {
	redo, err := r.target.status(ctx, "Innodb_redo_log_enabled")
	if err == nil && redo == "OFF" && !r.in.RedoOff {
		r.fail("target_redo_log", "Innodb_redo_log_enabled", "the target's redo log is disabled: a crash of it would lose the whole instance",
			"ALTER INSTANCE ENABLE INNODB REDO_LOG on the target")
	}
	return err
}

// checkFastLoad looks whether the redo log can be switched off, and what would be
// lost with it.
func checkFastLoad(ctx context.Context, r *runner) error {
	const key = "target.fast_load"
	t := r.target
	switch {
	case !r.in.FastLoad:
		return nil
	case !t.version().AtLeast(mysqlconn.MySQL, 8, 0, 21):
		r.fail("fast_load", key, "the target cannot switch its redo log off: MySQL can from 8.0.21 on, MariaDB cannot", "set target.fast_load: false")
		return nil
	case !t.grantsKnown:
		r.warn("fast_load_right", t.facts.Account, "whether the target account has "+redoPrivilege+" cannot be seen", grant([]string{redoPrivilege}, "*.*", t.facts.Account))
	case !t.grants.everywhere(redoPrivilege):
		r.fail("fast_load_right", t.facts.Account, "target.fast_load is true, but the target account lacks "+redoPrivilege,
			grant([]string{redoPrivilege}, "*.*", t.facts.Account)+"; or set target.fast_load: false")
	}
	others, err := r.otherDatabases(ctx)
	if err != nil {
		return err
	}
	message := "while rows are loaded, the target's redo log and doublewrite buffer are off: if its server dies, it does not start again"
	if len(others) > 0 {
		message += fmt.Sprintf(", and its other databases are lost, too: %s", list(others))
	}
	r.warn("fast_load", key, message, "leave it at false unless the target can be set up anew at any time")
	return nil
}

// otherDatabases lists those of the target that the copy has nothing to do with.
func (r *runner) otherDatabases(ctx context.Context) ([]string, error) {
	known := []string{"mysql", "sys", "information_schema", "performance_schema", progressDatabase}
	for _, d := range r.in.Facts.Databases {
		known = append(known, d.Name)
	}
	var out []string
	err := r.target.conn.Query(ctx, func(rows *sql.Rows) error {
		var name string
		if err := rows.Scan(&name); err != nil {
			return err
		}
		if !slices.Contains(known, name) {
			out = append(out, name)
		}
		return nil
	}, "SELECT SCHEMA_NAME FROM information_schema.SCHEMATA ORDER BY SCHEMA_NAME")
	if err != nil {
		return nil, fmt.Errorf("list databases of the target: %w", err)
	}
	return out, nil
}
