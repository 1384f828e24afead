// Package harness runs the built copydb binary as a user does: as a process,
// with a configuration file, against real servers, as a user who has the
// privileges that copydb itself asks for and no other.
//
// It owns: the binaries (built once per test process, without and with the tag
// holdpoints, with the race detector where the tests have it), the processes it
// starts, the configuration and the folder of each migration.
//
// It does not own: the servers (test/servers) and what is in them
// (internal/testdb).
//
// Life cycle: TestMain is one line, harness.Main. New makes a Migration; its
// Start and Run begin a fresh run, StartResume and Resume go on. A process ends
// with its test at the latest. After every process the harness looks for what
// must never be in its output: a data race, a stack trace, a password.
//
// Concurrency: one Migration belongs to one test; the methods of a Process may
// be called from several goroutines.
package harness
