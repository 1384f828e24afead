package table

import (
	"fmt"
	"strings"
	"testing"

	"github.com/copydb/copydb/state"
	"github.com/google/go-cmp/cmp"
)

// MariaDB 10.11 prints names of foreign keys and their columns without doubling
// backquotes. The text is mended; one that is right stays as it is.
func TestForeignKeysWithBackquotes(t *testing.T) {
	const right = "CREATE TABLE `c ``x` (\n  `id` int(11) NOT NULL,\n  `f``id` int(11) DEFAULT NULL,\n  PRIMARY KEY (`id`),\n" +
		"  CONSTRAINT `fk ``odd'` FOREIGN KEY (`f``id`, `id`) REFERENCES `d``b`.`p``x` (`a``b`, `c`) ON DELETE CASCADE,\n" +
		"  CONSTRAINT `ck``x` CHECK (`f``id` > 0)\n) ENGINE=InnoDB"
	wrong := strings.NewReplacer("fk ``odd'", "fk `odd'", "KEY (`f``id`, ", "KEY (`f`id`, ", "`a``b`", "`a`b`").Replace(right)
	for _, text := range []string{right, wrong} {
		parts := (&Table{Create: state.Text(text)}).Part(false)
		create, add := parts.Create, parts.Foreign
		if len(add) != 1 || add[0] != "ADD CONSTRAINT `fk ``odd'` FOREIGN KEY (`f``id`, `id`) REFERENCES `d``b`.`p``x` (`a``b`, `c`) ON DELETE CASCADE" {
			t.Errorf("foreign keys: %q", add)
		}
		if strings.Contains(create, "FOREIGN KEY") || !strings.Contains(create, "CHECK (`f``id` > 0)\n) ENGINE=InnoDB") {
			t.Errorf("create: %s", create)
		}
	}
	if !SameCreate(wrong, wrong+" AUTO_INCREMENT=7") {
		t.Error("the counter is not cut off")
	}
}

// MySQL prints COLLATE without CHARACTER SET for a column that has its table's.
func TestImpliedCollations(t *testing.T) {
	for item, want := range map[string]string{
		"`a` varchar(10) COLLATE utf8mb4_unicode_ci NOT NULL":                         "`a` varchar(10) NOT NULL",
		"`a` varchar(10) COLLATE utf8mb4_unicode_ci":                                  "`a` varchar(10)",
		"`a` varchar(10) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin":                   "",
		"`a` enum(' COLLATE x','y') COLLATE latin1_bin DEFAULT ' COLLATE x'":          "`a` enum(' COLLATE x','y') DEFAULT ' COLLATE x'",
		"`a` varchar(9) GENERATED ALWAYS AS ((`b` collate utf8mb4_bin)) VIRTUAL":      "",
		"KEY `k` ((`a` COLLATE utf8mb4_bin))":                                         "",
		"`g` varchar(9) COLLATE latin1_bin GENERATED ALWAYS AS ((`b`)) STORED UNIQUE": "`g` varchar(9) GENERATED ALWAYS AS ((`b`)) STORED UNIQUE",
	} {
		if want == "" {
			want = item
		}
		tab := Table{Create: state.Text("CREATE TABLE `t` (\n  " + item + "\n) ENGINE=InnoDB")}
		if got := tab.Part(false).Create; got != "CREATE TABLE `t` (\n  "+want+"\n) ENGINE=InnoDB" {
			t.Errorf("%s: %s", item, got)
		}
	}
}

// Foreign keys are read from the text, which every account sees that may read
// the table.
func TestForeignKeysAreParsed(t *testing.T) {
	const text = "CREATE TABLE `t` (\n  `a` int DEFAULT NULL,\n" +
		"  CONSTRAINT `o``dd, (x` FOREIGN KEY (`a`, `b, ``c`) REFERENCES `d``b`.`p(.t` (`x`, `y``) ON DELETE CASCADE`) ON DELETE SET NULL ON UPDATE CASCADE,\n" +
		"  CONSTRAINT `plain` FOREIGN KEY (`a`) REFERENCES `ON DELETE CASCADE` (`id`),\n" +
		"  CONSTRAINT `ck` CHECK (`a` > 0)\n) ENGINE=InnoDB COMMENT='CONSTRAINT `x` FOREIGN KEY'"
	tab := Table{Database: "own", Create: state.Text(text)}
	tab.finish()
	want := []ForeignKey{
		{"o`dd, (x", []string{"a", "b, `c"}, "d`b", "p(.t", []string{"x", "y`) ON DELETE CASCADE"}, "SET NULL", "CASCADE", false},
		{"plain", []string{"a"}, "own", "ON DELETE CASCADE", []string{"id"}, "NO ACTION", "NO ACTION", false},
	}
	if diff := cmp.Diff(want, tab.Foreign); diff != "" {
		t.Error(diff)
	}
}

// CHECK constraints of a table and of its columns, and what only looks so.
func TestChecks(t *testing.T) {
	const text = "CREATE TABLE `t` (\n  `j` longtext DEFAULT ' CHECK (no)' CHECK (json_valid(`j`)) COMMENT ' CHECK (no)',\n" +
		"  `CHECK (` int(11) DEFAULT (if(1, 2, 3)),\n  PRIMARY KEY (`j`) COMMENT 'x CHECK (y)',\n" +
		"  CONSTRAINT `a``b` CHECK (`j` <> ')' or (1 > 0))\n) ENGINE=InnoDB"
	tab := Table{Create: state.Text(text)}
	want := []Check{{"j", "(json_valid(`j`))"}, {"a`b", "(`j` <> ')' or (1 > 0))"}}
	if diff := cmp.Diff(want, tab.Checks()); diff != "" {
		t.Error(diff)
	}
}

// A table without a usable key gets InnoDB on the target where its own engine
// does not roll back, without the options that InnoDB refuses.
func TestOtherEngine(t *testing.T) {
	const create = "CREATE TABLE `m` (\n  `a` int DEFAULT NULL COMMENT 'ENGINE=MyISAM'\n) ENGINE=%s AUTO_INCREMENT=5 DEFAULT CHARSET=utf8mb4%s COMMENT='it''s ENGINE=MyISAM ROW_FORMAT=FIXED'%s"
	const parts = "\n PARTITION BY HASH (`a`)\n(PARTITION `p0` ENGINE = %s)"
	have := fmt.Sprintf(create, "MyISAM", " PACK_KEYS=1 CHECKSUM=1 DELAY_KEY_WRITE=1 ROW_FORMAT=FIXED", fmt.Sprintf(parts, "MyISAM"))
	want := strings.Replace(fmt.Sprintf(create, "InnoDB", "", fmt.Sprintf(parts, "InnoDB")), "ENGINE = InnoDB", "ENGINE=InnoDB", 1)
	tab := &Table{Engine: "MyISAM", Create: state.Text(have), Columns: []Column{{Name: "a", Kind: Integer}}}
	if got := tab.Part(true).Create; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	tab.Keys = []Key{{Name: "PRIMARY", Columns: []KeyColumn{{Name: "a"}}}}
	if got := tab.Part(true).Create; got != have {
		t.Errorf("with a usable key: got %s", got)
	}
}
