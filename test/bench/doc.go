// Command bench measures copydb beside the dump pipe, mysqldump | mysql, on the
// same data, the same servers and in one run, taking turns; and how fast copydb
// applies a write load that was recorded while nobody followed. It is what
// `make bench` runs.
//
// It prints tables and asserts nothing about time; a copy that lacks rows is an
// error. Everything is on one machine, so the four programs share its
// processors: only the ratio says something about other machines.
package main
