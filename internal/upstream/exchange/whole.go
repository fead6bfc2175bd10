package exchange

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"

	"tollgate/internal/fault"
	"tollgate/internal/upstream"
	"tollgate/internal/upstream/chatcall"
	"tollgate/internal/wire/kind"
	"tollgate/internal/wire/rawjson"
)

// maxWhole is the maximum length of an answer from SendWhole, in bytes.
const maxWhole = 64 << 20

// SendWhole is like Send, and returns the whole answer: a JSON document without an error, and its header. It takes
// twice the document's size from the call's budget, because the translation needs as much memory again. The
// error is always a *upstream.Failure.
func (c *Client) SendWhole(ctx context.Context, p Post) ([]byte, http.Header, error) {
	p.Call.AnyType = false
	answer, err := c.Send(ctx, p)
	if err != nil {
		return nil, nil, err
	}
	defer answer.Body.Close()
	data, err := io.ReadAll(&budgetReader{io.LimitReader(answer.Body, maxWhole+1), p.Call.Reserve})
	switch {
	case errors.Is(err, kind.ErrNoMemory):
		return nil, nil, upstream.OutOfMemory()
	case err != nil:
		return nil, nil, upstream.ConnectionFailure(ctx, err).Redact(c.secrets...)
	case len(data) > maxWhole:
		return nil, nil, upstream.Fail(fault.UpstreamUnavailable, fmt.Errorf("answer of more than %d bytes", maxWhole))
	}
	if f := c.sourceOf(p.Call).Classify(http.StatusOK, answer.ContentType, data, nil); f != nil {
		return nil, nil, f.Redact(c.secrets...)
	}
	if err := rawjson.CheckShape(data); err != nil || !rawjson.IsValid(data) {
		return nil, nil, upstream.Fail(fault.UpstreamUnavailable, errors.New("the answer is not JSON, or too deep"))
	}
	return data, answer.Header, nil
}

// Classify returns the failure in a document or event of a successful answer to a call, or nil.
func (c *Client) Classify(call chatcall.Call, data []byte) *upstream.Failure {
	f := c.sourceOf(call).Classify(http.StatusOK, "application/json", data, nil)
	if f != nil {
		f.Redact(c.secrets...)
	}
	return f
}

// budgetReader reserves twice the size of each read.
type budgetReader struct {
	io.Reader
	reserve func(bytes int64) bool // nil without a budget
}

// Read implements io.Reader.
func (r *budgetReader) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	if r.reserve != nil && n > 0 && !r.reserve(2*int64(n)) {
		return n, kind.ErrNoMemory
	}
	return n, err
}
