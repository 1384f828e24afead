// Package model is an executable model of a copy: what is loaded, replayed,
// committed and believed, on tables of a few rows in memory, with a crash
// between any two steps. It is there to prove the rules, not the code: it
// imports nothing of the product.
//
// A history is a sequence of choices: which tables there are, what the source
// commits and when a snapshot sees it, in which order parts of a window are
// committed, when the run dies, what the target forgets. A seed makes the
// choices; a history that goes wrong is made smaller by leaving choices out, and
// printed. A fault (fault.go) leaves one rule out, and must be found.
//
//	choices.go  choices, and making them fewer
//	table.go    tables as a server keeps them: collisions, INSERT … ON DUPLICATE KEY UPDATE, REPLACE
//	source.go   the source: transactions, its log, what snapshots see
//	target.go   the target: commits, bookkeeping, crashes, late transactions of dead runs
//	run.go      a history; a run from taking over to the end
//	copy.go     starts, chunks, exact snapshots
//	catchup.go  windows, their parts, exact changes
//	fold.go     net changes, and how they are spread over transactions
//	ddl.go      DDL in the log: what it voids, the journal
//	fault.go    the faults, and the rule that each breaks
package model
