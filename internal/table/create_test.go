package table

import (
	"strings"
	"testing"

	"github.com/copydb/copydb/state"
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
