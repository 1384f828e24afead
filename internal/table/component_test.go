package table

import (
	"slices"
	"strings"
	"testing"

	"github.com/copydb/copydb/state"
	"github.com/google/go-cmp/cmp"
)

// tied makes tables a.NAME with foreign keys written as "child>parent RULE", the
// rule being one of delete, update, restrict.
func tied(names string, keys ...string) []*Table {
	byName := map[string]*Table{}
	var out []*Table
	for _, n := range strings.Fields(names) {
		byName[n] = &Table{Database: "a", Table: n}
		out = append(out, byName[n])
	}
	for _, k := range keys {
		tables, rule, _ := strings.Cut(k, " ")
		child, parent, _ := strings.Cut(tables, ">")
		fk := ForeignKey{Name: parent, ParentDatabase: "a", ParentTable: parent, OnDelete: "RESTRICT", OnUpdate: "NO ACTION"}
		switch rule {
		case "delete":
			fk.OnDelete = "SET NULL"
		case "update":
			fk.OnUpdate = "CASCADE"
		}
		t := byName[child]
		t.Foreign = append(t.Foreign, fk)
		t.Create = state.Text(strings.TrimSuffix(string(t.Create), "\n)") + map[bool]string{true: "CREATE TABLE `t` (\n  `id` int", false: ""}[t.Create == ""] +
			",\n  CONSTRAINT `" + parent + "` FOREIGN KEY (`id`) REFERENCES `" + parent + "` (`id`)\n)")
	}
	return out
}

func TestComponents(t *testing.T) {
	for _, c := range []struct {
		name, tables string
		keys         []string
		want         string // the components' tables, each in order, joined by commas
	}{
		{"none", "p c", []string{"c>p restrict"}, ""},
		{"two", "p c x", []string{"c>p delete"}, "c,p"},
		{"itself", "t x", []string{"t>t delete"}, "t"},
		{"chain and another", "a b c x y", []string{"b>a delete", "c>b update", "y>x delete"}, "a,b,c x,y"},
		{"a child that may refuse the cascade", "p c d e", []string{"c>p delete", "d>c restrict", "e>d restrict"}, "c,d,p"},
		{"a child that may refuse the parent's delete", "p c d", []string{"c>p delete", "d>p restrict"}, "c,d,p"},
		{"parents are not looked for by deletes", "p c q", []string{"c>p delete", "c>q restrict", "p>q restrict"}, "c,p"},
		{"parents that updates look for", "p c q r", []string{"c>p update", "c>q restrict", "p>r restrict"}, "c,p,q,r"},
		{"cycle", "a b", []string{"a>b delete", "b>a restrict"}, "a,b"},
		{"joined by a child", "a b c", []string{"c>a delete", "c>b delete"}, "a,b,c"},
		{"a parent that is not there", "c x", []string{"c>gone delete"}, ""},
		{"other case", "P c", []string{"c>p delete"}, "P,c"},
	} {
		tables := tied(c.tables, c.keys...)
		var got []string
		components := Components(tables, true)
		for _, tab := range tied(c.tables) {
			for n := components[tab.FullName()]; n > len(got); {
				got = append(got, "")
			}
		}
		for n, number := range components {
			got[number-1] += n.Table + " "
		}
		for i := range got {
			got[i] = strings.Join(sorted(strings.Fields(got[i])), ",")
		}
		if diff := cmp.Diff(c.want, strings.Join(got, " ")); diff != "" {
			t.Errorf("%s: %s", c.name, diff)
		}
	}
}

// Only foreign keys inside a component are made early, and a table in one has no
// usable key, though it has one that its rows are found by.
func TestTie(t *testing.T) {
	tables := tied("p c q", "c>p delete", "c>q restrict")
	c := tables[1]
	c.Columns = []Column{{Name: "id", Kind: Integer}}
	c.Keys = []Key{{Name: "PRIMARY", Columns: []KeyColumn{{Name: "id"}}}}
	if c.UsableKey() == nil || len(c.TiedForeign()) != 0 {
		t.Errorf("before: %v, %v", c.UsableKey(), c.TiedForeign())
	}
	c.Tie(Components(tables, false), false)
	if diff := cmp.Diff([]string{"ADD CONSTRAINT `p` FOREIGN KEY (`id`) REFERENCES `p` (`id`)"}, c.TiedForeign()); diff != "" {
		t.Error(diff)
	}
	if c.UsableKey() != nil || !c.InUniqueKey("id") || c.WhyExact() == "" {
		t.Errorf("%v, %v, %q", c.UsableKey(), c.InUniqueKey("id"), c.WhyExact())
	}
}

func sorted(in []string) []string {
	slices.Sort(in)
	return in
}
