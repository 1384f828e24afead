// Package progress owns what the target knows of a migration: the small
// database _copydb, whose content is written in the same transactions as the
// rows it speaks of. Where it and the state file differ, it is right.
//
// It keeps per migration: the epoch that fences older runs; the low-water (the
// last resumable position whose changes are wholly committed) and the
// high-water (the end of everything that may be there); the marker of changes
// that must not be made twice; how far each segment of every table is; each
// table's description and structure; the journal of objects that were made or
// taken over.
//
// It does not write rows of the user's tables and decides nothing. A Store is
// plain data; the connections are the caller's.
package progress
