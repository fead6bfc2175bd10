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

// Limits bound one Get. Size and Within are required.
type Limits struct {
	Size   int64         // bytes of the body
	Within time.Duration // the whole exchange, from the name lookup to the last byte
	// Grow reserves memory as described in bounded.Read; Get returns its error. If nil, memory is
	// not limited.
	Grow func(bytes int64) error
}

// Content is the content of a fetched address.
type Content struct {
	Body []byte
	Type string // the Content-Type header, unverified
}

// Get fetches the document at an address from a user, without a retry or a cache. Only a response
// with status 200 within the size limit is a document; redirects are errors. Errors that the user
// can repair are *AddressErrors; if ctx ends, Get returns the error of ctx. A file opened by Own is
// read without a connection and has no Type.
func (g *Guard) Get(ctx context.Context, address string, l Limits) (*Content, error) {
	if g.Own != nil {
		if f, ours, err := g.getOwn(ctx, address, l); ours || err != nil {
			return f, err
		}
	}
	u, err := g.Check(address)
	if err != nil {
		return nil, err
	}
	within, cancel := context.WithTimeout(ctx, l.Within)
	defer cancel()
	req, err := http.NewRequestWithContext(within, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, refuse("The address cannot be read as a URL. Check how its host, port and escapes are written.")
	}
	req.Header.Set("User-Agent", "tollgate")
	resp, err := g.Client(l.Within).Do(req)
	if err != nil {
		return nil, exchangeError(ctx, err)
	}
	defer resp.Body.Close()
	if err := judge(resp, l.Size); err != nil {
		return nil, err
	}
	body, full, err := l.read(resp.Body, resp.ContentLength)
	switch {
	case full != nil:
		return nil, full
	case err != nil:
		return nil, exchangeError(ctx, err)
	case int64(len(body)) > l.Size:
		return nil, tooLarge(l.Size)
	}
	return &Content{Body: body, Type: resp.Header.Get("Content-Type")}, nil
}

// getOwn reads a file served by this service. It returns false if the address belongs to another
// service.
func (g *Guard) getOwn(ctx context.Context, address string, l Limits) (f *Content, ours bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, l.Within)
	defer cancel()
	from, size, ours, err := g.Own(ctx, address)
	switch {
	case !ours || err != nil:
		return nil, ours, err
	case from == nil:
		return nil, true, refuse("There is no file at this address: it was deleted when its time was over, or the address is incomplete. " +
			"Make a new job, or check the address.")
	}
	defer from.Close()
	if size > l.Size {
		return nil, true, tooLarge(l.Size)
	}
	body, full, err := l.read(from, size)
	if full != nil || err != nil {
		return nil, true, cmp.Or(full, err)
	}
	return &Content{Body: body}, true, nil
}

// read reads a body of an announced length, up to one byte above the limit. full is the error of
// Grow.
func (l Limits) read(from io.Reader, length int64) (body []byte, full, err error) {
	body, err = bounded.Read(io.LimitReader(from, l.Size+1), length, l.Size, func(n int64) error {
		if l.Grow != nil {
			full = l.Grow(n)
		}
		return full
	})
	return body, full, err
}

// judge returns an error for a response that is not a document, by its header.
func judge(resp *http.Response, size int64) error {
	coding := resp.Header.Get("Content-Encoding")
	switch {
	case resp.StatusCode >= 300 && resp.StatusCode < 400:
		return refuse("The address answers with a redirect, which is not followed. Give the address that it leads to.")
	case resp.StatusCode != http.StatusOK:
		return refuse(fmt.Sprintf("The address answers with HTTP %d instead of 200. Check that it can be read without signing in.",
			resp.StatusCode))
	case resp.ContentLength > size:
		return tooLarge(size)
	case coding != "" && coding != "identity":
		return refuse("The address answers in a compression that was not asked for. Serve the file as it is.")
	}
	return nil
}

func tooLarge(size int64) error {
	return refuse(fmt.Sprintf("What the address holds is larger than the %d bytes allowed.", size))
}

// exchangeError returns the error of a failed exchange: ctx's error if the caller gave up, else an
// error for the user.
func exchangeError(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("fetch a user's address: %w", ctx.Err())
	}
	return refuse("The address could not be fetched: " + Explain(err) + ".")
}

func isCertificate(err error) bool {
	var verify *tls.CertificateVerificationError
	var host x509.HostnameError
	return errors.As(err, &verify) || errors.As(err, &host)
}

func isTLS(err error) bool {
	var record tls.RecordHeaderError
	var alert tls.AlertError
	return errors.As(err, &record) || errors.As(err, &alert) || errors.Is(err, http.ErrSchemeMismatch)
}

func isCut(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}
