package mysqlconn

import (
	"errors"
	"fmt"
	"testing"

	gomysql "github.com/go-mysql-org/go-mysql/mysql"
)

// A lost connection says nothing about tables, keys or privileges.
func TestLostConnectionIsNothingElse(t *testing.T) {
	err := fmt.Errorf("look: %w", errors.New("bad connection"))
	if !IsConnectionLost(err) {
		t.Error("the driver's bad connection is not taken for a lost one")
	}
	for name, is := range map[string]func(error) bool{"table gone": IsTableGone, "table changed": IsTableChanged, "read-only": IsReadOnly,
		"access denied": IsAccessDenied, "duplicate key": IsDuplicateKey, "lock conflict": IsLockConflict} {
		if is(err) {
			t.Errorf("it is taken for: %s", name)
		}
	}
}

func TestTableChanged(t *testing.T) {
	for _, code := range []uint16{1412, 1054, 1176} {
		if !IsTableChanged(fmt.Errorf("read: %w", &gomysql.MyError{Code: code})) {
			t.Errorf("error %d is not known", code)
		}
	}
}
