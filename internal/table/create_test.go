package table

import (
	"strings"
	"testing"
)

// MariaDB 10.11 prints names of foreign keys and their columns without doubling
// backquotes. The text is mended; one that is right stays as it is.
func TestForeignKeysWithBackquotes(t *testing.T) {
	const right = "CREATE TABLE `c ``x` (\n  `id` int(11) NOT NULL,\n  `f``id` int(11) DEFAULT NULL,\n  PRIMARY KEY (`id`),\n" +
		"  CONSTRAINT `fk ``odd'` FOREIGN KEY (`f``id`, `id`) REFERENCES `d``b`.`p``x` (`a``b`, `c`) ON DELETE CASCADE,\n" +
		"  CONSTRAINT `ck``x` CHECK (`f``id` > 0)\n) ENGINE=InnoDB"
	wrong := strings.NewReplacer("fk ``odd'", "fk `odd'", "KEY (`f``id`, ", "KEY (`f`id`, ", "`a``b`", "`a`b`").Replace(right)
	for _, text := range []string{right, wrong} {
		create, add := ParseCreate(text).WithoutForeignKeys()
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
