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

// TestWrongKeysAreDelayed checks that responses to wrong keys are delayed for an address that has
// sent too many, but otherwise unchanged. Good keys from the same address and wrong keys from other
// addresses must not wait.
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
			t.Errorf("the address waits %s", got)
		}
		for range 3 {
			got := d.send(http.MethodGet, "/v1/models", "", "Authorization", "Bearer "+secret, "X-Forwarded-For", "192.0.2.1")
			if got.status != http.StatusOK {
				t.Errorf("a good key gets status %d", got.status)
			}
		}
		wrong("192.0.2.2")
		if !connectionCloses(t, d, "192.0.2.1") {
			t.Error("the connection stays open beyond the limit of waiting requests")
		}
		if connectionCloses(t, d, "192.0.2.3") {
			t.Error("the connection is closed within the allowance")
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
		t.Errorf("a wrong key gets status %d", answer.StatusCode)
	}
	return answer.Close
}
