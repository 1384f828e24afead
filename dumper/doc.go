// Package dumper owns the snapshot: the transactions that read it, the position
// it starts at, and the chunks it is cut into.
//
// A snapshot transaction lives for one chunk; that of a table without a usable
// key, whose position has to be exact, for the whole table. Whoever opens one
// ends it on every return path; its session is known to the mysqlconn.Server,
// which ends what is left. The dumper reads rows into applier.Chunks and hands
// them to its caller: it never writes, and never reads the binary log.
//
// A table is read in Segments of its keys, each by one Reader; another Reader may
// cut off what is not read yet. A Dumper and a Segment are safe for concurrent
// use; a Reader belongs to one goroutine.
package dumper
