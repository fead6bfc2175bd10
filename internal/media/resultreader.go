package media

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"

	"tollgate/internal/media/format"
)

// resultReader inspects a result on its way into a backend. It returns io.EOF only if the whole
// file is good, so that the backend never stores a bad file.
type resultReader struct {
	ctx         context.Context
	source      *bufio.Reader
	limit       int64
	shape       *format.Shape
	contentType string
	size        int64 // number of bytes so far
	err         error // the final error
}

// newResultReader reads the first bytes of r to detect the file's format.
func newResultReader(ctx context.Context, r io.Reader, limit Limit) (*resultReader, error) {
	source := bufio.NewReaderSize(r, 64<<10)
	head, err := source.Peek(format.HeadSize)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%w: %w", ErrSource, err)
	}
	contentType := format.Sniff(head)
	if format.KindOf(contentType) != limit.Kind {
		return nil, foreignError(head, contentType, limit.Kind)
	}
	return &resultReader{ctx: ctx, source: source, limit: limit.Size, contentType: contentType, shape: format.NewShape(contentType)}, nil
}

// foreignError returns the error for a file of another kind. It names the file's likely format.
func foreignError(head []byte, contentType, kind string) error {
	found := contentType
	if found == "" {
		found = format.LikelyFormat(head)
	}
	switch {
	case len(head) == 0:
		return fmt.Errorf("%w: the file is empty", ErrBroken)
	case found == "":
		found = "an unknown format"
	}
	return fmt.Errorf("%w: %s instead of %s", ErrWrongKind, found, kind)
}

// Read implements io.Reader.
func (r *resultReader) Read(p []byte) (int, error) {
	if r.err != nil {
		return 0, r.err
	}
	if err := context.Cause(r.ctx); err != nil {
		r.err = err
		return 0, err
	}
	n, err := r.source.Read(p)
	r.size += int64(n)
	switch {
	case r.size > r.limit:
		r.err = fmt.Errorf("%w of %d bytes", ErrTooLarge, r.limit)
		return 0, r.err
	case n > 0:
		if r.err = r.shape.Feed(p[:n]); r.err != nil {
			return 0, r.err
		}
	}
	switch {
	case errors.Is(err, io.EOF):
		if r.err = r.shape.Finish(); r.err == nil {
			r.err = io.EOF
		}
	case err != nil:
		r.err = fmt.Errorf("%w: %w", ErrSource, err)
	}
	return n, r.err
}
