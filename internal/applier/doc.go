// Package applier is the only way rows are written to the target: chunks of the
// snapshot and windows of changes from the binary log.
//
// Every write of rows is inside a transaction (or, for engines without, beside
// one) that holds a share lock on the migration's epoch row, so that a run that
// was taken over cannot write any more. What the target knows of the migration
// is kept by package progress; the applier moves it in the same transaction as
// the rows.
//
// Rows of tables with a usable key are written so that they can be written twice.
// Changes of other tables are made once each and must find exactly one row; a
// marker, moved in the same transaction, says how many of them are done.
//
// A Loader and an Applier hold their sessions until Close; each belongs to one
// goroutine.
package applier
