package job

import (
	"context"
	"errors"
	"io"
	"sync"

	"tollgate/internal/media"
	"tollgate/internal/upstream/jobcall"
)

// referenceErrors records errors of our own media store while a submission reads its references. The
// line did not cause such a failure, even if the adapter returns another error.
type referenceErrors struct {
	mu    sync.Mutex
	first error
}

// watchReferences makes the references of a task record their errors.
func watchReferences(task *jobcall.Task) *referenceErrors {
	u := &referenceErrors{}
	for i := range task.References {
		u.watch(&task.References[i])
	}
	if task.Mask != nil {
		u.watch(task.Mask)
	}
	return u
}

func (u *referenceErrors) watch(r *jobcall.Reference) {
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

// record keeps the first error. It ignores deleted files and canceled submissions, because the store
// is not their cause.
func (u *referenceErrors) record(ctx context.Context, err error) {
	if errors.Is(err, media.ErrUnknown) || ctx.Err() != nil {
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.first == nil {
		u.first = err
	}
}

// err returns the first error, or nil.
func (u *referenceErrors) err() error {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.first
}

type referenceBody struct {
	io.ReadCloser
	ctx    context.Context
	errors *referenceErrors
}

// Read implements io.Reader.
func (b *referenceBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		b.errors.record(b.ctx, err)
	}
	return n, err
}
