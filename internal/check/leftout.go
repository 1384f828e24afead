package check

import (
	"context"
	"database/sql"
	"fmt"
	"strings"

	"github.com/copydb/copydb/internal/mysqlconn"
)

// otherObjects are read where they can be seen; each row is database, name,
// kind.
var otherObjects = []string{
	"SELECT TRIGGER_SCHEMA, TRIGGER_NAME, 'trigger' FROM information_schema.TRIGGERS WHERE TRIGGER_SCHEMA IN (%s)",
	"SELECT ROUTINE_SCHEMA, ROUTINE_NAME, LOWER(ROUTINE_TYPE) FROM information_schema.ROUTINES WHERE ROUTINE_TYPE <> 'PACKAGE BODY' AND ROUTINE_SCHEMA IN (%s)",
	"SELECT EVENT_SCHEMA, EVENT_NAME, 'event' FROM information_schema.EVENTS WHERE EVENT_SCHEMA IN (%s)",
}

// checkLeftOut names what a copy of tables leaves behind.
func checkLeftOut(ctx context.Context, r *runner) error {
	f := &r.in.Facts
	in := r.databaseList()
	for _, q := range otherObjects {
		err := r.source.conn.Query(ctx, func(rows *sql.Rows) error {
			var o LeftOut
			if err := rows.Scan(&o.Database, &o.Name, &o.Type); err != nil {
				return err
			}
			f.LeftOut = append(f.LeftOut, o)
			return nil
		}, fmt.Sprintf(q, in))
		if err != nil {
			return fmt.Errorf("list other objects of the source: %w", err)
		}
	}
	r.reportLeftOut()
	r.reportUnseen()
	return nil
}

// reportLeftOut adds one warning for each kind.
func (r *runner) reportLeftOut() {
	var kinds []string
	names := map[string][]string{}
	for _, o := range r.in.Facts.LeftOut {
		if names[o.Type] == nil {
			kinds = append(kinds, o.Type)
		}
		names[o.Type] = append(names[o.Type], o.Database+"."+o.Name)
	}
	for _, k := range kinds {
		r.warn("left_out_"+k, list(names[k]),
			fmt.Sprintf("%ss are not copied yet; %d left out: %s", k, len(names[k]), list(names[k])),
			"make them on the target by hand after the copy")
	}
}

// reportUnseen says which kinds of objects the account cannot see.
func (r *runner) reportUnseen() {
	s := r.source
	if !s.grantsKnown {
		return
	}
	for _, d := range r.in.Facts.Databases {
		if !s.grants.on(d.Name, "SELECT") {
			r.warn("tables_unseen", d.Name, "the source account has SELECT on single tables of "+d.Name+" only: the others are not visible and not copied",
				grant([]string{"SELECT"}, scopeOf(s.facts, d.Name), s.facts.Account)+", if the selection means them too")
		}
		for _, privilege := range []string{"TRIGGER", "EVENT"} {
			if !s.grants.on(d.Name, privilege) {
				r.info("left_out_unseen", d.Name, "the source account cannot see all triggers, events and routines of "+d.Name+": what is left out may be more than is listed",
					grant([]string{"TRIGGER", "EVENT"}, scopeOf(s.facts, d.Name), s.facts.Account)+" to have them listed")
				break
			}
		}
	}
}

// databaseList writes the selected databases for IN.
func (r *runner) databaseList() string {
	var out []string
	for _, d := range r.in.Facts.Databases {
		out = append(out, literal(d.Name))
	}
	return strings.Join(out, ", ")
}

// literal writes a string for a Control, whose character set is utf8mb4,
// whatever the session's sql_mode.
func literal(s string) string { return fmt.Sprintf("_utf8mb4 x'%X'", s) }

// cascadesUnlogged reports whether the server carries cascades out below its
// binary log: MariaDB does, and MySQL unless it has moved them up.
func (s *side) cascadesUnlogged() bool {
	return s.version().Flavor == mysqlconn.MariaDB || !s.has("innodb_native_foreign_keys") || s.on("innodb_native_foreign_keys")
}
