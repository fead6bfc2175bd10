package exchange

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"net/textproto"
	"slices"
	"strings"
	"sync"

	"tollgate/internal/upstream/jobcall"
)

// Multipart is a multipart/form-data body. Its files are read while the form is sent, so no whole
// file is in memory. Its length is known in advance. Fields and files are sent in the order of the
// Field and File calls. One goroutine builds the form; sending only reads the form.
type Multipart struct {
	framing  bytes.Buffer // text since the last file
	writer   *multipart.Writer
	segments []segment
	length   int64
	ended    bool
	omit     []string // fields to omit
}

// segment is a part of the body: text, or size bytes from the reader that open returns.
type segment struct {
	text string
	open func(ctx context.Context) (io.ReadCloser, error)
	size int64
}

// NewForm returns an empty form.
func NewForm() *Multipart {
	f := &Multipart{}
	f.writer = multipart.NewWriter(&f.framing)
	return f
}

// NewForm returns an empty form for a submission. The form omits the fields that the line omits.
func (c *Client) NewForm() *Multipart {
	f := NewForm()
	f.omit = c.omit
	return f
}

// Field adds a field with a value. Omitting a field also omits its list or object members
// (`name[]`).
func (f *Multipart) Field(name, value string) {
	top, _, _ := strings.Cut(name, "[")
	if slices.ContainsFunc(f.omit, func(omitted string) bool { return strings.EqualFold(omitted, top) }) {
		return
	}
	_ = f.writer.WriteField(name, value) // a bytes.Buffer never fails
}

// File adds a file with the bytes of a reference and a file name.
func (f *Multipart) File(name, filename string, r jobcall.Reference) {
	head := textproto.MIMEHeader{}
	head.Set("Content-Disposition", multipart.FileContentDisposition(name, filename))
	head.Set("Content-Type", r.Type)
	_, _ = f.writer.CreatePart(head) // a bytes.Buffer never fails
	f.flush()
	f.segments = append(f.segments, segment{open: r.Open, size: r.Size})
	f.length += r.Size
}

// flush adds the framing so far as a segment.
func (f *Multipart) flush() {
	f.length += int64(f.framing.Len())
	f.segments = append(f.segments, segment{text: f.framing.String()})
	f.framing.Reset()
}

// attach sets the form as the body of a request.
func (f *Multipart) attach(ctx context.Context, req *http.Request) {
	if !f.ended {
		f.ended = true
		_ = f.writer.Close() // a bytes.Buffer never fails
		f.flush()
	}
	req.Header["Content-Type"] = []string{f.writer.FormDataContentType()}
	req.ContentLength = f.length
	req.Body = &formBody{ctx: ctx, rest: f.segments}
	req.GetBody = func() (io.ReadCloser, error) { return &formBody{ctx: ctx, rest: f.segments}, nil }
}

// unread is an error of the gateway's store while a form was being sent. Then the provider has not
// received the whole request.
type unread struct{ err error }

func (u unread) Error() string { return u.err.Error() }

func (u unread) Unwrap() error { return u.err }

// formBody reads a form once. The transport may close it during a Read.
type formBody struct {
	ctx context.Context

	mu     sync.Mutex
	rest   []segment
	from   io.ReadCloser // reader of the first segment of rest; nil before the first read
	left   int64         // bytes left in from
	closed bool
}

// Read implements io.Reader.
func (b *formBody) Read(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for {
		switch {
		case b.closed:
			return 0, errors.New("the form was closed")
		case len(b.rest) == 0:
			return 0, io.EOF
		case b.from == nil:
			if err := b.begin(b.rest[0]); err != nil {
				return 0, unread{err}
			}
		case b.left == 0:
			_ = b.from.Close() // the segment was read completely
			b.from, b.rest = nil, b.rest[1:]
		default:
			n, err := b.from.Read(p[:min(int64(len(p)), b.left)])
			b.left -= int64(n)
			if errors.Is(err, io.EOF) && b.left > 0 {
				err = fmt.Errorf("a file ended %d bytes early", b.left)
			}
			if err != nil && !errors.Is(err, io.EOF) {
				return n, unread{err}
			}
			if n > 0 || len(p) == 0 {
				return n, nil
			}
		}
	}
}

// begin opens a segment.
func (b *formBody) begin(s segment) error {
	if s.open == nil {
		b.from, b.left = io.NopCloser(bytes.NewReader([]byte(s.text))), int64(len(s.text))
		return nil
	}
	from, err := s.open(b.ctx)
	if err != nil {
		return err
	}
	b.from, b.left = from, s.size
	return nil
}

// Close implements io.Closer.
func (b *formBody) Close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	if b.from != nil {
		_ = b.from.Close() // the rest of the segment is not needed
		b.from = nil
	}
	return nil
}
