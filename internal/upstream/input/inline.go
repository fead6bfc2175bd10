package input

import (
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"strings"

	"tollgate/internal/upstream"
	"tollgate/internal/upstream/jobcall"
)

// inline reads a reference into a data URI. It returns the error of upstream.UnreadableFile if the
// reference does not have exactly Size bytes.
func inline(ctx context.Context, r jobcall.Reference) (string, error) {
	body, err := r.Open(ctx)
	if err != nil {
		return "", upstream.UnreadableFile(err)
	}
	defer body.Close()
	var uri strings.Builder
	uri.Grow(len("data:;base64,") + len(r.Type) + base64.StdEncoding.EncodedLen(int(r.Size)))
	uri.WriteString("data:" + r.Type + ";base64,")
	encoder := base64.NewEncoder(base64.StdEncoding, &uri)
	n, err := io.Copy(encoder, io.LimitReader(body, r.Size+1))
	if err == nil && n != r.Size {
		err = fmt.Errorf("read %d bytes, want %d", n, r.Size)
	}
	if err != nil {
		return "", upstream.UnreadableFile(err)
	}
	if err := encoder.Close(); err != nil {
		return "", upstream.UnreadableFile(err)
	}
	return uri.String(), nil
}
