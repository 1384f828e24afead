// Package hold lets tests stop a run at a named moment and go on when they have
// done what they want there. It does something only in binaries that are built
// with the tag holdpoints; in all others its functions are empty.
package hold
