package http1

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// maxJoined is the size up to which a body is copied behind its head and written at once, before the
// response is read. A socket's buffers take as much even if the host reads nothing. A longer body is
// written on its own goroutine, because the host may respond before it reads the whole body.
const maxJoined = 32 << 10

// buffers holds buffers for heads and short bodies.
var buffers = sync.Pool{New: func() any { b := make([]byte, 0, maxJoined/4); return &b }}

// sending is a request that a goroutine is writing. It is nil if the whole request was written at once.
type sending struct {
	done chan struct{}
	err  error // valid after done was closed
}

// isDone reports whether the whole body was written.
func (s *sending) isDone() bool {
	if s == nil {
		return true
	}
	select {
	case <-s.done:
		return s.err == nil
	default:
		return false
	}
}

// orError returns the error of reading the request's body, or err if it was read without an error. After such an error,
// send closes the connection, so err is only a consequence.
func (s *sending) orError(err error) error {
	if s == nil {
		return err
	}
	select {
	case <-s.done:
		if isBodyError(s.err) {
			return s.err
		}
	default:
	}
	return err
}

// bodyError is an error of reading the request's body.
type bodyError struct{ error }

// Unwrap returns the error.
func (e bodyError) Unwrap() error { return e.error }

func isBodyError(err error) bool {
	_, ok := errors.AsType[bodyError](err)
	return ok
}

// piecesBody is a request's body in memory. It is written in one system call if the system can.
type piecesBody interface{ Pieces() [][]byte }

// send writes a request, or starts a goroutine to write a long one. It closes the request's body.
func (c *conn) send(req *http.Request) (*sending, error) {
	p := buffers.Get().(*[]byte)
	text := appendHead((*p)[:0], req)
	if req.ContentLength > maxJoined {
		s := &sending{done: make(chan struct{})}
		go func() {
			defer func() {
				close(s.done)
				if isBodyError(s.err) {
					c.close() // the reader of the response then returns the error
				}
			}()
			s.err = c.sendLong(text, req)
			*p = text
			buffers.Put(p)
		}()
		return s, nil
	}
	defer func() { *p = text; buffers.Put(p) }()
	if req.ContentLength > 0 {
		head := len(text)
		text = slices.Grow(text, int(req.ContentLength))[:head+int(req.ContentLength)]
		_, err := io.ReadFull(req.Body, text[head:])
		if err == nil {
			err = checkEnd(req)
		}
		if err != nil {
			closeBody(req)
			return nil, bodyError{shortBody(req, err)}
		}
	}
	closeBody(req)
	n, err := c.Write(text)
	if err != nil && n == 0 {
		err = fmt.Errorf("%w: %w", errNotSent, err)
	}
	return nil, err
}

// sendLong writes the head and the body of a request, and closes the body.
func (c *conn) sendLong(head []byte, req *http.Request) error {
	defer closeBody(req)
	if b, ok := req.Body.(piecesBody); ok {
		pieces := append(net.Buffers{head}, b.Pieces()...)
		_, err := pieces.WriteTo(c.Conn)
		return err
	}
	if _, err := c.Write(head); err != nil {
		return err
	}
	from := &bodyReader{r: req.Body}
	_, err := io.CopyN(c.Conn, from, req.ContentLength)
	if err == nil && from.err == nil {
		from.err = checkEnd(req)
	}
	if from.err != nil && !errors.Is(from.err, io.EOF) || errors.Is(err, io.EOF) {
		return bodyError{shortBody(req, from.err)}
	}
	return err
}

// bodyReader keeps the error of reading a body.
type bodyReader struct {
	r   io.Reader
	err error
}

// Read implements io.Reader.
func (b *bodyReader) Read(p []byte) (int, error) {
	n, err := b.r.Read(p)
	b.err = err
	return n, err
}

// checkEnd returns an error if the body has more bytes than its length says.
func checkEnd(req *http.Request) error {
	var more [1]byte
	if n, err := req.Body.Read(more[:]); n > 0 || err != nil && !errors.Is(err, io.EOF) {
		return errors.Join(err, errors.New("the body is longer than its Content-Length"))
	}
	return nil
}

// shortBody returns the error for a body that ends early, or err for any other error.
func shortBody(req *http.Request, err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("the body is shorter than its Content-Length of %d", req.ContentLength)
	}
	return err
}

// appendHead appends the head of a request. Its headers are in alphabetical order, as in net/http.
func appendHead(b []byte, req *http.Request) []byte {
	method := req.Method
	if method == "" {
		method = http.MethodGet
	}
	host := req.Host
	if host == "" {
		host = req.URL.Host
	}
	b = append(b, method...)
	b = append(b, ' ')
	b = append(b, req.URL.RequestURI()...)
	b = append(b, " HTTP/1.1\r\nHost: "...)
	b = append(b, host...)
	b = append(b, "\r\n"...)
	var space [16]string
	names := space[:0]
	for name := range req.Header {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		for _, value := range req.Header[name] {
			b = append(b, name...)
			b = append(b, ": "...)
			b = append(b, value...)
			b = append(b, "\r\n"...)
		}
	}
	if req.ContentLength > 0 || method == http.MethodPost || method == http.MethodPut || method == http.MethodPatch {
		b = append(b, "Content-Length: "...)
		b = strconv.AppendInt(b, req.ContentLength, 10)
		b = append(b, "\r\n"...)
	}
	return append(b, "\r\n"...)
}

// canSend reports whether appendHead can write the head of a request. The standard transport sends, or
// refuses, a request with headers about the connection or with invalid characters.
func canSend(req *http.Request) bool {
	if uri := req.URL.RequestURI(); !isToken(req.Method) && req.Method != "" || !isText(uri) || strings.Contains(uri, " ") {
		return false
	}
	if req.Method == http.MethodConnect || len(req.Trailer) > 0 || len(req.TransferEncoding) > 0 {
		return false
	}
	for name, values := range req.Header {
		switch name {
		case "Host", "Content-Length", "Transfer-Encoding", "Trailer", "Connection", "Upgrade", "Expect", "Te":
			return false
		}
		if !isToken(name) || slices.ContainsFunc(values, func(v string) bool { return !isText(v) }) {
			return false
		}
	}
	_, hasAgent := req.Header["User-Agent"]
	return hasAgent
}

// isToken reports whether s is a token of RFC 9110.
func isToken(s string) bool {
	for i := range len(s) {
		c := s[i]
		if c <= ' ' || c >= 0x7f || strings.IndexByte("\"(),/:;<=>?@[\\]{}", c) >= 0 {
			return false
		}
	}
	return s != ""
}

// isText reports whether s may be a header's value: without control characters, except tabs.
func isText(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' && c != '\t' || c == 0x7f {
			return false
		}
	}
	return true
}
