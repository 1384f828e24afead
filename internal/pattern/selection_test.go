package pattern

import (
	"strings"
	"testing"
)

func TestMatch(t *testing.T) {
	list := func(s ...string) []string { return s }
	tests := []struct {
		name             string
		include, exclude []string
		fold             bool
		yes, no          []string // database|table
	}{
		{"one part", list("shop"), nil, false, list("shop|a", "shop|x.y"), list("shop2|a", "Shop|a")},
		{"one part with a star", list("shop_*"), nil, false, list("shop_|a", "shop_de|b"), list("shop|a")},
		{"two parts", list("shop.*", "crm.orders"), nil, false, list("shop|a", "crm|orders"), list("crm|order", "crm|orders2", "crm2|orders")},
		{"question mark", list("shop.t?"), nil, false, list("shop|t1", "shop|tä"), list("shop|t", "shop|t12")},
		{"stars within", list("a*b.*x*"), nil, false, list("ab|x", "a--b|axb"), list("ab|y", "abc|x")},
		{"everything but system", list("*.*"), nil, false, list("a|b", "a\n|b"),
			list("mysql|user", "sys|x", "information_schema|t", "INFORMATION_SCHEMA|t", "performance_schema|t", "_copydb|state")},
		{"system asked for by name", list("mysql.user", "/sys\\..*/", "_copydb"), nil, false, nil, list("mysql|user", "sys|x", "_copydb|a")},
		{"literal", list("`a.b`.`t*`"), nil, false, list("a.b|t*"), list("a.b|t1", "a|b.t*")},
		{"literal and wildcards", list("`a.b`.t*"), nil, false, list("a.b|t1"), list("a.bc|t1")},
		{"doubled backquote", list("`a``b`.`c`"), nil, false, list("a`b|c"), list("ab|c")},
		{"literal one part", list("`a*`"), nil, false, list("a*|x"), list("ab|x")},
		{"regexp is anchored", list(`/shop\.orders_\d+/`), nil, false, list("shop|orders_1"), list("xshop|orders_1", "shop|orders_1x")},
		{"regexp alternatives are anchored", list(`/a\.b|c\.d/`), nil, false, list("a|b", "c|d"), list("a|bx", "xc|d")},
		{"regexp characters are plain elsewhere", list("a+.b(c"), nil, false, list("a+|b(c"), list("aa|b(c")},
		{"exclude wins", list("shop.*"), list("shop.tmp_*"), false, list("shop|a"), list("shop|tmp_a")},
		{"exclude a database", list("*"), list("log"), false, list("a|b"), list("log|b")},
		{"exclude by regexp", list("*"), list(`/.*\.tmp_.*/`), false, list("a|b"), list("a|tmp_1")},
		{"folded", list("Shop.Orders", `/CRM\..*/`), list("crm.TMP"), true, list("shop|ORDERS", "crm|x"), list("crm|tmp")},
		{"folded system", list("*"), nil, true, list("a|b"), list("MySQL|user", "SYS|x")},
		{"not folded", list("Shop"), nil, false, list("Shop|a"), list("shop|a")},
		{"nothing", nil, nil, false, nil, list("a|b")},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s, err := Compile(tt.include, tt.exclude, tt.fold)
			if err != nil {
				t.Fatal(err)
			}
			for want, names := range map[bool][]string{true: tt.yes, false: tt.no} {
				for _, name := range names {
					db, table, _ := strings.Cut(name, "|")
					if got := s.Match(db, table); got != want {
						t.Errorf("Match(%q, %q) = %v", db, table, got)
					}
					if want && !s.MatchDatabase(db) {
						t.Errorf("MatchDatabase(%q) = false, but its table %q matches", db, table)
					}
				}
			}
		})
	}
}

func TestMatchDatabase(t *testing.T) {
	tests := []struct {
		include, exclude string
		yes, no          string
	}{
		{"shop.orders", "", "shop", "shop2 mysql"},
		{"*", "log.*", "a", "log"},
		{"*", "log.a*", "log", ""},
		{"*", "log.**", "a", "log"},
		{"*", "`log`", "a", "log"},
		{"*", "log.`*`", "a log", ""},
		{"*", "/.*/", "", "a"},
		{`/(shop|crm)\.x/`, "", "shop crm", "shopx sho other"},
		{`/shop_\d+\..*/`, "", "shop_1 shop_22", "shop_ shop_a"},
		{`/.*/`, "", "anything", "sys"},
		{`/(?i)SHOP\.a/`, "", "shop Shop", "sho"},
		{`/a\b.*/`, "", "a", "ab"},
		{`/a\./`, "", "", "a"},
		{`/a\.$x/`, "", "", "a"},
	}
	for _, tt := range tests {
		var exclude []string
		if tt.exclude != "" {
			exclude = []string{tt.exclude}
		}
		s, err := Compile([]string{tt.include}, exclude, false)
		if err != nil {
			t.Fatal(err)
		}
		for want, names := range map[bool]string{true: tt.yes, false: tt.no} {
			for db := range strings.FieldsSeq(names) {
				if got := s.MatchDatabase(db); got != want {
					t.Errorf("include %q exclude %q: MatchDatabase(%q) = %v", tt.include, tt.exclude, db, got)
				}
			}
		}
	}
}

func TestCompileRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"":          "empty",
		".a":        "a part is empty",
		"a.":        "a part is empty",
		"a..b":      "a part is empty",
		"a.b.c":     "more than two parts",
		"`a`.b.`c`": "more than two parts",
		"`a":        "does not end",
		"`a`b.c":    "does not end",
		"a`b`.c":    "quote the whole part",
		"``.c":      "is empty",
		"/(/":       "missing closing )",
		"/a)|(b/":   "unexpected )",
		`/\8/`:      "invalid escape",
	} {
		_, err := Compile([]string{"ok", text}, nil, false)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %q in it", text, err, want)
		}
	}
	_, err := Compile([]string{"a.b.c"}, []string{"`"}, false)
	if err == nil || strings.Count(err.Error(), "pattern ") != 2 {
		t.Errorf("want both patterns named, got %v", err)
	}
}
