// Package copydb owns a run: its phases, what it resumes from, when a position
// may be saved, and what is said to the user. It is the public API of the
// program.
//
// It reads no rows and writes none: the dumper reads them, the streamer reads
// the binary log, the applier writes both. It prints nothing and handles no
// signal: what it has to say goes to a Reporter, and whoever wants it to stop
// cancels its context with a *StopError as cause.
//
// Run blocks until the run has ended and nothing of it is left: no goroutine, no
// session on either server (where they can be reached), no lock. Retrying inside
// a run is the same as resuming: every attempt begins with what the target knows.
package copydb
