package table

import (
	"strings"
	"testing"
)

func TestSignature(t *testing.T) {
	for text, want := range map[string]string{
		"KEY `a` (`b`(10),`c` DESC) USING BTREE COMMENT 'x (y'":           "KEY `a` (`b`(10),`c` DESC)",
		"UNIQUE KEY `a)` ((lower(`b`)),`c`) /*!80000 INVISIBLE */":        "UNIQUE KEY `a)` ((lower(`b`)),`c`)",
		"CONSTRAINT `f` FOREIGN KEY (`a`) REFERENCES `p` (`a`) ON DELETE": "CONSTRAINT `f` FOREIGN KEY (`a`) REFERENCES `p` (`a`) ON DELETE",
		"PRIMARY KEY (`a`,`p`,`period` WITHOUT OVERLAPS)":                 "PRIMARY KEY (`a`,`p`,`period` WITHOUT OVERLAPS)",
	} {
		if got := Signature("  " + text); got != want {
			t.Errorf("%s: %s", text, got)
		}
	}
}

// TestAlterStatement: clauses go in an order in which they can be run, and what
// cannot be mended gives no statement.
func TestAlterStatement(t *testing.T) {
	want := &Table{Database: "d", Table: "t", Engine: "InnoDB", Columns: []Column{{Name: "id", FullType: "int", Type: "int"}, {Name: "v", FullType: "varchar(5)", Charset: "latin1", Collation: "latin1_bin"}},
		Create: "CREATE TABLE `t` (\n  `id` int NOT NULL COMMENT 'a  b',\n  `v` varchar(5) COLLATE latin1_bin DEFAULT NULL,\n  PRIMARY KEY (`id`),\n  KEY `k` (`v`)\n) ENGINE=InnoDB DEFAULT CHARSET=latin1 COLLATE=latin1_bin"}
	have := &Table{Database: "d", Table: "t", Engine: "InnoDB", Columns: []Column{{Name: "id", FullType: "int(11)", Type: "int", Nullable: true}, {Name: "x", FullType: "int", Type: "int"}},
		Create: "CREATE TABLE `t` (\n  `id` int DEFAULT NULL,\n  `x` int DEFAULT NULL,\n  KEY `k` (`x`)\n) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4"}
	all := Compare(want, have)
	const alter = "ALTER TABLE `d`.`t` DROP INDEX `k`, DROP COLUMN `x`, MODIFY COLUMN `id` int NOT NULL COMMENT 'a  b'," +
		" ADD COLUMN `v` varchar(5) CHARACTER SET latin1 COLLATE latin1_bin DEFAULT NULL AFTER `id`, ADD PRIMARY KEY (`id`), ADD KEY `k` (`v`)"
	if got := AlterStatement(want.FullName(), all); got != alter {
		t.Errorf("got  %s\nwant %s", got, alter)
	}
	if got := AlterStatement(want.FullName(), append(all, Difference{What: "x"})); got != "" {
		t.Errorf("with something that has no clause: %s", got)
	}
	for _, d := range Compare(want, want) {
		t.Errorf("the same table: %s", d.What)
	}
	if len(Major(all)) == len(all) || !strings.Contains(all[len(all)-1].What, "options") {
		t.Errorf("no minor difference: %v", all)
	}
}
