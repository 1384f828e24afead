// Package dumper owns the snapshot: the transactions that read it, the position
// it starts at, and the chunks it is cut into.
//
// A snapshot transaction lives for one chunk. Whoever opens one ends it on every
// return path; its session is known to the mysqlconn.Server, which ends what is
// left. The dumper reads rows into applier.Chunks and hands them to its caller:
// it never writes, and never reads the binary log.
//
// A Dumper is safe for concurrent use; a Reader belongs to one goroutine.
package dumper
