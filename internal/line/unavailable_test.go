package line_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"tollgate/internal/catalog"
	"tollgate/internal/fault"
	"tollgate/internal/line"
	"tollgate/internal/upstream"
	"tollgate/internal/wire"
)

// TestUnavailableError checks that the client's error after an outage has the reason, advice and
// Retry-After. The attempt record and the logged cause contain the line's last error.
func TestUnavailableError(t *testing.T) {
	t.Parallel()
	conn := func(err error) func() *upstream.Failure {
		return func() *upstream.Failure { return upstream.ConnectionFailure(context.Background(), err) }
	}
	untrusted := func(err error) func() *upstream.Failure {
		return conn(fmt.Errorf("dial: %w", &tls.CertificateVerificationError{Err: err}))
	}
	limited := func(seconds string) func() *upstream.Failure {
		return func() *upstream.Failure {
			return upstream.Classify(429, "", []byte(`{"error":{"message":"slow down"}}`), http.Header{"Retry-After": {seconds}})
		}
	}
	for name, tt := range map[string]struct {
		failure func() *upstream.Failure
		state   string
		words   []string
		error   string        // the line's error, for the operator
		after   time.Duration // Retry-After
	}{
		"the provider is down": {conn(errors.New("connection refused")), "circuit_open",
			[]string{"failed repeatedly", "try again in 30 s", "another model"}, "connection refused", 30 * time.Second},
		"an unknown host name": {conn(errors.New("lookup api.test: no such host")), "circuit_open",
			[]string{"failed repeatedly", "try again in 30 s"}, "no such host", 30 * time.Second},
		"a certificate of an unknown authority": {untrusted(x509.UnknownAuthorityError{}), "circuit_open",
			[]string{"certificate is not valid", "tell the operator"}, "failed to verify certificate", 0},
		"an expired certificate": {untrusted(x509.CertificateInvalidError{Reason: x509.Expired}), "circuit_open",
			[]string{"certificate is not valid", "tell the operator"}, "failed to verify certificate", 0},
		"a certificate of another host": {conn(x509.HostnameError{Certificate: &x509.Certificate{}, Host: "api.test"}), "circuit_open",
			[]string{"certificate is not valid", "tell the operator"}, "api.test", 0},
		"a refused credential": {invalidKey, "credentials_out",
			[]string{"refuses this service's access", "tell the operator"}, "invalid_api_key", 0},
		"an exhausted quota": {func() *upstream.Failure {
			return upstream.Classify(429, "", []byte(`{"error":{"message":"pay","code":"insufficient_quota"}}`), nil)
		}, "credentials_out", []string{"refuses this service's access", "another model"}, "insufficient_quota", 0},
		"a missing model": {func() *upstream.Failure {
			return upstream.Classify(404, "", []byte(`{"error":{"message":"gone","code":"model_not_found"}}`), nil)
		}, "model_out", []string{"does not offer this model", "another model"}, "model_not_found", 0},
		"a rate limit":      {limited("7"), "cooling", []string{"limiting requests", "try again in 7 s"}, "slow down", 7 * time.Second},
		"a long rate limit": {limited("600"), "cooling", []string{"limiting requests", "try again in 60 s"}, "slow down", time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := snapshot(1, spec("a"))
				l := line.New(line.Options{Open: (&fakeProvider{}).open, Catalog: catalog.NewStaticWatcher(s)})
				tryOnce := func() error {
					_, err := l.Try(t.Context(), request(s), func(context.Context, *line.Attempt) error { return tt.failure() })
					return err
				}
				firstErr := fault.Of(tryOnce())
				if strings.Contains(name, "certificate") || strings.HasSuffix(tt.state, "_out") {
					if !strings.Contains(firstErr.Message(), tt.words[0]) || !strings.Contains(firstErr.Message(), tt.words[1]) {
						t.Errorf("the first client gets %q, want %q", firstErr.Message(), tt.words)
					}
				}
				if firstErr.RetryAfter != 0 { // the specification has no Retry-After for a provider's rate limit
					t.Errorf("the first client gets Retry-After %s, want none", firstErr.RetryAfter)
				}
				for range 4 {
					if tt.state == "circuit_open" {
						_ = tryOnce()
					}
				}
				for _, form := range []wire.Form{wire.FormChat, wire.FormResponses} {
					r := request(s)
					r.Form = form
					attempts, err := l.Try(t.Context(), r, func(context.Context, *line.Attempt) error { t.Error("a line was called"); return nil })
					e := fault.Of(err)
					status := map[wire.Form]int{wire.FormChat: 502, wire.FormResponses: 503}[form]
					if e.Status() != status || form == wire.FormChat && e.RetryAfter != tt.after || form != wire.FormChat && e.RetryAfter == 0 {
						t.Errorf("%s: status %d, Retry-After %s; want %d, %s", form, e.Status(), e.RetryAfter, status, tt.after)
					}
					for _, want := range append(tt.words, "not charged") {
						if !strings.Contains(e.Message(), want) {
							t.Errorf("%s: %q is missing in %q", form, want, e.Message())
						}
					}
					if strings.Contains(e.Message(), tt.error) || strings.Contains(e.Message(), "refused:") {
						t.Errorf("the client's message %q repeats the line's error", e.Message())
					}
					if cause := e.Cause.Error(); !strings.Contains(cause, tt.error) || !strings.Contains(cause, "a "+tt.state) {
						t.Errorf("logged cause %q, want %q with state %s", cause, tt.error, tt.state)
					}
					if len(attempts) != 1 || attempts[0].Skipped != tt.state || !strings.Contains(attempts[0].Cause, tt.error) {
						t.Errorf("attempts %+v, want one skipped as %s because of %q", attempts, tt.state, tt.error)
					}
				}
			})
		})
	}
}

// TestUnavailableWithoutUsableLine checks the error if the only line lacks its key or the model has
// no line.
func TestUnavailableWithoutUsableLine(t *testing.T) {
	t.Parallel()
	out := spec("a")
	out.APIKey = "${NOT_SET}"
	for name, tt := range map[string]struct {
		lines []catalog.LineSpec
		words string
		cause string
	}{
		"missing key": {[]catalog.LineSpec{out}, "No provider of this model is ready", "NOT_SET"},
		"no line":     {nil, "No provider of this model is ready", "no line of the catalog"},
	} {
		s := snapshot(1, tt.lines...)
		_, err := ask(line.New(line.Options{Open: (&fakeProvider{}).open}), request(s))
		if e := fault.Of(err); !strings.Contains(e.Message(), tt.words) || !strings.Contains(e.Cause.Error(), tt.cause) || e.RetryAfter != 0 {
			t.Errorf("%s: message %q, cause %v; want %q and %q", name, e.Message(), e.Cause, tt.words, tt.cause)
		}
	}
}
