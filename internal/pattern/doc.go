// Package pattern owns the table patterns of a configuration: their grammar and
// what they match.
//
// A pattern names tables as "database.table". `*` stands for any characters and
// `?` for one, in either part; a part in backquotes is literal, with a backquote
// inside it doubled; a pattern of one part, `shop`, means `shop.*`. /re/ is an
// RE2 expression that has to match the whole of "database.table".
//
// It does not know where patterns come from or what a selected table is good
// for. A Selection is immutable once compiled and may be used by several
// goroutines.
package pattern
