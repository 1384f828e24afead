// Package position owns arithmetic on places in a binary log: sets of GTIDs in
// both families' notations, the order of file positions, and the question
// whether one position covers another.
//
// It knows no server and no connection. A Set belongs to one goroutine while it
// is changed; Clone is cheap and gives one that later changes don't touch.
package position
