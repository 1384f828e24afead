// Package mysqlconn owns connections to MySQL and MariaDB servers: how they are
// dialled and encrypted, which named lock marks them as ours, how a silent
// server is told from a slow one, and which server errors mean what.
//
// A Server opens sessions of two kinds. A Control is a go-sql-driver connection
// for statements about the server; a Session speaks the protocol itself and
// hands out raw bytes, for rows. Both take a numbered named lock first and are
// listed by the Server until they are closed; a Server can end every session of
// a run that died, found by those locks. It never ends any other session.
//
// A Server is safe for concurrent use. A Control or a Session belongs to one
// goroutine at a time. Nothing here knows tables, positions or the state file's
// content.
package mysqlconn
