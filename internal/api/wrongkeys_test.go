package api_test

import (
	"context"
	"net/http"
	"sync"
	"testing"
	"time"

	"tollgate/internal/account"
	"tollgate/internal/api"
	"tollgate/internal/limit"
	"tollgate/internal/store"
	"tollgate/internal/store/storetest"
)

// TestWrongKeysAreDelayed checks that an address with too many wrong keys waits for the answer to a
// wrong key, and that the answer stays the same. Good keys of the same address and wrong keys of
// other addresses must not wait.
func TestWrongKeysAreDelayed(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		const allowed = 5
		waiting, over := make(chan time.Duration), make(chan struct{})
		d := newServer(t, db, func(o *api.Options) {
			o.WrongKeys = limit.NewThrottle(limit.Allowance{Burst: allowed, Rate: 0.001, Waiting: 1,
				Sleep: func(ctx context.Context, d time.Duration) {
					waiting <- d
					<-over
				}})
		})
		_, secret := d.key(account.KeySettings{})
		const path, text = "/v1/chat/completions", `{"model":"swift-1","messages":[]}`
		wrong := func(from string) response {
			got := d.send(http.MethodPost, path, text, "Authorization", "Bearer wrong", "X-Forwarded-For", from)
			got.refused(t, 401, "invalid_api_key")
			if got.header.Get("WWW-Authenticate") != "Bearer" {
				t.Errorf("a 401 without WWW-Authenticate")
			}
			return got
		}
		for range allowed {
			wrong("192.0.2.1")
		}
		for range 3 * allowed {
			d.send(http.MethodPost, path, text, "X-Forwarded-For", "192.0.2.1").refused(t, 401, "missing_api_key") // is not a guess
		}
		var slow sync.WaitGroup
		slow.Go(func() { wrong("192.0.2.1") })
		if got := <-waiting; got < 100*time.Millisecond || got > time.Second {
			t.Errorf("it waits %s", got)
		}
		for range 3 {
			got := d.send(http.MethodGet, "/v1/models", "", "Authorization", "Bearer "+secret, "X-Forwarded-For", "192.0.2.1")
			if got.status != http.StatusOK {
				t.Errorf("a good key is answered %d", got.status)
			}
		}
		wrong("192.0.2.2")
		if !connectionCloses(t, d, "192.0.2.1") {
			t.Error("one more than may wait keeps its connection")
		}
		if connectionCloses(t, d, "192.0.2.3") {
			t.Error("one within its allowance loses its connection")
		}
		close(over)
		slow.Wait()
	})
}

// connectionCloses reports whether the connection is closed after the answer to a wrong key.
func connectionCloses(t *testing.T, d *server, from string) bool {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, d.server.URL+"/v1/models", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer wrong")
	r.Header.Set("X-Forwarded-For", from)
	answer, err := d.server.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusUnauthorized {
		t.Errorf("a wrong key is answered %d", answer.StatusCode)
	}
	return answer.Close
}
