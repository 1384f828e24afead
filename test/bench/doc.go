// Command bench measures copydb beside others: the dump pipe mysqldump | mysql,
// mydumper + myloader, and the load limit, which is how fast the target takes
// the same rows from files in memory; on the same data, the same servers and in
// one run, taking turns. It measures how fast copydb applies a write load that
// was recorded while nobody followed, beside the server's own replica, and what
// a run costs the source's own load. It is what `make bench` runs.
//
// It owns the servers that it starts and the file of results, to which each
// measurement is added as soon as it is made. It prints tables and asserts
// nothing about time; a copy that lacks rows or indexes is an error. Everything
// is on one machine, so all programs share its processors: only the ratio says
// something about other machines.
package main
