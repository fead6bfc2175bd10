package exchange

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"mime/multipart"
	"net/http"
	"net/textproto"
	"net/url"
	"slices"
	"strings"
	"sync"

	"tollgate/internal/upstream/chatcall"
	"tollgate/internal/upstream/jobcall"
	"tollgate/internal/wire/kind"
	"tollgate/internal/wire/rawjson"
)

// Multipart is a multipart/form-data body with a length known in advance. Files are read while the
// form is sent, so that no whole file is in memory. Fields and files are sent in the order of the
// Field and File calls. One goroutine builds the form; sending only reads the form.
type Multipart struct {
	framing  bytes.Buffer // text since the last file
	writer   *multipart.Writer
	segments []segment
	length   int64
	closed   bool
	omit     []string // fields to omit
}

// segment is a part of the body: text, or size bytes from open's reader.
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

// formOf returns a form with the members of a JSON object as text fields, then the file. Each
// element of a list becomes a field with the list's name.
func formOf(object []byte, file *kind.Upload) *Multipart {
	f := NewForm()
	for name, value := range fieldsOf(object) {
		f.Field(name, value)
	}
	f.File(kind.FileField, file.Name, jobcall.Reference{Type: file.ContentType, Size: file.Size,
		Open: func(context.Context) (io.ReadCloser, error) {
			return io.NopCloser(io.NewSectionReader(file.Bytes, 0, file.Size)), nil
		}})
	return f
}

// fieldsOf yields the members of a JSON object as text fields. Each element of a list becomes a field with
// the list's name.
func fieldsOf(object []byte) iter.Seq2[string, string] {
	return func(yield func(name, value string) bool) {
		for name, value := range rawjson.Members(object) {
			if len(value) == 0 || value[0] != '[' {
				if !yield(string(name), textOf(value)) {
					return
				}
				continue
			}
			for _, element := range rawjson.Elements(value) {
				if !yield(string(name), textOf(element)) {
					return
				}
			}
		}
	}
}

// attachFile sets the file of a call as the body of a request, and the fields as parameters of its address.
// The content type is the client's only for sound and video. A provider might take a file of another type,
// such as JSON, for an address to fetch.
func attachFile(req *http.Request, c chatcall.Call) {
	query := url.Values{}
	for name, value := range fieldsOf(c.Body.Bytes()) {
		query.Add(name, value)
	}
	address := *req.URL
	address.RawQuery = query.Encode()
	contentType := c.File.ContentType
	if !strings.HasPrefix(contentType, "audio/") && !strings.HasPrefix(contentType, "video/") {
		contentType = "application/octet-stream"
	}
	req.URL, req.ContentLength = &address, c.File.Size
	req.Header["Content-Type"] = []string{contentType}
	req.GetBody = func() (io.ReadCloser, error) {
		return io.NopCloser(io.NewSectionReader(c.File.Bytes, 0, c.File.Size)), nil
	}
	req.Body, _ = req.GetBody() // never fails
}

// textOf returns a JSON value as the text of a field. A string loses its quotes.
func textOf(value []byte) string {
	if rawjson.IsText(value) {
		return rawjson.Unquote(value)
	}
	return string(value)
}

// flush adds the text since the last file as a segment.
func (f *Multipart) flush() {
	f.length += int64(f.framing.Len())
	f.segments = append(f.segments, segment{text: f.framing.String()})
	f.framing.Reset()
}

// attach sets the form as the body of a request.
func (f *Multipart) attach(ctx context.Context, req *http.Request) {
	if !f.closed {
		f.closed = true
		_ = f.writer.Close() // a bytes.Buffer never fails
		f.flush()
	}
	req.Header["Content-Type"] = []string{f.writer.FormDataContentType()}
	req.ContentLength = f.length
	req.Body = &formBody{ctx: ctx, rest: f.segments}
	req.GetBody = func() (io.ReadCloser, error) { return &formBody{ctx: ctx, rest: f.segments}, nil }
}

// fileError is an error of the gateway's store while a form was being sent. The provider has not
// received the whole request.
type fileError struct{ err error }

func (u fileError) Error() string { return u.err.Error() }

func (u fileError) Unwrap() error { return u.err }

// formBody reads a form once. The transport may call Close during a Read.
type formBody struct {
	ctx context.Context

	mu        sync.Mutex
	rest      []segment
	reader    io.ReadCloser // reader of the first segment of rest; nil before the first read
	remaining int64         // bytes left in reader
	closed    bool
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
		case b.reader == nil:
			if err := b.open(b.rest[0]); err != nil {
				return 0, fileError{err}
			}
		case b.remaining == 0:
			_ = b.reader.Close() // the segment was read completely
			b.reader, b.rest = nil, b.rest[1:]
		default:
			n, err := b.reader.Read(p[:min(int64(len(p)), b.remaining)])
			b.remaining -= int64(n)
			if errors.Is(err, io.EOF) && b.remaining > 0 {
				err = fmt.Errorf("a file ended %d bytes early", b.remaining)
			}
			if err != nil && !errors.Is(err, io.EOF) {
				return n, fileError{err}
			}
			if n > 0 || len(p) == 0 {
				return n, nil
			}
		}
	}
}

// open opens a segment for Read.
func (b *formBody) open(s segment) error {
	if s.open == nil {
		b.reader, b.remaining = io.NopCloser(bytes.NewReader([]byte(s.text))), int64(len(s.text))
		return nil
	}
	reader, err := s.open(b.ctx)
	if err != nil {
		return err
	}
	b.reader, b.remaining = reader, s.size
	return nil
}

// Close implements io.Closer.
func (b *formBody) Close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	if b.reader != nil {
		_ = b.reader.Close() // the rest of the segment is not needed
		b.reader = nil
	}
	return nil
}
