package position

import (
	"cmp"
	"math"
	"strconv"
	"strings"

	"github.com/copydb/copydb/internal/mysqlconn"
	"github.com/copydb/copydb/state"
)

// MaxFilePos is the last place of a file that a dump can be asked to start at:
// the request has four bytes for it.
const MaxFilePos = math.MaxUint32

// SplitFile cuts the name of a log file at its number.
func SplitFile(name string) (base string, number uint64, ok bool) {
	i := strings.LastIndexByte(name, '.')
	if i <= 0 {
		return "", 0, false
	}
	n, err := strconv.ParseUint(name[i+1:], 10, 64)
	if err != nil {
		return "", 0, false
	}
	return name[:i], n, true
}

// Compare orders two positions of one server by file and place in it: -1, 0 or
// 1. File names compare by their number (binlog.999999 < binlog.1000000). It
// returns false where they cannot be compared: a file is missing or the base
// names differ.
func Compare(a, b state.Position) (int, bool) {
	baseA, numA, okA := SplitFile(a.File)
	baseB, numB, okB := SplitFile(b.File)
	if !okA || !okB || baseA != baseB {
		return 0, false
	}
	return cmp.Or(cmp.Compare(numA, numB), cmp.Compare(a.Pos, b.Pos)), true
}

// Reached reports whether have is at want or behind it: by file and place, or
// because have's GTID set contains want's. Either is enough; where nothing can
// be compared, or a set cannot be read, it is false.
func Reached(flavor mysqlconn.Flavor, have, want state.Position) bool {
	if c, ok := Compare(have, want); ok && c >= 0 {
		return true
	}
	if have.GTIDSet == "" || want.GTIDSet == "" {
		return false
	}
	h, err1 := Parse(flavor, have.GTIDSet)
	w, err2 := Parse(flavor, want.GTIDSet)
	return err1 == nil && err2 == nil && h.Contains(w)
}

// Start is a position that a copy began at, prepared for many questions. The
// zero Start covers nothing.
type Start struct {
	flavor mysqlconn.Flavor
	at     state.Position
	set    *Set
}

// NewStart prepares a position.
func NewStart(flavor mysqlconn.Flavor, at state.Position) (Start, error) {
	s := Start{flavor: flavor, at: at}
	if at.GTIDSet == "" {
		return s, nil
	}
	set, err := Parse(flavor, at.GTIDSet)
	s.set = set
	return s, err
}

// Covers reports whether the group with that GTID ("" for none) that ends at
// end lies before the start. MySQL's sets are exact, so they decide where both
// sides have GTIDs. A MariaDB set is only a position: there the place in the
// file decides where end has a file of the same server (leave it out where the
// server is another one).
func (s Start) Covers(gtid string, end state.Position) bool {
	if s.flavor == mysqlconn.MySQL && s.set != nil && gtid != "" {
		return s.set.ContainsGTID(gtid)
	}
	if c, ok := Compare(end, s.at); ok {
		return c <= 0
	}
	return s.set != nil && gtid != "" && s.set.ContainsGTID(gtid)
}
