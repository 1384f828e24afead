// Package servers starts throwaway MySQL and MariaDB servers, real ones, for
// tests, benchmarks and the demo.
//
// It owns: the binaries (fetched once from the Debian mirror that the machine
// already uses, into a private root below the user's cache folder; nothing is
// installed), one template data folder per binary, and the processes, ports,
// sockets and data folders of the servers it starts.
//
// It does not own: what is inside the servers. Helpers that load, compare or
// write data are in internal/testdb.
//
// Life cycle: Start returns a server that answers. Stop, Kill9 and Restart act
// on its process by its own pid; Close ends it and removes its data folder. A
// server also dies, by the kernel's parent death signal, when the process that
// started it dies in any way; the data folders of dead processes are removed
// by the next process that starts a server.
//
// A server named by COPYDB_TEST_MYSQLD or COPYDB_TEST_MARIADBD, or found on
// PATH, is used instead of a fetched one for the family that its --version
// names; see Locate.
//
// Concurrency: everything may be called from several goroutines and, as far as
// the cache folder goes, from several processes at once. Calls that act on the
// process of one Server must not overlap each other.
package servers
