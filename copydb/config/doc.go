// Package config owns the configuration of a run: the one table of its keys,
// reading it from YAML and from single settings, its defaults and its checks.
//
// It does not contact a server, and it neither prints nor looks at the process's
// own arguments and environment: who calls Load hands them in. The one thing it
// reads by itself are password files.
//
// Load is called once; the Config it returns is plain data that is not changed
// any more and may be read by several goroutines. Passwords are of type Secret,
// which shows itself to nobody who does not ask by name.
package config
