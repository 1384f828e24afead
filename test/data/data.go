// Package data holds the project's own test data: torture schemas that put
// every type, odd name, character set, key and relation in front of the copy.
//
// It owns the texts, nothing else: they are loaded with a server's own
// command-line client (they use DELIMITER) by internal/testdb.
package data

import _ "embed" // the texts are embedded

// The torture schemas. Types loads on both families, the two others only on
// theirs and after Types.
var (
	//go:embed types.sql
	Types string
	//go:embed types_mysql.sql
	TypesMySQL string
	//go:embed types_mariadb.sql
	TypesMariaDB string
)

// DigestSQL prints, through a command-line client, one SELECT per table of the
// torture schemas; piped into the same client again those print a digest of
// each table. For use by hand; tests compare with testdb.RequireEqual.
//
//go:embed digest.sql
var DigestSQL string
