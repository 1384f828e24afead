package applier

import "sync"

// freeList is memory of chunks that are written, for chunks to come. It is no
// sync.Pool, which each garbage collection empties: growing to the size of a chunk
// again and again was most of what a copy cost.
type freeList struct {
	mu   sync.Mutex
	size int // of a chunk, as was asked for last
	free [][]byte
}

var buffers freeList

// take returns memory of at least size bytes. What has lain longest is left to
// lie: it may not be in memory yet.
func (f *freeList) take(size int) []byte {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.size = size
	for len(f.free) > 0 {
		last := len(f.free) - 1
		b := f.free[last]
		f.free = f.free[:last]
		if cap(b) >= size {
			return b[:0]
		}
	}
	return make([]byte, 0, size)
}

// give keeps b, unless rows have made it much larger than chunks are.
func (f *freeList) give(b []byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if cap(b) > 0 && cap(b) <= 2*f.size {
		f.free = append(f.free, b)
	}
}

// FreeBuffers gives the memory of written chunks back: no more are to come soon.
func FreeBuffers() {
	buffers.mu.Lock()
	defer buffers.mu.Unlock()
	buffers.free = nil
}
