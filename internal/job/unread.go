package job

import (
	"context"
	"errors"
	"io"
	"sync"

	"tollgate/internal/media"
	"tollgate/internal/upstream/jobcall"
)

// unread records that our media store did not give a reference during a submission:
// then the submission failed for no fault of the line, whatever the adapter says.
type unread struct {
	mu    sync.Mutex
	first error
}

// watchReferences makes the references of a task record their errors.
func watchReferences(task *jobcall.Task) *unread {
	u := &unread{}
	for i := range task.References {
		u.watch(&task.References[i])
	}
	if task.Mask != nil {
		u.watch(task.Mask)
	}
	return u
}

func (u *unread) watch(r *jobcall.Reference) {
	open := r.Open
	r.Open = func(ctx context.Context) (io.ReadCloser, error) {
		body, err := open(ctx)
		if err != nil {
			u.record(ctx, err)
			return nil, err
		}
		return &referenceBody{body, ctx, u}, nil
	}
}

// record keeps the first error. A reference that is gone will not come back, and a
// submission that was called off says nothing about the store.
func (u *unread) record(ctx context.Context, err error) {
	if errors.Is(err, media.ErrUnknown) || ctx.Err() != nil {
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.first == nil {
		u.first = err
	}
}

// err returns the first error; nil if all references could be read.
func (u *unread) err() error {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.first
}

// referenceBody is the content of a reference.
type referenceBody struct {
	io.ReadCloser
	ctx    context.Context
	unread *unread
}

// Read implements io.Reader.
func (b *referenceBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		b.unread.record(b.ctx, err)
	}
	return n, err
}
