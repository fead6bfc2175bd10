package line_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"tollgate/internal/catalog"
	"tollgate/internal/fault"
	"tollgate/internal/line"
	"tollgate/internal/upstream"
	"tollgate/internal/upstream/chatcall"
	"tollgate/internal/wire"
)

// promptFailures returns the failures that a client's prompt can cause.
func promptFailures() map[string]func() *upstream.Failure {
	page := []byte("<html><body>nginx</body></html>")
	body := func(status int, body string) func() *upstream.Failure {
		return func() *upstream.Failure { return upstream.Classify(status, "application/json", []byte(body), nil) }
	}
	html := func(status int) func() *upstream.Failure {
		return func() *upstream.Failure { return upstream.Classify(status, "text/html", page, nil) }
	}
	return map[string]func() *upstream.Failure{
		"a firewall's 403":       html(403),
		"a 403 without a reason": body(403, `{"error":{"message":"Forbidden"}}`),
		"a page with a 404":      html(404),
		"a 404":                  body(404, `{"detail":"Not Found"}`),
		"a missing model":        body(404, `{"error":{"message":"no","code":"model_not_found"}}`),
		"a 401":                  body(401, `{"error":{"message":"no"}}`),
		"a refused key":          body(401, `{"error":{"message":"no","code":"invalid_api_key"}}`),
		"a quota":                body(429, `{"error":{"message":"no","code":"insufficient_quota"}}`),
		"a 402":                  body(402, `{"error":{"message":"no"}}`),
		"a 410":                  body(410, `{"error":{"message":"no"}}`),
		"a missing form":         body(400, `{"error":{"message":"x","code":"OperationNotSupported"}}`),
		"a page with a 413":      html(413),
		"a 429":                  body(429, `{"error":{"message":"slow"}}`),
		"a page with a 429":      html(429),
		"a 451":                  html(451),
		"an overload":            body(529, `{"error":{"message":"overloaded","type":"overloaded_error"}}`),
		"a crash":                body(500, `{"error":{"message":"x","type":"server_error"}}`),
		"a gateway's 502":        html(502),
		"a 503":                  body(503, `{"error":{"message":"x"}}`),
		"a gateway's 504":        html(504),
		"a 408":                  html(408),
		"an empty answer":        func() *upstream.Failure { return upstream.Fail(fault.EmptyCompletion, errors.New("nothing")) },
		"an error sentence":      func() *upstream.Failure { return upstream.Fail(fault.UpstreamError, errors.New("sorry")) },
		"a broken connection":    func() *upstream.Failure { return upstream.Fail(fault.UpstreamConnectionError, errors.New("reset")) },
		"a timeout":              func() *upstream.Failure { return upstream.Fail(fault.UpstreamTimeout, errors.New("late")) },
		"a 429 with Retry-After": func() *upstream.Failure {
			return upstream.Classify(429, "", []byte(`{"error":{"message":"slow"}}`), http.Header{"Retry-After": {"30"}})
		},
		"a rate limit of the account": func() *upstream.Failure {
			return upstream.Classify(429, "", []byte(`{"error":{"message":"Your account is limited"}}`), http.Header{"Retry-After": {"30"}})
		},
	}
}

// provoke makes 12 failing requests of each account, in turn.
func provoke(l *line.Lines, s *catalog.Snapshot, form wire.Form, failure func() *upstream.Failure, accounts ...string) {
	for range 12 {
		for _, account := range accounts {
			r := accountRequest(s, account, "swift", form)
			_, _ = l.Try(context.Background(), r, func(context.Context, *line.Attempt) error { return failure() })
		}
		synctest.Wait()
	}
}

// TestFailuresOfAccountsDoNotAffectOthers checks that failures of three accounts do not take the line
// out for other accounts, send no message to the operator, and cause few probes.
func TestFailuresOfAccountsDoNotAffectOthers(t *testing.T) {
	t.Parallel()
	for name, failure := range promptFailures() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := twoForms(1, spec("a"))
				var p fakeProvider
				var log bytes.Buffer
				l := line.New(line.Options{Open: p.open, Catalog: catalog.NewStaticWatcher(s), Log: slog.New(slog.NewTextHandler(&log, nil))})
				stop := runUpkeep(t, l)
				defer stop()
				for round := range 5 {
					provoke(l, s, wire.FormChat, failure, "first", "second", "third")
					if _, err := ask(l, accountRequest(s, fmt.Sprint("good", round), "swift", wire.FormChat)); err != nil {
						t.Fatalf("round %d: request of another account failed: %v", round, err)
					}
					time.Sleep(3 * time.Second) // on the test's clock
				}
				if probes := strings.Count(p.takeCalls(), "probe"); probes > 5 {
					t.Errorf("%d probes, want at most 5", probes)
				}
				if strings.Contains(log.String(), "out of service") {
					t.Errorf("the log has an outage that only some accounts had: %s", log.String())
				}
				time.Sleep(time.Minute)
				if got := l.Statuses()[0]; got.State != "in_service" || len(got.ModelsOut)+len(got.FormsOut)+len(got.ModelsCooling) > 0 {
					t.Errorf("status %+v, want no block after a minute", got)
				}
			})
		})
	}
}

// TestProbeConfirmsOutage checks that a probe confirms a real outage at once, so that requests of
// other accounts are refused without a call.
func TestProbeConfirmsOutage(t *testing.T) {
	t.Parallel()
	for name, failure := range promptFailures() {
		switch name {
		case "an empty answer", "an error sentence": // a probe allows too few tokens to decide
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			withUpkeep(t, snapshot(1, spec("a")), func(t *testing.T, p *fakeProvider, l *line.Lines, s *catalog.Snapshot) {
				p.set("a", failure())
				provoke(l, s, wire.FormChat, failure, "first", "second")
				p.takeCalls()
				attempts, err := ask(l, accountRequest(s, "other", "swift", wire.FormChat))
				if got := p.takeCalls(); got != "" || err == nil {
					t.Errorf("another account: calls %q, attempts %+v, error %v; want an error without a call", got, attempts, err)
				}
				if got := l.Statuses()[0]; got.State == "in_service" && len(got.ModelsOut)+len(got.FormsOut)+len(got.ModelsCooling) == 0 {
					t.Errorf("status %+v, want a block", got)
				}
			})
		})
	}
}

// TestRequestsCannotDisableKey checks that a key refused because of a request is used again after a
// successful probe, without a message to the operator.
func TestRequestsCannotDisableKey(t *testing.T) {
	t.Parallel()
	for name, failure := range map[string]*upstream.Failure{
		"invalid_api_key": invalidKey(), "a 401": failure(401, `{}`), "a 402": failure(402, `{}`),
		"a 403":   failure(403, `{"error":{"message":"Forbidden"}}`),
		"a quota": failure(429, `{"error":{"message":"no","code":"insufficient_quota"}}`),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			withTwoKeys(t, func(t *testing.T, p *fakeProvider, l *line.Lines, s *catalog.Snapshot, log *bytes.Buffer) {
				for range 20 {
					for _, account := range []string{"first", "second"} {
						calls := 0
						_, _ = l.Try(t.Context(), accountRequest(s, account, "swift", wire.FormChat), func(ctx context.Context, attempt *line.Attempt) error {
							if calls++; calls == 1 { // the tool's server refuses the first call
								f := *failure
								return &f
							}
							answer, err := attempt.Chat(ctx, chatcall.Call{})
							if err == nil {
								answer.Body.Close()
							}
							return err
						})
						synctest.Wait()
					}
				}
				if probes := strings.Count(p.takeCalls(), "probe"); probes < 1 || probes > 3 {
					t.Errorf("%d probes, want 1 to 3", probes)
				}
				_, err := ask(l, accountRequest(s, "good", "swift", wire.FormChat))
				if err != nil || p.takeCalls() != "new" || keyStates(l) != "in_use ready" {
					t.Errorf("request of another account: error %v, keys %s; want an answer with key new, keys in_use ready", err, keyStates(l))
				}
				if strings.Contains(log.String(), "key is refused") {
					t.Errorf("the log has a refused key: %s", log.String())
				}
			})
		})
	}
}
