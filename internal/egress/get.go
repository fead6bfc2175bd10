package egress

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"syscall"
	"time"

	"tollgate/internal/bounded"
)

// Limits bound one Get. Size and Timeout are required.
type Limits struct {
	Size    int64         // bytes of the body
	Timeout time.Duration // the whole exchange, from the name lookup to the last byte
	// Grow reserves memory as described in bounded.Read. If Grow fails, Get returns the error of
	// Grow. If Grow is nil, memory is not limited.
	Grow func(bytes int64) error
}

// Content is the content of a fetched address.
type Content struct {
	Body []byte
	Type string // the Content-Type header, unverified
}

// Get fetches the document at an address from a user, without a retry or a cache. Only a response
// with status 200 within the size limit is a document; redirects are errors. Errors that the user
// can repair are *AddressErrors. If ctx ends, Get returns the error of ctx. A file from OpenOwnFile
// is read without a connection and has no Type.
func (g *Guard) Get(ctx context.Context, address string, l Limits) (*Content, error) {
	if g.OpenOwnFile != nil {
		if content, isOwn, err := g.getOwnFile(ctx, address, l); isOwn || err != nil {
			return content, err
		}
	}
	u, err := g.Check(address)
	if err != nil {
		return nil, err
	}
	fetchCtx, cancel := context.WithTimeout(ctx, l.Timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(fetchCtx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, addressError("The address cannot be read as a URL. Check how its host, port and escapes are written.")
	}
	req.Header.Set("User-Agent", "tollgate")
	resp, err := g.Client(l.Timeout).Do(req)
	if err != nil {
		return nil, exchangeError(ctx, err)
	}
	defer resp.Body.Close()
	if err := checkResponse(resp, l.Size); err != nil {
		return nil, err
	}
	body, growErr, err := l.read(resp.Body, resp.ContentLength)
	switch {
	case growErr != nil:
		return nil, growErr
	case err != nil:
		return nil, exchangeError(ctx, err)
	case int64(len(body)) > l.Size:
		return nil, tooLargeError(l.Size)
	}
	return &Content{Body: body, Type: resp.Header.Get("Content-Type")}, nil
}

// getOwnFile reads a file served by this gateway. isOwn is false if the address belongs to another
// service.
func (g *Guard) getOwnFile(ctx context.Context, address string, l Limits) (content *Content, isOwn bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, l.Timeout)
	defer cancel()
	file, size, isOwn, err := g.OpenOwnFile(ctx, address)
	switch {
	case !isOwn || err != nil:
		return nil, isOwn, err
	case file == nil:
		return nil, true, addressError("There is no file at this address: it was deleted when its time was over, or the address is incomplete. " +
			"Make a new job, or check the address.")
	}
	defer file.Close()
	if size > l.Size {
		return nil, true, tooLargeError(l.Size)
	}
	body, growErr, err := l.read(file, size)
	if growErr != nil || err != nil {
		return nil, true, cmp.Or(growErr, err)
	}
	return &Content{Body: body}, true, nil
}

// read reads a body with an announced length. It reads up to one byte more than the limit, so that
// the caller can detect a larger body. growErr is the error of Grow.
func (l Limits) read(src io.Reader, length int64) (body []byte, growErr, err error) {
	body, err = bounded.Read(io.LimitReader(src, l.Size+1), length, l.Size, func(n int64) error {
		if l.Grow != nil {
			growErr = l.Grow(n)
		}
		return growErr
	})
	return body, growErr, err
}

// checkResponse returns an error if the header shows that a response is not a document.
func checkResponse(resp *http.Response, size int64) error {
	encoding := resp.Header.Get("Content-Encoding")
	switch {
	case resp.StatusCode >= 300 && resp.StatusCode < 400:
		return addressError("The address answers with a redirect, which is not followed. Give the address that it leads to.")
	case resp.StatusCode != http.StatusOK:
		return addressError(fmt.Sprintf("The address answers with HTTP %d instead of 200. Check that it can be read without signing in.",
			resp.StatusCode))
	case resp.ContentLength > size:
		return tooLargeError(size)
	case encoding != "" && encoding != "identity":
		return addressError("The address answers in a compression that was not asked for. Serve the file as it is.")
	}
	return nil
}

func tooLargeError(size int64) error {
	return addressError(fmt.Sprintf("The file at the address is larger than the %d bytes allowed.", size))
}

// exchangeError returns ctx's error if ctx has ended, and otherwise an error for the user.
func exchangeError(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("fetch a user's address: %w", ctx.Err())
	}
	return addressError("The address could not be fetched: " + Explain(err) + ".")
}

func isCertificateError(err error) bool {
	var verify *tls.CertificateVerificationError
	var host x509.HostnameError
	return errors.As(err, &verify) || errors.As(err, &host)
}

func isTLSError(err error) bool {
	var record tls.RecordHeaderError
	var alert tls.AlertError
	return errors.As(err, &record) || errors.As(err, &alert) || errors.Is(err, http.ErrSchemeMismatch)
}

func isTruncationError(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}
