package check

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/copydb/copydb/internal/mysqlconn"
)

// grants is what SHOW GRANTS says of the account and its active roles. It is
// asked only where trying the statement itself would change something.
type grants struct {
	global    []string
	databases []databaseGrant
	literal   bool // database parts are names, not patterns (MySQL's partial_revokes)
	fold      bool // names are compared without case
}

// databaseGrant is one line ON `db`.*.
type databaseGrant struct {
	pattern    string
	privileges []string
	revoke     bool
}

// readGrants fills s.grants. The lines are never shown: MariaDB prints password
// hashes with them.
func (s *side) readGrants(ctx context.Context) error {
	s.grants = grants{literal: s.on("partial_revokes"), fold: s.value("lower_case_table_names") != "0"}
	queries := []string{"SHOW GRANTS"}
	if s.version().AtLeast(mysqlconn.MariaDB, 10, 11, 0) {
		queries = append(queries, "SHOW GRANTS FOR PUBLIC")
	}
	s.grantsKnown = true
	for i, q := range queries {
		err := s.conn.Query(ctx, func(rows *sql.Rows) error {
			var line string
			if err := rows.Scan(&line); err != nil {
				return err
			}
			s.grants.add(line)
			return nil
		}, q)
		if err != nil && mysqlconn.ErrorNumber(err) == 0 {
			return fmt.Errorf("read grants on %s: %w", s.name, err)
		}
		if err != nil && i == 0 {
			s.grantsKnown = false
		}
	}
	return nil
}

// add takes one line of SHOW GRANTS in. Lines about roles, single tables,
// routines and proxies don't matter here.
func (g *grants) add(line string) {
	verb, rest, _ := strings.Cut(line, " ")
	if verb != "GRANT" && verb != "REVOKE" {
		return
	}
	at := outside(rest, " ON ")
	if at < 0 {
		return
	}
	privileges := splitPrivileges(rest[:at])
	scope := rest[at+len(" ON "):]
	if strings.HasPrefix(scope, "*.*") {
		if verb == "GRANT" {
			g.global = append(g.global, privileges...)
		}
		return
	}
	name, after, ok := identifier(scope)
	if ok && strings.HasPrefix(after, ".* ") {
		g.databases = append(g.databases, databaseGrant{name, privileges, verb == "REVOKE"})
	}
}

// outside finds sep where it is not within quotes.
func outside(text, sep string) int {
	var quote byte
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '`' || c == '"' || c == '\'':
			quote = c
		case strings.HasPrefix(text[i:], sep):
			return i
		}
	}
	return -1
}

// identifier takes a quoted name off the front.
func identifier(text string) (name, after string, ok bool) {
	if text == "" || text[0] != '`' && text[0] != '"' {
		return "", "", false
	}
	quote := text[:1]
	var b strings.Builder
	for rest := text[1:]; ; {
		i := strings.Index(rest, quote)
		if i < 0 {
			return "", "", false
		}
		b.WriteString(rest[:i])
		rest = rest[i+1:]
		if !strings.HasPrefix(rest, quote) {
			return b.String(), rest, true
		}
		b.WriteString(quote)
		rest = rest[1:]
	}
}

func splitPrivileges(text string) []string {
	var out []string
	for _, p := range strings.Split(text, ",") {
		out = append(out, canonical(strings.TrimSpace(p)))
	}
	return out
}

// canonical gives a privilege the one name under which it is looked for here.
func canonical(p string) string {
	switch p = strings.ToUpper(p); p {
	case "ALL":
		return "ALL PRIVILEGES"
	case "BINLOG MONITOR":
		return "REPLICATION CLIENT"
	case "REPLICATION REPLICA":
		return "REPLICATION SLAVE"
	case "REPLICA MONITOR":
		return "SLAVE MONITOR"
	}
	return p
}

// everywhere reports a privilege ON *.*.
func (g *grants) everywhere(privilege string) bool {
	return slices.Contains(g.global, "ALL PRIVILEGES") || slices.Contains(g.global, canonical(privilege))
}

// on reports a privilege on all of a database.
func (g *grants) on(database, privilege string) bool {
	privilege = canonical(privilege)
	held := g.everywhere(privilege)
	for _, d := range g.databases {
		if !g.covers(d.pattern, database) {
			continue
		}
		if slices.Contains(d.privileges, "ALL PRIVILEGES") || slices.Contains(d.privileges, privilege) {
			if d.revoke {
				return false
			}
			held = true
		}
	}
	return held
}

func (g *grants) covers(pattern, database string) bool {
	if g.fold {
		pattern, database = strings.ToLower(pattern), strings.ToLower(database)
	}
	if g.literal {
		return pattern == database
	}
	return like(pattern, database)
}

// like matches SQL's pattern: % any string, _ any character, backslash escapes.
func like(pattern, name string) bool {
	for pattern != "" {
		switch pattern[0] {
		case '%':
			for i := range name {
				if like(pattern[1:], name[i:]) {
					return true
				}
			}
			return like(pattern[1:], "")
		case '_':
			if name == "" {
				return false
			}
			_, size := utf8.DecodeRuneInString(name)
			pattern, name = pattern[1:], name[size:]
			continue
		case '\\':
			if len(pattern) > 1 {
				pattern = pattern[1:]
			}
		}
		if name == "" || name[0] != pattern[0] {
			return false
		}
		pattern, name = pattern[1:], name[1:]
	}
	return name == ""
}
