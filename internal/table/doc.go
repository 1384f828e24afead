// Package table owns what is known of a table: its columns, its keys, the text
// that creates it, and how its names and values are written in SQL.
//
// It reads structures from a server's own catalogue and never compares rows.
// Everything here is plain data and free of locks; a *Table is not changed once
// it was loaded.
package table
