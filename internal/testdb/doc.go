// Package testdb holds what tests do with real servers: start pairs of them,
// load data, write to them while a migration runs, compare both sides, and
// look for what was left behind.
//
// It owns the servers that Pair and One start (closed in t.Cleanup), the
// sessions of a Load, and one scratch database (ScratchDatabase) on a server
// under load. It does not know the code under test and shares nothing with it:
// digests are made by SQL of their own.
//
// Every helper takes a testing.TB and fails it; none returns an error. Helpers
// that wait do so on something they can see, with a bound. They must be called
// from the test's own goroutine unless they say otherwise.
package testdb
