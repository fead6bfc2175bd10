package input

import (
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"strings"

	"tollgate/internal/fault"
	"tollgate/internal/upstream"
)

// Inline reads a reference into a data URI. A reference of more bytes than it
// says is not read further. The error is Unread's.
func Inline(ctx context.Context, r upstream.Reference) (string, error) {
	body, err := r.Open(ctx)
	if err != nil {
		return "", Unread(err)
	}
	defer body.Close()
	var uri strings.Builder
	uri.Grow(len("data:;base64,") + len(r.Type) + base64.StdEncoding.EncodedLen(int(r.Size)))
	uri.WriteString("data:" + r.Type + ";base64,")
	encoder := base64.NewEncoder(base64.StdEncoding, &uri)
	n, err := io.Copy(encoder, io.LimitReader(body, r.Size+1))
	if err == nil && n != r.Size {
		err = fmt.Errorf("%d bytes came of %d", n, r.Size)
	}
	if err != nil {
		return "", Unread(err)
	}
	if err := encoder.Close(); err != nil {
		return "", Unread(err)
	}
	return uri.String(), nil
}

// Unread is the *upstream.Trouble of a reference that our own store did not
// give: no line is to blame, and it may go better after a while.
func Unread(err error) error {
	f := upstream.Fail(fault.UpstreamUnavailable, fmt.Errorf("reading a reference: %w", err))
	f.Health = upstream.HealthNone
	return upstream.Troubled(f, fault.UpstreamError, upstream.NextLater)
}
