// Package cases runs field reports against the built command: what went wrong
// for users of other tools, cut down to a few statements and the rows that both
// servers must hold afterwards.
//
// Each file of testdata is one report. A file has
//
//   - a heading "# NUMBER. Title" and prose for people, with links,
//   - a block fenced as sql, whose parts begin with a comment line:
//     "-- source" is run on the source before the command starts, "-- target"
//     on the target, "-- during" on the source at the marked moment, "-- mend"
//     on the target after a run that was expected to fail, "-- check" on both
//     servers after the clean end; the lines behind "-- => " are what it prints,
//   - sections "## name", one for each way the report is run, each with a block
//     fenced as run that holds directives (see Run), and perhaps a block of sql
//     whose parts stand in for those of the file.
//
// A new report is a new file; code is needed only where it has to do what no
// directive says. Such a run names its function with the directive script.
package cases
