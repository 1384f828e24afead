package pattern

import (
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"strings"
)

// matcher is one compiled pattern.
type matcher interface {
	// table reports whether the pattern matches a table.
	table(db, table string) bool
	// someOf reports whether some table of db could match.
	someOf(db string) bool
	// allOf reports whether every table of db matches. False may also mean that
	// it cannot be told.
	allOf(db string) bool
}

// compile parses one pattern.
func compile(text string, fold bool) (matcher, error) {
	if len(text) >= 2 && text[0] == '/' && text[len(text)-1] == '/' {
		return compileRegexp(text[1:len(text)-1], fold)
	}
	parts, err := split(text)
	if err != nil {
		return nil, err
	}
	if len(parts) == 1 {
		parts = append(parts, part{text: "*"})
	}
	return glob{db: parts[0].compile(fold), tbl: parts[1].compile(fold), every: parts[1].every()}, nil
}

// glob is a pattern of two parts.
type glob struct {
	db, tbl *regexp.Regexp
	every   bool // tbl matches any name
}

func (g glob) table(db, table string) bool {
	return g.db.MatchString(db) && (g.every || g.tbl.MatchString(table))
}

func (g glob) someOf(db string) bool { return g.db.MatchString(db) }
func (g glob) allOf(db string) bool  { return g.every && g.db.MatchString(db) }

// part is one side of a pattern's dot.
type part struct {
	text    string
	literal bool // was in backquotes
}

func (p part) every() bool { return !p.literal && strings.Trim(p.text, "*") == "" }

func (p part) compile(fold bool) *regexp.Regexp {
	expr := regexp.QuoteMeta(p.text)
	if !p.literal {
		expr = strings.NewReplacer(`\*`, `.*`, `\?`, `.`).Replace(expr)
	}
	return regexp.MustCompile(flags(fold) + "^(?:" + expr + ")$")
}

func flags(fold bool) string {
	if fold {
		return "(?si)"
	}
	return "(?s)"
}

var errQuote = errors.New("a part in backquotes does not end with one; a backquote in a name is doubled")

// split takes a pattern apart at its dot.
func split(text string) ([]part, error) {
	if text == "" {
		return nil, errors.New("the pattern is empty")
	}
	var parts []part
	for rest := text; ; {
		p, after, err := next(rest)
		if err != nil {
			return nil, err
		}
		parts = append(parts, p)
		switch {
		case after == "" && len(parts) <= 2:
			return parts, nil
		case after == "" || len(parts) > 2:
			return nil, errors.New("more than two parts; put a name that holds a dot in backquotes: `a.b`.*")
		}
		rest = after[1:]
	}
}

// next takes the first part off text; what follows it is empty or begins with a
// dot.
func next(text string) (p part, after string, err error) {
	if strings.HasPrefix(text, "`") {
		return nextQuoted(text)
	}
	name := text
	if i := strings.IndexByte(text, '.'); i >= 0 {
		name, after = text[:i], text[i:]
	}
	switch {
	case name == "":
		return part{}, "", errors.New("a part is empty; the form is database.table")
	case strings.ContainsRune(name, '`'):
		return part{}, "", errors.New("a backquote within a part; quote the whole part")
	}
	return part{text: name}, after, nil
}

func nextQuoted(text string) (p part, after string, err error) {
	var name strings.Builder
	for rest := text[1:]; ; {
		i := strings.IndexByte(rest, '`')
		if i < 0 {
			return part{}, "", errQuote
		}
		name.WriteString(rest[:i])
		rest = rest[i+1:]
		if !strings.HasPrefix(rest, "`") {
			after = rest
			break
		}
		name.WriteByte('`')
		rest = rest[1:]
	}
	switch {
	case after != "" && after[0] != '.':
		return part{}, "", errQuote
	case name.Len() == 0:
		return part{}, "", errors.New("a name in backquotes is empty")
	}
	return part{text: name.String(), literal: true}, after, nil
}

// expression is a pattern between slashes.
type expression struct {
	whole *regexp.Regexp
	prog  *syntax.Prog
	every bool // matches anything
}

func compileRegexp(body string, fold bool) (matcher, error) {
	expr := flags(fold) + "^(?:" + body + ")$"
	whole, err := regexp.Compile(expr)
	if err == nil {
		// The body alone, too: "a)|(b" would only be well formed within ours.
		_, err = syntax.Parse(body, syntax.Perl)
	}
	if err != nil {
		return nil, regexpError(err)
	}
	parsed, err := syntax.Parse(expr, syntax.Perl)
	if err != nil {
		return nil, regexpError(err)
	}
	prog, err := syntax.Compile(parsed.Simplify())
	if err != nil {
		return nil, regexpError(err)
	}
	return expression{whole: whole, prog: prog, every: body == ".*"}, nil
}

func regexpError(err error) error {
	var bad *syntax.Error
	if errors.As(err, &bad) {
		return fmt.Errorf("%s: %q", bad.Code, bad.Expr)
	}
	return err
}

func (e expression) table(db, table string) bool { return e.whole.MatchString(db + "." + table) }
func (e expression) someOf(db string) bool       { return canGoOn(e.prog, db+".") }
func (e expression) allOf(string) bool           { return e.every }
