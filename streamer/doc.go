// Package streamer owns the source's binary log: it reads events, groups them
// into transactions, decodes the rows of selected tables and says after which
// event a position is one to resume from. Changes that wait for the end of
// their group, or for another group's XA COMMIT, it keeps in spill files beside
// the state file; whoever saves a position says when one may go.
//
// It does not write to the target and does not decide what a DDL means for the
// run. A Stream is made for one start position; Run blocks until its context
// ends or the log cannot be read on, and hands transactions to one handler from
// one goroutine, in log order.
package streamer
