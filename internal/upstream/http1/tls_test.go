package http1_test

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
)

// TestTLS checks the second request to a host with TLS: it uses an own connection if the host speaks only
// HTTP/1.1, and the standard transport if it speaks HTTP/2. Certificates are checked.
func TestTLS(t *testing.T) {
	t.Parallel()
	for _, http2 := range []bool{false, true} {
		t.Run(fmt.Sprint("HTTP/2 ", http2), func(t *testing.T) {
			t.Parallel()
			var mu sync.Mutex
			var from, protocols []string
			server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				mu.Lock()
				defer mu.Unlock()
				from, protocols = append(from, r.RemoteAddr), append(protocols, r.TLS.NegotiatedProtocol)
				body, _ := io.ReadAll(r.Body) // the client compares the length
				_, _ = w.Write(body)          // and reports an error
			}))
			server.EnableHTTP2 = http2
			server.StartTLS()
			t.Cleanup(server.Close)
			trust := server.Client().Transport.(*http.Transport).TLSClientConfig
			transport := own(t, func(s *http.Transport) { s.TLSClientConfig = trust })
			for i := range 4 {
				if got := call(t, transport, server.URL, 70_000); len(got.body) != 70_000 {
					t.Fatalf("call %d: status %d, %d bytes, failed %t", i, got.status, len(got.body), got.failed)
				}
			}
			mu.Lock()
			defer mu.Unlock()
			want := []string{"http/1.1", "http/1.1", "http/1.1", "http/1.1"} // from the second on, of an own connection
			if http2 {
				want = []string{"h2", "h2", "h2", "h2"}
			}
			if !slices.Equal(protocols, want) {
				t.Errorf("protocols %q, want %q", protocols, want)
			}
			if moved := from[0] != from[1]; moved == http2 || from[1] != from[2] || from[2] != from[3] {
				t.Errorf("connections %q", from)
			}
			distrusting := own(t)
			if got := call(t, distrusting, server.URL, 1); !got.failed {
				t.Errorf("a strange certificate was accepted: %+v", got)
			}
		})
	}
}

// TestUntrusted changes the certificate of a host between two connections.
func TestUntrusted(t *testing.T) {
	t.Parallel()
	server := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	t.Cleanup(server.Close)
	config := server.Client().Transport.(*http.Transport).TLSClientConfig.Clone()
	var checks atomic.Int64
	config.VerifyConnection = func(tls.ConnectionState) error {
		if checks.Add(1) > 1 {
			return errors.New("another certificate")
		}
		return nil
	}
	transport := own(t, func(s *http.Transport) { s.TLSClientConfig = config })
	if got := call(t, transport, server.URL, 1); got.status != 200 {
		t.Fatalf("%+v", got)
	}
	if got := call(t, transport, server.URL, 1); !got.failed {
		t.Errorf("%+v, want a failure", got)
	}
}
