package pattern

import "strings"

// Literal returns the names that a pattern gives in full, without wildcards: a
// table, or, with an empty table, a database. ok is false for all others, and
// for what is no pattern.
func Literal(text string) (db, table string, ok bool) {
	if strings.HasPrefix(text, "/") && strings.HasSuffix(text, "/") {
		return "", "", false
	}
	parts, err := split(text)
	if err != nil || !parts[0].plain() {
		return "", "", false
	}
	switch {
	case len(parts) == 1 || parts[1].every():
		return parts[0].text, "", true
	case parts[1].plain():
		return parts[0].text, parts[1].text, true
	}
	return "", "", false
}

// plain reports whether the part stands for one name.
func (p part) plain() bool { return p.literal || !strings.ContainsAny(p.text, "*?") }
