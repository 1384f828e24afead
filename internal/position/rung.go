package position

// Rung is a way to find a start position that no snapshot opened later can miss
// a transaction of. The names are printed in the plan.
type Rung string

// The ladder, best first.
const (
	RungGTID      Rung = "gtid"       // MySQL, gtid_mode ON: gtid_executed, then the snapshots
	RungMariaDB   Rung = "mariadb"    // the position that belongs to a consistent snapshot
	RungFlush     Rung = "flush"      // MySQL without GTIDs: a new log file, then the snapshots
	RungFileStart Rung = "file_start" // MySQL without GTIDs or RELOAD: the current file from its begin
)
