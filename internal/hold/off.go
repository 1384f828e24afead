//go:build !holdpoints

package hold

import "context"

// Point does nothing.
func Point(context.Context, string) error { return nil }

// ChunkRows returns 0: chunks are cut by bytes.
func ChunkRows() int64 { return 0 }

// CutRows returns 0: small segments are not cut.
func CutRows() int64 { return 0 }
