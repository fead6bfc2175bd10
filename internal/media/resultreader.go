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
	from        *bufio.Reader
	limit       int64
	shape       *format.Shape
	contentType string
	size        int64 // number of bytes so far
	err         error // the final error
}

// newResultReader reads the first bytes of r to detect the file's format.
func newResultReader(ctx context.Context, r io.Reader, limit Limit) (*resultReader, error) {
	from := bufio.NewReaderSize(r, 64<<10)
	head, err := from.Peek(format.HeadSize)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%w: %w", ErrSource, err)
	}
	contentType := format.Sniff(head)
	if format.KindOf(contentType) != limit.Kind {
		return nil, foreign(head, contentType, limit.Kind)
	}
	return &resultReader{ctx: ctx, from: from, limit: limit.Size, contentType: contentType, shape: format.NewShape(contentType)}, nil
}

// foreign returns the error for a file of another kind than requested. It names the likely format.
func foreign(head []byte, contentType, kind string) error {
	what := contentType
	if what == "" {
		what = format.LooksLike(head)
	}
	switch {
	case len(head) == 0:
		return fmt.Errorf("%w: it is empty", ErrBroken)
	case what == "":
		what = "nothing known"
	}
	return fmt.Errorf("%w: %s instead of %s", ErrForeign, what, kind)
}

// Read implements io.Reader.
func (in *resultReader) Read(p []byte) (int, error) {
	if in.err != nil {
		return 0, in.err
	}
	if err := context.Cause(in.ctx); err != nil {
		in.err = err
		return 0, err
	}
	n, err := in.from.Read(p)
	in.size += int64(n)
	switch {
	case in.size > in.limit:
		in.err = fmt.Errorf("%w of %d bytes", ErrTooLarge, in.limit)
		return 0, in.err
	case n > 0:
		if in.err = in.shape.Feed(p[:n]); in.err != nil {
			return 0, in.err
		}
	}
	switch {
	case errors.Is(err, io.EOF):
		if in.err = in.shape.Finish(); in.err == nil {
			in.err = io.EOF
		}
	case err != nil:
		in.err = fmt.Errorf("%w: %w", ErrSource, err)
	}
	return n, in.err
}
