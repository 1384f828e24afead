// Package arch tests the shape of the source tree: which package may import
// which, how long a file may be, and what tests may not do. It owns nothing.
package arch
