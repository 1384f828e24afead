package servers

import (
	"fmt"
	"strings"
)

// Kind names a server family, version and mode that the project is tested on.
type Kind string

// The kinds that must hold.
const (
	MySQL       Kind = "mysql"         // MySQL 9.7, GTIDs on
	MySQLNoGTID Kind = "mysql-nogtid"  // MySQL 9.7, gtid_mode and enforce_gtid_consistency OFF
	MariaDB1011 Kind = "mariadb-10.11" // MariaDB 10.11
	MariaDB118  Kind = "mariadb-11.8"  // MariaDB 11.8: row events without positions, uca1400 collations
)

// Family is what a server's version string names: MySQL or MariaDB.
type Family string

// The two families.
const (
	FamilyMySQL   Family = "MySQL"
	FamilyMariaDB Family = "MariaDB"
)

// release is where the binaries of a kind come from.
type release struct {
	name     string // folder below the cache
	suite    string // Debian suite
	packages []string
}

// spec is all that makes one kind differ from another.
type spec struct {
	family  Family
	version string // major.minor that the kind stands for
	release release
	args    []string // server options of the kind
}

var (
	mysqlRelease = release{"mysql-sid", "sid", []string{"mysql-server-core", "mysql-client-core"}}
	specs        = map[Kind]spec{
		MySQL: {FamilyMySQL, "9.7", mysqlRelease,
			[]string{"--gtid-mode=ON", "--enforce-gtid-consistency=ON"}},
		MySQLNoGTID: {FamilyMySQL, "9.7", mysqlRelease,
			[]string{"--gtid-mode=OFF", "--enforce-gtid-consistency=OFF"}},
		MariaDB1011: {FamilyMariaDB, "10.11",
			release{"mariadb-bookworm", "bookworm", []string{"mariadb-server", "mariadb-client"}}, nil},
		MariaDB118: {FamilyMariaDB, "11.8",
			release{"mariadb-trixie", "trixie", []string{"mariadb-server", "mariadb-client"}}, nil},
	}
)

// Kinds returns all kinds, in a fixed order.
func Kinds() []Kind {
	return []Kind{MySQL, MySQLNoGTID, MariaDB1011, MariaDB118}
}

// ParseKind returns the kind of that name, or an error that lists the names.
func ParseKind(name string) (Kind, error) {
	if _, ok := specs[Kind(name)]; ok {
		return Kind(name), nil
	}
	var names []string
	for _, k := range Kinds() {
		names = append(names, string(k))
	}
	return "", fmt.Errorf("unknown kind of server %q, one of %s", name, strings.Join(names, ", "))
}

// Family returns the family of the kind.
func (k Kind) Family() Family { return specs[k].family }

// IsMariaDB tells whether the kind is a MariaDB.
func (k Kind) IsMariaDB() bool { return k.Family() == FamilyMariaDB }

// HasGTID tells whether servers of the kind give their transactions GTIDs.
func (k Kind) HasGTID() bool { return k != MySQLNoGTID }

// Version returns the major.minor version that the kind stands for. A server
// named by the environment may have another one; see Server.Version.
func (k Kind) Version() string { return specs[k].version }
