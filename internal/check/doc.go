// Package check is the preflight: what `copydb check` prints and what a run asks
// before it writes anything.
//
// It owns the questions, the findings with their fixes, and the list of
// privileges that a copy needs. It does not own connections (internal/mysqlconn)
// or table structures (internal/table), and it knows nothing of configuration
// files: the caller hands over plain values.
//
// Run asks everything it can, also after a finding, so that all findings come
// at once. It only reads: no statement of it changes data, settings or locks of
// other sessions on either server, and no table is scanned. Resumable answers
// another question, whether a source can still serve an earlier run, with typed
// errors, since those end with exit codes of their own.
//
// Nothing here starts a goroutine; a Run opens at most three sessions and closes
// them before it returns. An Input belongs to one Run at a time.
package check
