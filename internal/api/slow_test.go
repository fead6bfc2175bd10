package api_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"tollgate/internal/account"
)

// brokenBody is a body that stops halfway and cancels the request's context, like a lost connection.
type brokenBody struct {
	err   error
	leave context.CancelFunc
}

func (b brokenBody) Read([]byte) (int, error) {
	b.leave()
	return 0, b.err
}

// TestBrokenBodiesAreClientErrors checks that a slow or truncated body gets 400, even if the
// request's context is done and the key cannot be confirmed.
func TestBrokenBodiesAreClientErrors(t *testing.T) {
	t.Parallel()
	d := newServer(t, onSQLite(t), nil)
	_, secret := d.key(account.KeySettings{})
	for _, err := range []error{os.ErrDeadlineExceeded, io.ErrUnexpectedEOF, errors.New("reset")} {
		for _, path := range []string{"/v1/chat/completions", "/v1/responses", "/native/v1/messages", "/native/v1/messages/count_tokens",
			"/v1/images/generations", "/v1/images/edits", "/v1/videos/generations"} {
			ctx, leave := context.WithTimeout(t.Context(), time.Minute)
			r := httptest.NewRequestWithContext(ctx, http.MethodPost, path, brokenBody{err, leave})
			r.Header.Set("Authorization", "Bearer "+secret)
			w := httptest.NewRecorder()
			d.server.Config.Handler.ServeHTTP(w, r)
			if w.Code != http.StatusBadRequest || !strings.Contains(w.Body.String(), "breaks off") {
				t.Errorf("%s, %v: %d %s", path, err, w.Code, w.Body)
			}
		}
	}
}
