package job

import "context"

// lifetime is how long something may go on: a node with its jobs, or one of them.
type lifetime struct {
	// work is for waits, polls and downloads: it ends when the node stops.
	work context.Context
	// grace is for submissions and for what is written: it outlives work for a
	// moment.
	grace context.Context

	stop   context.CancelFunc // ends work
	hangUp context.CancelFunc // ends grace
}

// newLifetime returns a lifetime within two contexts. It must end.
func newLifetime(work, grace context.Context) *lifetime {
	l := &lifetime{}
	l.work, l.stop = context.WithCancel(work)
	l.grace, l.hangUp = context.WithCancel(grace)
	return l
}

// end ends all of it at once.
func (l *lifetime) end() {
	l.stop()
	l.hangUp()
}

// stopped tells whether only what is under way may go on.
func (l *lifetime) stopped() bool { return l.work.Err() != nil }
