// Package state owns the state file and the files beside it: its format, its
// atomic store, its backup, its lock, its versions, the table structures that it
// names, and where the spill files that it names stand; what is in those is the
// streamer's business.
//
// It does not decide anything about a run: it neither compares positions nor
// knows what a phase means. It imports the standard library only, so that every
// other package may use its value types.
//
// A Store is opened once per run and closed at its end; its methods may be
// called from several goroutines. The value types are plain data and are not
// safe for concurrent writing. Load needs no Store.
//
// A file with a field that is not in the types is refused, since saving it again
// would lose that field. So whoever adds, renames or removes one raises
// FormatVersion, keeps the reader of the old form and adds a sample to testdata.
package state
