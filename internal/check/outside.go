package check

import (
	"context"
	"database/sql"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/copydb/copydb/internal/table"
)

// checkOutside looks for what a CREATE TABLE needs beside the table: without it
// the table cannot be made on the target, or would be something else there.
func checkOutside(ctx context.Context, r *runner) error {
	if err := r.sequences(ctx); err != nil {
		return err
	}
	for _, t := range r.in.Facts.Tables {
		tail := table.ParseCreate(string(t.Create)).Tail
		if r.remoteRows(t, tail) {
			continue
		}
		r.directories(t, tail)
		if err := r.tablespace(ctx, t, tail); err != nil {
			return err
		}
		if err := r.encryption(ctx, t, tail); err != nil {
			return err
		}
	}
	return nil
}

var nextValue = regexp.MustCompile("(?i)\\b(?:nextval|lastval)\\(\\s*(?:`((?:[^`]|``)*)`\\.)?`((?:[^`]|``)*)`\\s*\\)")

// sequences looks for those that defaults take numbers from: they are not
// copied.
func (r *runner) sequences(ctx context.Context) error {
	used := map[table.Name][]string{}
	var databases []string
	for _, t := range r.in.Facts.Tables {
		for _, item := range table.ParseCreate(string(t.Create)).Items {
			for _, m := range nextValue.FindAllStringSubmatch(withoutStrings(item.Text), -1) {
				n := table.Name{Database: t.Database, Table: strings.ReplaceAll(m[2], "``", "`")}
				if m[1] != "" {
					n.Database = strings.ReplaceAll(m[1], "``", "`")
				}
				used[n] = append(used[n], t.String())
				databases = append(databases, n.Database)
			}
		}
	}
	if len(used) == 0 {
		return nil
	}
	there, err := r.targetTables(ctx, databases)
	if err != nil {
		return err
	}
	for n, by := range used {
		slices.Sort(by)
		tables := list(slices.Compact(by))
		if there[r.targetFolded(n)] == "SEQUENCE" {
			r.warn("sequence_value", n.String(), fmt.Sprintf("defaults of %s take numbers from sequence %s, whose own value is not copied", tables, n),
				"before the target is written to, set it there: SELECT SETVAL("+n.Quoted()+", …) with the source's value")
			continue
		}
		r.fail("sequence", n.String(), fmt.Sprintf("defaults of %s take numbers from sequence %s, which is not on the target and is not copied", tables, n),
			"make it on the target, with what SHOW CREATE SEQUENCE "+n.Quoted()+" prints on the source, or exclude the tables")
	}
	return nil
}

var connection = regexp.MustCompile(`(?i)\bCONNECTION ?=`)

// remoteRows refuses tables whose rows are another table's or another server's.
// Connection strings may hold passwords: nothing of them is shown.
func (r *runner) remoteRows(t *table.Table, tail string) bool {
	const fix = "exclude the table, and make it on the target by hand if it is wanted"
	switch strings.ToUpper(t.Engine) {
	case "MRG_MYISAM":
		r.fail("merge_table", t.String(), fmt.Sprintf("table %s is a MERGE table: its rows are those of other tables", t), fix)
		return true
	case "FEDERATED", "CONNECT", "SPIDER":
		r.fail("remote_table", t.String(), fmt.Sprintf("table %s has engine %s: its rows are kept elsewhere", t, t.Engine), fix)
		return true
	}
	if connection.MatchString(withoutStrings(tail)) {
		r.warn("connection_option", t.String(), fmt.Sprintf("table %s has a CONNECTION option, which is copied as it is", t), "look whether it is right on the target")
	}
	return false
}

var directory = regexp.MustCompile(`(?i)\b(?:DATA|INDEX) DIRECTORY ?= ?'((?:[^'\\]|\\.|'')*)'`)

// directories looks at the folders that tables and partitions are kept in.
func (r *runner) directories(t *table.Table, tail string) {
	var seen []string
	for _, m := range directory.FindAllStringSubmatch(tail, -1) {
		dir := m[1]
		if slices.Contains(seen, dir) {
			continue
		}
		seen = append(seen, dir)
		message := fmt.Sprintf("table %s is kept in the folder %s, which the target must have, too", t, dir)
		if t.Engine == "InnoDB" && !r.target.mariadb() && !r.knowsDirectory(dir) {
			r.fail("data_directory", t.String(), message+": its innodb_directories does not list it",
				"add the folder to innodb_directories on the target and restart it, or move the table on the source (ALTER TABLE … DATA DIRECTORY)")
			continue
		}
		r.warn("data_directory", t.String(), message, "make the folder there, owned by the server's user, before the copy")
	}
}

func (r *runner) knowsDirectory(dir string) bool {
	for _, known := range append(strings.Split(r.target.value("innodb_directories"), ";"), r.target.value("datadir")) {
		known = strings.TrimSpace(known)
		if known != "" && (path.Clean(dir) == path.Clean(known) || strings.HasPrefix(dir, path.Clean(known)+"/")) {
			return true
		}
	}
	return false
}

var tablespaceOption = regexp.MustCompile("\\bTABLESPACE ?=? ?`((?:[^`]|``)*)`")

func (r *runner) tablespace(ctx context.Context, t *table.Table, tail string) error {
	m := tablespaceOption.FindStringSubmatch(tail)
	if m == nil || strings.HasPrefix(m[1], "innodb_") || r.target.mariadb() {
		return nil
	}
	var n int
	err := r.target.conn.QueryRow(ctx, []any{&n}, "SELECT COUNT(*) FROM information_schema.FILES WHERE TABLESPACE_NAME = "+literal(m[1]))
	if err != nil {
		return fmt.Errorf("look for tablespace %s on the target: %w", m[1], err)
	}
	if n == 0 {
		r.fail("tablespace", t.String(), fmt.Sprintf("table %s is in tablespace %s, which the target does not have, or does not show to an account without PROCESS", t, m[1]),
			"CREATE TABLESPACE on the target, or on the source: ALTER TABLE "+t.Quoted()+" TABLESPACE innodb_file_per_table")
	}
	return nil
}

var encrypted = regexp.MustCompile("(?i)(\\bENCRYPTION ?= ?'Y'|`?\\bENCRYPTED`? ?= ?'?(YES|ON)\\b)")

// encryption refuses encrypted tables on a target that has no keys.
func (r *runner) encryption(ctx context.Context, t *table.Table, tail string) error {
	if !encrypted.MatchString(tail) {
		return nil
	}
	query := "SELECT PLUGIN_NAME FROM information_schema.PLUGINS WHERE PLUGIN_STATUS = 'ACTIVE' AND (PLUGIN_TYPE = 'ENCRYPTION' OR PLUGIN_NAME LIKE 'keyring%')"
	if !r.target.mariadb() {
		query += " UNION ALL SELECT STATUS_VALUE FROM performance_schema.keyring_component_status WHERE STATUS_KEY = 'Component_status' AND STATUS_VALUE = 'Active'"
	}
	found := false
	err := r.target.conn.Query(ctx, func(*sql.Rows) error { found = true; return nil }, query)
	if err != nil {
		return fmt.Errorf("look for encryption keys of the target: %w", err)
	}
	if !found {
		r.fail("encryption", t.String(), fmt.Sprintf("table %s is encrypted, and the target has no keyring or key management", t),
			"set one up on the target, or decrypt the table on the source")
	}
	return nil
}
