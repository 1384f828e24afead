// Package blackbox tests the built copydb command against real servers: what a
// user does, sees and relies on, including what happens when a server, the
// network or the run itself is broken on purpose.
//
// It owns the scenarios only. The process control is test/harness's, the
// servers are test/servers's, loads and comparisons internal/testdb's.
//
// Names carry the number of the behaviour that they test where there is one, as
// in TestB1_04_TargetRefusesRow. With COPYDB_TEST_LONG=1 the series are as long
// as the project promises them; without it they are short.
package blackbox
