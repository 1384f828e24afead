// Command copydb copies a MySQL or MariaDB database to another server in chunks
// and then applies the source's binary log.
//
// The package owns what meets the user: the command line, the environment,
// signals, the deadline, what is printed, and the exit code. What a run does is
// package copydb's; what a configuration may say is package config's.
//
// One call of run is one call of the command: it returns the exit code, and
// main alone ends the process with it. The work runs in one goroutine beside
// the one that watches the signals; run returns in time even if the work does
// not. Everything that is printed goes through one console, which may be used by
// several goroutines.
package main
