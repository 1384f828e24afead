// Package lab is what the demo and the benchmark share: a source and a target
// with accounts that have the documented privileges, a configuration for them,
// and the copydb binary as a child process.
//
// It owns the two servers of a Lab and the folder of its files; Close removes
// both. It does not know what is in the databases, and shares no code with the
// program: it uses what a user has, the binary, its exit code and its state file.
package lab
