package upstream

import (
	"context"
	"errors"
	"fmt"
	"io"

	"tollgate/internal/fault"
)

// Unread is the failure of a reference that we could not read from our own
// store: nothing that the provider could do was sent, and the line is not to
// blame.
func Unread(err error) *JobFailure {
	f := Fail(fault.UpstreamUnavailable, fmt.Errorf("reading a reference: %w", brief(err)))
	f.Health = HealthNone
	return FailJob(f, fault.UpstreamError, NextLater)
}

// Bytes reads the reference whole, for providers that want it inside the body.
// It reads Size bytes and fails if there are not so many.
func (r Reference) Bytes(ctx context.Context) ([]byte, error) {
	from, err := r.Open(ctx)
	if err != nil {
		return nil, err
	}
	defer from.Close()
	if r.Size < 0 {
		return nil, errors.New("its size is not known")
	}
	data := make([]byte, r.Size)
	if _, err := io.ReadFull(from, data); err != nil {
		return nil, err
	}
	return data, nil
}

// AsJobFailure returns the JobFailure that an error of a Generator or of exchange is.
// Anything else, which would be a mistake of ours, is one of the connection.
func AsJobFailure(err error) *JobFailure {
	if t := (*JobFailure)(nil); errors.As(err, &t) {
		return t
	}
	return FailJob(Fail(fault.UpstreamConnectionError, brief(err)), fault.UpstreamError, NextLine)
}
