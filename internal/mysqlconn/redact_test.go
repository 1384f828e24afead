package mysqlconn

import "testing"

func TestRedact(t *testing.T) {
	for in, want := range map[string]string{
		"Duplicate entry 'it''s' for key 't.PRIMARY'":                   "Duplicate entry '…' for key 't.PRIMARY'",
		"Incorrect integer value: 'no' for column `a`.`u`.`x` at row 1": "Incorrect integer value: '…' for column `a`.`u`.`x` at row 1",
		"Incorrect string value: '\\xE9\\x80' for column 's' at row 7":  "Incorrect string value: '…' for column 's' at row 7",
		"Truncated incorrect DOUBLE value: 'secret'":                    "Truncated incorrect DOUBLE value: '…'",
		"Data too long for column 's' at row 1":                         "Data too long for column 's' at row 1",
	} {
		if got := Redact(in); got != want {
			t.Errorf("%s: %s", in, got)
		}
	}
}
