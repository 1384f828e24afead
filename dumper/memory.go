package dumper

import "context"

// memory is what one chunk holds of the memory that the rows of all workers
// share.
type memory struct {
	job     *Job
	bytes   int64
	release []func()
}

// reserve waits for memory of so many bytes.
func reserve(ctx context.Context, job *Job, bytes int64) (*memory, error) {
	release, err := job.Room(ctx, bytes)
	if err != nil {
		return nil, err
	}
	return &memory{job: job, bytes: bytes, release: []func(){release}}, nil
}

// cover sees to it that a chunk may take so many bytes. Where they are more than
// was reserved, it waits until no other chunk has more than that: one that holds
// memory and waits for more could wait for ever.
func (m *memory) cover(ctx context.Context, bytes int64) error {
	if bytes <= m.bytes || len(m.release) > 1 {
		return nil
	}
	release, err := m.job.Alone(ctx)
	if err != nil {
		return err
	}
	m.release = append(m.release, release)
	return nil
}

// free gives everything back.
func (m *memory) free() {
	for _, release := range m.release {
		release()
	}
}
