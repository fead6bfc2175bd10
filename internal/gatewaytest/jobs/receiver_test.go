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

// delivery is a request that the receiver got.
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
		t.Errorf("the secret has the wrong format: %v", err)
	}
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(d.id + "." + d.at + "." + d.body))
	return slices.Contains(strings.Fields(d.signature), "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)))
}

// receiver receives events and callbacks. It answers with 204, unless behave sets another answer.
type receiver struct {
	server *httptest.Server

	mu     sync.Mutex
	all    []delivery
	status int           // status of the answers; 0 means 204
	gate   chan struct{} // if not nil, answers wait until gate is closed
}

func newReceiver(t testing.TB) *receiver {
	r := &receiver{}
	r.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		body, _ := io.ReadAll(q.Body)
		r.mu.Lock()
		r.all = append(r.all, delivery{q.URL.Path, q.Header.Get("webhook-id"), q.Header.Get("webhook-timestamp"),
			q.Header.Get("webhook-signature"), q.Header.Get("Content-Type"), string(body)})
		status, gate := r.status, r.gate
		r.mu.Unlock()
		if gate != nil {
			select {
			case <-gate:
			case <-q.Context().Done():
				return
			}
		}
		if status == 0 {
			status = http.StatusNoContent
		}
		w.WriteHeader(status)
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
	var all []delivery
	for _, d := range r.all {
		if d.path == "/"+tag {
			all = append(all, d)
		}
	}
	return all
}

// got returns the number of deliveries with a tag.
func (r *receiver) got(tag string) int { return len(r.of(tag)) }

// check checks that all deliveries with a tag have the body and the same event id.
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

// behave sets the status and the gate of further answers. The status 0 means 204.
func (r *receiver) behave(status int, gate chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.status, r.gate = status, gate
}
