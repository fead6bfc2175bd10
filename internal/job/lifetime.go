package job

import "context"

// lifetime has the contexts of a node's jobs or of one worker.
type lifetime struct {
	// work is for waits, polls and downloads. It ends when the node stops.
	work context.Context
	// grace is for submissions and writes. It ends some time after work.
	grace context.Context

	stop        context.CancelFunc // cancels work
	cancelGrace context.CancelFunc // cancels grace
}

// newLifetime derives a lifetime from two contexts. The caller must call end.
func newLifetime(work, grace context.Context) *lifetime {
	l := &lifetime{}
	l.work, l.stop = context.WithCancel(work)
	l.grace, l.cancelGrace = context.WithCancel(grace)
	return l
}

// end cancels both contexts.
func (l *lifetime) end() {
	l.stop()
	l.cancelGrace()
}

// stopped reports whether work has ended.
func (l *lifetime) stopped() bool { return l.work.Err() != nil }
