package check

import (
	"context"
	"fmt"
	"regexp"
	"strings"

	"github.com/copydb/copydb/internal/table"
)

// checkExpressions looks for expressions whose value depends on the session that
// computes it: our sessions run in UTC, the application's may not. In a unique
// key such a value can push another row away.
func checkExpressions(_ context.Context, r *runner) error {
	for _, t := range r.in.Facts.Tables {
		for _, e := range expressionsOf(t) {
			why := sessionDependent(t, e.text)
			if why == "" {
				continue
			}
			message := fmt.Sprintf("%s of table %s depends on the session: it uses %s", e.what, t, why)
			object := t.String() + "." + e.name
			switch {
			case e.unique:
				r.fail("session_expression", object, message+", within a unique key",
					"drop that key on the source, or exclude the table")
			case e.unused:
				r.info("session_expression", object, message+"; the copy writes every column, so it is not evaluated", "nothing to do for the copy")
			default:
				r.warn("session_expression", object, message+"; on the target it is computed in UTC by the copy's account",
					"compare this table's computed values after the copy, or rewrite the expression")
			}
		}
	}
	return nil
}

// expression is one that a server evaluates when a row is written.
type expression struct {
	what, name, text string
	unique           bool // part of a unique key
	unused           bool // a default: not evaluated when all columns are given
}

func expressionsOf(t *table.Table) []expression {
	var out []expression
	for i := range t.Columns {
		if c := &t.Columns[i]; c.Generated && !c.RowTime() {
			out = append(out, expression{what: "generated column " + c.Name, name: c.Name, text: c.Expression, unique: inUniqueKey(t, c.Name)})
		}
	}
	for _, item := range table.ParseCreate(string(t.Create)).Items {
		if e, ok := expressionOf(t, strings.TrimSpace(item.Text)); ok {
			out = append(out, e...)
		}
	}
	return out
}

func inUniqueKey(t *table.Table, column string) bool {
	for _, k := range t.Keys {
		for _, kc := range k.Columns {
			if kc.Name == column {
				return true
			}
		}
	}
	return false
}

var (
	keyItem    = regexp.MustCompile("^(UNIQUE |FULLTEXT |SPATIAL )?KEY (`(?:[^`]|``)*`) ")
	checkItem  = regexp.MustCompile("^CONSTRAINT (`(?:[^`]|``)*`) CHECK ")
	columnItem = regexp.MustCompile("^(`(?:[^`]|``)*`) ")
)

// expressionOf finds expressions in one line of a CREATE TABLE. Generated
// columns are known from the catalogue.
func expressionOf(t *table.Table, text string) ([]expression, bool) {
	if m := keyItem.FindStringSubmatch(text); m != nil {
		if parts := text[len(m[0]):]; strings.HasPrefix(parts, "((") || strings.Contains(parts, ",(") {
			return []expression{{what: "index " + unquote(m[2]), name: unquote(m[2]), text: parts, unique: m[1] == "UNIQUE "}}, true
		}
		return nil, false
	}
	if m := checkItem.FindStringSubmatch(text); m != nil {
		return []expression{{what: "check " + unquote(m[1]), name: unquote(m[1]), text: text[len(m[0]):]}}, true
	}
	m := columnItem.FindStringSubmatch(text)
	if m == nil {
		return nil, false
	}
	name := unquote(m[1])
	c := t.Column(name)
	if c == nil || c.Generated {
		return nil, false
	}
	bare := withoutStrings(text[len(m[0]):])
	check := ""
	if i := strings.Index(bare, " CHECK ("); i >= 0 {
		bare, check = bare[:i], bare[i:]
	}
	out := []expression{{what: "the default of column " + name, name: name, text: defaultOf(bare), unused: true}}
	if check != "" {
		out = append(out, expression{what: "the check of column " + name, name: name, text: check})
	}
	return out, true
}

var plainNow = regexp.MustCompile(`(?i)^\(?(current_timestamp|now|curdate|curtime|current_date|current_time|localtime|localtimestamp)\b(\(\d*\))?\)?( |$)`)

// defaultOf returns the expression behind DEFAULT; "" for a plain time of day,
// which everybody has and nobody needs to hear of.
func defaultOf(text string) string {
	_, rest, ok := strings.Cut(text, " DEFAULT ")
	if !ok || plainNow.MatchString(rest) {
		return ""
	}
	rest, _, _ = strings.Cut(rest, " ON UPDATE ")
	rest, _, _ = strings.Cut(rest, " COMMENT ")
	return rest
}

func unquote(name string) string {
	return strings.ReplaceAll(strings.Trim(name, "`"), "``", "`")
}

var (
	stringLiteral = regexp.MustCompile(`'(?:[^'\\]|\\.|'')*'`)
	quotedName    = regexp.MustCompile("`((?:[^`]|``)*)`")
	variable      = regexp.MustCompile(`@`)
	sessionCall   = regexp.MustCompile(`(?i)\b(?:(current_timestamp|current_date|current_time|current_user|current_role|` +
		`localtime|localtimestamp|utc_timestamp|utc_date|utc_time)\b|(now|sysdate|curdate|curtime|unix_timestamp|from_unixtime|` +
		`convert_tz|user|session_user|system_user|connection_id|database|schema|last_insert_id|found_rows|row_count|` +
		`get_lock|dayname|monthname|date_format)\s*\()`)
)

func withoutStrings(text string) string { return stringLiteral.ReplaceAllString(text, "''") }

// sessionDependent names what in an expression depends on the session, or "".
func sessionDependent(t *table.Table, text string) string {
	text = withoutStrings(text)
	for _, m := range quotedName.FindAllStringSubmatch(text, -1) {
		if c := t.Column(strings.ReplaceAll(m[1], "``", "`")); c != nil && c.Type == "timestamp" {
			return "TIMESTAMP column " + c.Name
		}
	}
	text = quotedName.ReplaceAllString(text, "x")
	if variable.MatchString(text) {
		return "a variable"
	}
	if m := sessionCall.FindStringSubmatch(text); m != nil {
		return strings.ToUpper(m[1]+m[2]) + "()"
	}
	return ""
}
