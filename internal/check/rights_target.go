package check

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/copydb/copydb/internal/mysqlconn"
)

// checkTargetRights reads the grants: the statements themselves would write.
func checkTargetRights(_ context.Context, r *runner) error {
	t := r.target
	var names []string
	for _, db := range append(r.in.databaseNames(), progressDatabase) {
		if db != "" {
			names = append(names, db)
		}
	}
	if !t.grantsKnown {
		r.warn("target_rights", t.facts.Account, "the rights of the target account cannot be seen",
			"make sure that it has "+strings.Join(targetPrivileges, ", ")+" on "+list(names))
		return nil
	}
	for _, db := range names {
		missing := t.missing(db)
		if len(missing) == 0 {
			continue
		}
		message := fmt.Sprintf("the target account lacks %s on database %s", strings.Join(missing, ", "), db)
		fix := grant(missing, scopeOf(t.facts, db), t.facts.Account)
		if slices.Equal(missing, []string{"TRIGGER"}) {
			r.warn("target_trigger_right", db, message+": triggers there cannot be seen", fix)
			continue
		}
		r.fail("target_rights", db, message, fix)
	}
	return nil
}

// missing returns the privileges that the account lacks on a database.
func (s *side) missing(db string) []string {
	return slices.DeleteFunc(slices.Clone(targetPrivileges), func(p string) bool { return s.grants.on(db, p) })
}

// checkLogBin tries to leave the target's binary log out, where that is asked.
func checkLogBin(ctx context.Context, r *runner) error {
	t := r.target
	if r.in.SQLLogBin {
		return nil
	}
	_, err := t.conn.Exec(ctx, "SET SESSION sql_log_bin = 0")
	if mysqlconn.IsAccessDenied(err) {
		name := logBinPrivilege(t.version())
		r.fail("target_sql_log_bin", t.facts.Account, "target.sql_log_bin is false, but the target account lacks "+name,
			grant([]string{name}, "*.*", t.facts.Account)+"; or set target.sql_log_bin: true")
		return nil
	}
	return err
}
