package check

import (
	"context"
	"database/sql"
	"fmt"
	"strings"

	"github.com/copydb/copydb/internal/mysqlconn"
	"github.com/copydb/copydb/internal/table"
)

// checkDatabases compares the defaults of databases that exist on both sides.
func checkDatabases(ctx context.Context, r *runner) error {
	if len(r.in.Facts.Databases) == 0 {
		return nil
	}
	there := map[string]Database{}
	err := r.target.conn.Query(ctx, func(rows *sql.Rows) error {
		var d Database
		if err := rows.Scan(&d.Name, &d.Charset, &d.Collation); err != nil {
			return err
		}
		there[r.targetFolded(table.Name{Database: d.Name}).Database] = d
		return nil
	}, "SELECT SCHEMA_NAME, DEFAULT_CHARACTER_SET_NAME, DEFAULT_COLLATION_NAME FROM information_schema.SCHEMATA WHERE SCHEMA_NAME IN ("+r.databaseList()+")")
	if err != nil {
		return fmt.Errorf("list databases of the target: %w", err)
	}
	for _, d := range r.in.Facts.Databases {
		got, ok := there[r.targetFolded(table.Name{Database: d.Name}).Database]
		if ok && (modern(got.Charset) != modern(d.Charset) || modern(got.Collation) != modern(d.Collation)) {
			r.warn("database_charset", d.Name, fmt.Sprintf("database %s has default %s %s on the source, %s %s on the target", d.Name, d.Charset, d.Collation, got.Charset, got.Collation),
				fmt.Sprintf("ALTER DATABASE %s CHARACTER SET %s COLLATE %s on the target", table.Quote(d.Name), d.Charset, d.Collation))
		}
	}
	return nil
}

// modern writes utf8, as older servers call it, the way newer ones do.
func modern(name string) string {
	if name == "utf8" {
		return "utf8mb3"
	}
	if rest, ok := strings.CutPrefix(name, "utf8_"); ok {
		return "utf8mb3_" + rest
	}
	return name
}

// checkTriggers looks for triggers that would fire at our writes.
func checkTriggers(ctx context.Context, r *runner) error {
	if len(r.in.Facts.Databases) == 0 {
		return nil
	}
	selected := map[table.Name]bool{}
	for _, t := range r.in.Facts.Tables {
		selected[r.targetFolded(t.FullName())] = true
	}
	err := r.target.conn.Query(ctx, func(rows *sql.Rows) error {
		var db, name, on string
		if err := rows.Scan(&db, &name, &on); err != nil {
			return err
		}
		if selected[r.targetFolded(table.Name{Database: db, Table: on})] && !r.created("trigger", table.Name{Database: db, Table: name}) {
			r.foreignTrigger(table.Name{Database: db, Table: name}, on)
		}
		return nil
	}, "SELECT TRIGGER_SCHEMA, TRIGGER_NAME, EVENT_OBJECT_TABLE FROM information_schema.TRIGGERS WHERE TRIGGER_SCHEMA IN ("+r.databaseList()+")")
	if err != nil {
		return fmt.Errorf("list triggers of the target: %w", err)
	}
	return nil
}

func (r *runner) foreignTrigger(name table.Name, on string) {
	if r.in.Facts.Taken[r.sourceName(table.Name{Database: name.Database, Table: on})] == RuleRecreate {
		r.warn("target_trigger", name.String(), fmt.Sprintf("trigger %s on table %s of the target is dropped with the table", name, on),
			"keep its definition (SHOW CREATE TRIGGER) if it is wanted afterwards")
		return
	}
	message := fmt.Sprintf("trigger %s on table %s of the target is not ours: it would fire at every row that is copied", name, on)
	fix := "drop it on the target until the copy has ended"
	if r.in.Resume == nil {
		r.fail("target_trigger", name.String(), message, fix)
		return
	}
	r.warn("target_trigger", name.String(), message, fix)
}

// checkEngines looks for engines that the target does not have.
func checkEngines(ctx context.Context, r *runner) error {
	rows, err := r.target.conn.QueryMaps(ctx, "SHOW ENGINES")
	if err != nil {
		return fmt.Errorf("list engines of the target: %w", err)
	}
	there := map[string]bool{}
	for _, row := range rows {
		if s := column(row, "Support"); s == "YES" || s == "DEFAULT" {
			there[strings.ToLower(column(row, "Engine"))] = true
		}
	}
	for _, name := range splitNames(r.target.value("disabled_storage_engines")) {
		delete(there, strings.ToLower(name))
	}
	for _, t := range r.in.Facts.Tables {
		if !there[strings.ToLower(t.TargetEngine())] {
			r.fail("engine", t.String(), fmt.Sprintf("table %s has engine %s, which the target does not have", t, t.Engine),
				"install or enable the engine on the target, convert the table on the source, or exclude it")
		}
	}
	return nil
}

// checkCollations looks for collations that the target does not know.
func checkCollations(ctx context.Context, r *runner) error {
	query := "SELECT COLLATION_NAME FROM information_schema.COLLATIONS"
	if r.target.version().AtLeast(mysqlconn.MariaDB, 10, 10, 1) {
		query = "SELECT FULL_COLLATION_NAME FROM information_schema.COLLATION_CHARACTER_SET_APPLICABILITY"
	}
	there := map[string]bool{}
	err := r.target.conn.Query(ctx, func(rows *sql.Rows) error {
		var name sql.NullString
		err := rows.Scan(&name)
		there[modern(name.String)] = true
		return err
	}, query)
	if err != nil {
		return fmt.Errorf("list collations of the target: %w", err)
	}
	for _, d := range r.in.Facts.Databases {
		r.collation(there, d.Name, "database "+d.Name, d.Collation)
	}
	for _, t := range r.in.Facts.Tables {
		for i := range t.Columns {
			c := &t.Columns[i]
			r.collation(there, t.String()+"."+c.Name, fmt.Sprintf("column %s of table %s", c.Name, t), c.Collation)
		}
	}
	return nil
}

func (r *runner) collation(there map[string]bool, object, what, name string) {
	if name != "" && !there[modern(name)] {
		r.fail("collation", object, fmt.Sprintf("%s has collation %s, which the target does not know", what, name),
			"use a newer target, or convert to a collation that both sides know")
	}
}
