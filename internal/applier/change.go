package applier

import "github.com/copydb/copydb/internal/table"

// Op is what a row event did to a row.
type Op uint8

// The operations.
const (
	Insert Op = iota + 1
	Update
	Delete
)

// String names the operation as messages do.
func (o Op) String() string {
	switch o {
	case Insert:
		return "insert"
	case Update:
		return "update"
	case Delete:
		return "delete"
	}
	return "unknown"
}

// Row is one image of a row: for each column of the structure, in its order,
// the value as an SQL literal for a session with binary character set, time_zone
// +00:00 and backslash escapes. It is nil for generated columns, unless the key
// that rows are found by has them, or they tell the current rows of a versioned
// table. It is nil also in the before image of a table with a usable key for all
// columns that are not in it.
type Row [][]byte

// bytes is how long a list of the values is at most.
func (r Row) bytes() int {
	n := 2
	for _, v := range r {
		n += len(v) + 1
	}
	return n
}

// Change is one changed row of a selected table.
type Change struct {
	Table  *table.Table // its structure at that place of the log
	Op     Op
	Before Row // nil for Insert
	After  Row // nil for Delete
	// Cascades says that foreign keys carried the change on to other rows, of
	// which the log has nothing: the target's foreign keys do the same.
	Cascades bool
	// MayBeGone says that the row of a Delete may have been deleted already, or got
	// NULL in a foreign key, by a cascade of the same statement: MySQL logs it all
	// the same, as it was before.
	MayBeGone bool
	At        string // where the row event ends in the log, for messages
}
