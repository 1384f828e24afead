// Command demo shows copydb at work: it starts a source and a target, loads a
// sample shop, keeps writing to it, copies it with copydb, interrupts the copy,
// resumes it, stops the writes, resumes once more and compares both sides. It is
// what `make demo` runs.
//
// The comparison is made by SQL of its own. The exit code is 0 only if every
// step ended as it should and both sides hold the same.
package main
