package jobs

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
)

// delivery is a request at a receiver.
type delivery struct {
	path, id, at, signature, contentType string
	body                                 string
}

// signedBy reports whether the delivery has a valid signature with a secret (interface.md,
// Signature verification).
func (d delivery) signedBy(t testing.TB, secret string) bool {
	t.Helper()
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
	if err != nil || !strings.HasPrefix(secret, "whsec_") {
		t.Errorf("the secret is no secret: %v", err)
	}
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(d.id + "." + d.at + "." + d.body))
	return slices.Contains(strings.Fields(d.signature), "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)))
}

// receiver receives events and callbacks, and answers 204 or as behave says.
type receiver struct {
	server *httptest.Server

	mu    sync.Mutex
	all   []delivery
	wrong int           // status of the answers; 0 means 204
	gate  chan struct{} // delays the answers if not nil
}

func newReceiver(t testing.TB) *receiver {
	r := &receiver{}
	r.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		body, _ := io.ReadAll(q.Body)
		r.mu.Lock()
		r.all = append(r.all, delivery{q.URL.Path, q.Header.Get("webhook-id"), q.Header.Get("webhook-timestamp"),
			q.Header.Get("webhook-signature"), q.Header.Get("Content-Type"), string(body)})
		wrong, gate := r.wrong, r.gate
		r.mu.Unlock()
		if gate != nil {
			select {
			case <-gate:
			case <-q.Context().Done():
				return
			}
		}
		if wrong == 0 {
			wrong = http.StatusNoContent
		}
		w.WriteHeader(wrong)
	}))
	t.Cleanup(func() {
		r.server.CloseClientConnections()
		r.server.Close()
	})
	return r
}

// address returns the address of deliveries with a tag.
func (r *receiver) address(tag string) string { return r.server.URL + "/" + tag }

// of returns the deliveries with a tag.
func (r *receiver) of(tag string) []delivery {
	r.mu.Lock()
	defer r.mu.Unlock()
	var found []delivery
	for _, d := range r.all {
		if d.path == "/"+tag {
			found = append(found, d)
		}
	}
	return found
}

// got returns the number of deliveries with a tag.
func (r *receiver) got(tag string) int { return len(r.of(tag)) }

// check checks that the deliveries with a tag are equal and have a body.
func (r *receiver) check(t testing.TB, tag, body string) {
	t.Helper()
	all := r.of(tag)
	for _, d := range all {
		if d.body != body || d.id != all[0].id || !strings.HasPrefix(d.id, "evt_") || d.at == "" || !strings.HasPrefix(d.signature, "v1,") ||
			d.contentType != "application/json" {
			t.Errorf("delivery %+v; want %s", d, body)
		}
	}
}

// behave sets the status of further answers, 0 for 204, and their gate.
func (r *receiver) behave(status int, gate chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.wrong, r.gate = status, gate
}
