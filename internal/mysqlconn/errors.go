package mysqlconn

import (
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"

	gomysql "github.com/go-mysql-org/go-mysql/mysql"
	"github.com/go-sql-driver/mysql"
)

// ErrSilent is returned for a connection that was closed because its server
// neither answered nor said, on another connection, that it still works.
var ErrSilent = errors.New("server does not answer")

// LostError is a connection that broke, or a server that refuses connections,
// with the server's name.
type LostError struct {
	Server  string // source or target
	Address string
	Err     error
}

// Error names the server and its address.
func (e *LostError) Error() string {
	return fmt.Sprintf("%s %s: %v", e.Server, e.Address, e.Err)
}

// Unwrap returns what the driver said.
func (e *LostError) Unwrap() error { return e.Err }

// ErrorNumber returns the server's error number in err, or 0.
func ErrorNumber(err error) uint16 {
	var d *mysql.MySQLError
	if errors.As(err, &d) {
		return d.Number
	}
	var g *gomysql.MyError
	if errors.As(err, &g) {
		return g.Code
	}
	return 0
}

func isNumber(err error, numbers ...uint16) bool {
	n := ErrorNumber(err)
	for _, want := range numbers {
		if n == want && n != 0 {
			return true
		}
	}
	return false
}

// wroteNothing reports the driver's error for a connection that was found closed
// before anything was written to it. The driver does not export it.
func wroteNothing(err error) bool {
	for ; err != nil; err = errors.Unwrap(err) {
		if err.Error() == "bad connection" {
			return true
		}
	}
	return false
}

// IsDuplicateKey reports ER_DUP_ENTRY and its kin (1062, 1586).
func IsDuplicateKey(err error) bool { return isNumber(err, 1062, 1586) }

// IsLockConflict reports a deadlock (1213), a lock wait that was given up
// (1205) and MariaDB's record that changed since the read (1020): the
// transaction can simply be run again.
func IsLockConflict(err error) bool { return isNumber(err, 1213, 1205, 1020, 3572) }

// IsReadOnly reports a server that refuses writes for now: read_only,
// super_read_only (1290), a read-only transaction server (1836), offline_mode.
func IsReadOnly(err error) bool { return isNumber(err, 1290, 1836, 3032) }

// IsAccessDenied reports a refused login or a missing privilege.
func IsAccessDenied(err error) bool {
	return isNumber(err, 1044, 1045, 1142, 1143, 1227, 1370, 1698, 3118, 4151)
}

// IsWithoutTLS reports a server that offers no encryption where it is wanted.
func IsWithoutTLS(err error) bool { return errors.Is(err, mysql.ErrNoTLS) }

// IsCutOff reports a connection that the server ended without a word, as servers
// do with a client's certificate that they do not accept: TLS 1.3 tells of it
// only after the handshake, when what we send may already meet a closed
// connection.
func IsCutOff(err error) bool {
	for _, cut := range []error{mysql.ErrInvalidConn, driver.ErrBadConn, io.EOF, syscall.ECONNRESET, syscall.EPIPE} {
		if errors.Is(err, cut) {
			return true
		}
	}
	return wroteNothing(err)
}

// IsTableGone reports a table, view or database that is not there.
func IsTableGone(err error) bool { return isNumber(err, 1146, 1049, 1051, 1109) }

// IsTableThere reports a table that cannot be made because it is there.
func IsTableThere(err error) bool { return isNumber(err, 1050) }

// IsTableChanged reports that a table is not the one that a query was made for:
// the snapshot is older than its definition (1412), or it has lost a column
// (1054) or an index (1176).
func IsTableChanged(err error) bool { return isNumber(err, 1412, 1054, 1176) }

// IsConnectionLost reports that the connection is gone, or that the server ends
// or refuses sessions for a while (too many connections, shutdown, a killed
// session): what a new connection later may mend.
func IsConnectionLost(err error) bool {
	if err == nil {
		return false
	}
	if isNumber(err, 1040, 1053, 1077, 1079, 1080, 1129, 1152, 1158, 1159, 1160, 1161, 1184, 1203, 1226, 1317,
		1927, 2006, 2013, 2055, 3024, 3169, 4031) {
		return true
	}
	if ErrorNumber(err) != 0 {
		return false
	}
	for _, target := range []error{ErrSilent, driver.ErrBadConn, mysql.ErrInvalidConn, gomysql.ErrBadConn,
		io.EOF, io.ErrUnexpectedEOF, net.ErrClosed, syscall.ECONNRESET, syscall.ECONNREFUSED, syscall.EPIPE,
		syscall.ENOENT, syscall.ETIMEDOUT, syscall.EHOSTUNREACH, syscall.ENETUNREACH} {
		if errors.Is(err, target) {
			return true
		}
	}
	var ne net.Error
	return errors.As(err, &ne) || wroteNothing(err)
}
