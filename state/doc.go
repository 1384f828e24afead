// Package state owns the state file: its format, its atomic store, its lock
// and its versions.
//
// It does not decide anything about a run: it neither compares positions nor
// knows what a phase means. It imports the standard library only, so that every
// other package may use its value types.
//
// A Store is opened once per run and closed at its end; its methods may be
// called from several goroutines. The value types are plain data and are not
// safe for concurrent writing.
package state
