package check

import (
	"slices"
	"strings"

	"github.com/copydb/copydb/internal/mysqlconn"
	"github.com/copydb/copydb/internal/table"
)

// progressDatabase is where the target keeps what it knows of a run.
const progressDatabase = "_copydb"

// targetPrivileges are needed on every selected database of the target and on
// _copydb. TRIGGER is for seeing triggers that are not ours.
var targetPrivileges = []string{"SELECT", "INSERT", "UPDATE", "DELETE", "CREATE", "DROP", "ALTER", "INDEX", "REFERENCES", "TRIGGER"}

// sourcePrivileges returns what the source has to grant ON *.*: static
// privileges, and MySQL's dynamic ones, which have no place in one statement
// with them on every version.
func sourcePrivileges(v mysqlconn.Version, gtid bool) (static, dynamic []string) {
	static = []string{"REPLICATION SLAVE", monitorPrivilege(v)}
	if v.AtLeast(mysqlconn.MariaDB, 10, 5, 9) {
		static = append(static, "SLAVE MONITOR")
	}
	static = append(static, "PROCESS")
	if v.Flavor == mysqlconn.MySQL {
		if !gtid {
			static = append(static, "RELOAD")
		}
		if v.AtLeast(mysqlconn.MySQL, 8, 0, 0) {
			dynamic = append(dynamic, "XA_RECOVER_ADMIN")
		}
	}
	return static, dynamic
}

// monitorPrivilege is the name of the right to see the binary log's end.
func monitorPrivilege(v mysqlconn.Version) string {
	if v.AtLeast(mysqlconn.MariaDB, 10, 5, 2) {
		return "BINLOG MONITOR"
	}
	return "REPLICATION CLIENT"
}

// logBinPrivilege is the name of the right to set sql_log_bin.
func logBinPrivilege(v mysqlconn.Version) string {
	switch {
	case v.AtLeast(mysqlconn.MariaDB, 10, 5, 2):
		return "BINLOG ADMIN"
	case v.AtLeast(mysqlconn.MySQL, 8, 0, 14):
		return "SESSION_VARIABLES_ADMIN"
	}
	return "SUPER"
}

// Grants returns the statements that give the two accounts the least that a copy
// of this very selection needs. What Run has not found out is assumed: the
// account from the configuration at any host, the databases from what the
// selection names, all databases where it names none.
func Grants(in *Input) (source, target []string) {
	f := &in.Facts
	account := accountOf(&f.Source, in.Source)
	static, dynamic := sourcePrivileges(f.Source.Identity.Version, f.Source.Variables["gtid_mode"] != "OFF")
	source = append(source, grant(static, "*.*", account))
	if len(dynamic) > 0 {
		source = append(source, grant(dynamic, "*.*", account))
	}
	databases := in.databaseNames()
	for _, db := range databases {
		read := []string{"SELECT"}
		if in.mayLock(db) {
			read = append(read, "LOCK TABLES")
		}
		source = append(source, grant(read, scopeOf(&f.Source, db), account))
	}
	account = accountOf(&f.Target, in.Target)
	if databases[0] != "" {
		databases = append(databases, progressDatabase)
	}
	for _, db := range databases {
		target = append(target, grant(targetPrivileges, scopeOf(&f.Target, db), account))
	}
	if in.FastLoad && f.Target.Identity.Version.AtLeast(mysqlconn.MySQL, 8, 0, 21) {
		target = append(target, grant([]string{redoPrivilege}, "*.*", account))
	}
	if len(in.Replicas) > 0 { // replicas follow the target's accounts, as a rule
		target = append(target, grant([]string{replicaPrivilege(f.Target.Identity.Version)}, "*.*", account))
	}
	if !in.SQLLogBin {
		target = append(target, grant([]string{logBinPrivilege(f.Target.Identity.Version)}, "*.*", account))
	}
	return source, target
}

// mayLock reports whether the copy may have to lock a table of a database: one
// without a usable key, also where its tables cannot be seen yet.
func (in *Input) mayLock(db string) bool {
	if !in.AllowLocks {
		return false
	}
	seen := false
	for _, t := range in.Facts.Tables {
		if t.Database != db && db != "" {
			continue
		}
		if t.UsableKey() == nil {
			return true
		}
		seen = true
	}
	return !seen
}

// databaseNames returns the selected databases; "" alone stands for all.
func (in *Input) databaseNames() []string {
	var names []string
	for _, d := range in.Facts.Databases {
		names = append(names, d.Name)
	}
	for _, n := range in.Literal {
		if n.Database != "" {
			names = append(names, n.Database)
		}
	}
	if len(names) == 0 {
		return []string{""}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func accountOf(f *ServerFacts, s *mysqlconn.Server) string {
	if f.Account != "" || s == nil {
		return f.Account
	}
	return quoteAccount(s.Config().User + "@%")
}

// grant writes one statement.
func grant(privileges []string, scope, account string) string {
	return "GRANT " + strings.Join(privileges, ", ") + " ON " + scope + " TO " + account
}

// scopeOf writes a database for GRANT, where _ and % are wildcards unless they
// are escaped; "" is all databases.
func scopeOf(f *ServerFacts, db string) string {
	if db == "" {
		return "*.*"
	}
	if f.Variables["partial_revokes"] != "ON" {
		db = strings.NewReplacer(`\`, `\\`, `_`, `\_`, `%`, `\%`).Replace(db)
	}
	return table.Quote(db) + ".*"
}

// quoteAccount writes user@host as 'user'@'host'.
func quoteAccount(account string) string {
	user, host := account, "%"
	if i := strings.LastIndexByte(account, '@'); i >= 0 {
		user, host = account[:i], account[i+1:]
	}
	quote := func(s string) string {
		return "'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(s) + "'"
	}
	return quote(user) + "@" + quote(host)
}
