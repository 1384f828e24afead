package mysqlconn

import (
	"fmt"
	"strconv"
	"strings"
)

// Flavor is a family of servers.
type Flavor string

// The two families.
const (
	MySQL   Flavor = "mysql"
	MariaDB Flavor = "mariadb"
)

// String returns the family's own spelling of its name.
func (f Flavor) String() string {
	if f == MariaDB {
		return "MariaDB"
	}
	return "MySQL"
}

// Version is what a server says of itself in VERSION().
type Version struct {
	Flavor              Flavor
	Major, Minor, Patch int
	Text                string
}

// ParseVersion reads the text of VERSION(). A server whose text holds
// "MariaDB" is one; everything else counts as MySQL.
func ParseVersion(text string) (Version, error) {
	v := Version{Flavor: MySQL, Text: text}
	num := text
	if strings.Contains(strings.ToLower(text), "mariadb") {
		v.Flavor = MariaDB
		// Replication-safe prefix that old clients needed: 5.5.5-10.11.6-MariaDB.
		num = strings.TrimPrefix(num, "5.5.5-")
	}
	num, _, _ = strings.Cut(num, "-")
	parts := strings.SplitN(num, ".", 3)
	if len(parts) < 3 {
		return v, fmt.Errorf("parse server version %q: want three numbers", text)
	}
	for i, dst := range []*int{&v.Major, &v.Minor, &v.Patch} {
		digits := strings.TrimRightFunc(parts[i], func(r rune) bool { return r < '0' || r > '9' })
		n, err := strconv.Atoi(digits)
		if err != nil {
			return v, fmt.Errorf("parse server version %q: %w", text, err)
		}
		*dst = n
	}
	return v, nil
}

// AtLeast reports whether the server is of family f and not older than
// major.minor.patch.
func (v Version) AtLeast(f Flavor, major, minor, patch int) bool {
	if v.Flavor != f {
		return false
	}
	if v.Major != major {
		return v.Major > major
	}
	if v.Minor != minor {
		return v.Minor > minor
	}
	return v.Patch >= patch
}

// BinlogStatusQuery is the statement that shows the end of the binary log.
// SHOW MASTER STATUS is gone from MySQL 8.4 on.
func (v Version) BinlogStatusQuery() string {
	switch {
	case v.AtLeast(MySQL, 8, 2, 0):
		return "SHOW BINARY LOG STATUS"
	case v.AtLeast(MariaDB, 10, 5, 2):
		return "SHOW BINLOG STATUS"
	}
	return "SHOW MASTER STATUS"
}
