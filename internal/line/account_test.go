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

// provoked returns the failures that a prompt can cause, by cause.
func provoked() map[string]func() *upstream.Failure {
	page := []byte("<html><body>nginx</body></html>")
	body := func(status int, body string) func() *upstream.Failure {
		return func() *upstream.Failure { return upstream.Classify(status, "application/json", []byte(body), nil) }
	}
	html := func(status int) func() *upstream.Failure {
		return func() *upstream.Failure { return upstream.Classify(status, "text/html", page, nil) }
	}
	return map[string]func() *upstream.Failure{
		"a firewall's 403":             html(403),
		"a 403 without a word":         body(403, `{"error":{"message":"Forbidden"}}`),
		"a page with a 404":            html(404),
		"a 404":                        body(404, `{"detail":"Not Found"}`),
		"a model that is missing":      body(404, `{"error":{"message":"no","code":"model_not_found"}}`),
		"a 401":                        body(401, `{"error":{"message":"no"}}`),
		"a key that is refused":        body(401, `{"error":{"message":"no","code":"invalid_api_key"}}`),
		"a quota":                      body(429, `{"error":{"message":"no","code":"insufficient_quota"}}`),
		"a 402":                        body(402, `{"error":{"message":"no"}}`),
		"a 410":                        body(410, `{"error":{"message":"no"}}`),
		"a form that is missing":       body(400, `{"error":{"message":"x","code":"OperationNotSupported"}}`),
		"a page with a 413":            html(413),
		"a 429":                        body(429, `{"error":{"message":"slow"}}`),
		"a page with a 429":            html(429),
		"a 451":                        html(451),
		"an overload":                  body(529, `{"error":{"message":"overloaded","type":"overloaded_error"}}`),
		"a crash":                      body(500, `{"error":{"message":"x","type":"server_error"}}`),
		"a gateway's 502":              html(502),
		"a 503":                        body(503, `{"error":{"message":"x"}}`),
		"a gateway's 504":              html(504),
		"a 408":                        html(408),
		"an empty answer":              func() *upstream.Failure { return upstream.Fail(fault.EmptyCompletion, errors.New("nothing")) },
		"an error sentence":            func() *upstream.Failure { return upstream.Fail(fault.UpstreamError, errors.New("sorry")) },
		"a connection that breaks":     func() *upstream.Failure { return upstream.Fail(fault.UpstreamConnectionError, errors.New("reset")) },
		"an answer that does not come": func() *upstream.Failure { return upstream.Fail(fault.UpstreamTimeout, errors.New("late")) },
		"a 429 with a time": func() *upstream.Failure {
			return upstream.Classify(429, "", []byte(`{"error":{"message":"slow"}}`), http.Header{"Retry-After": {"30"}})
		},
		"a limit of the account": func() *upstream.Failure {
			return upstream.Classify(429, "", []byte(`{"error":{"message":"Your account is limited"}}`), http.Header{"Retry-After": {"30"}})
		},
	}
}

// provoke lets requests of some accounts fail, one account after the other.
func provoke(l *line.Lines, s *catalog.Snapshot, form wire.Form, failure func() *upstream.Failure, accounts ...string) {
	for range 12 {
		for _, account := range accounts {
			r := accountRequest(s, account, "swift", form)
			_, _ = l.Try(context.Background(), r, func(context.Context, *line.Attempt) error { return failure() })
		}
		synctest.Wait()
	}
}

// TestAccountsTakeNothingFromOthers checks that failures caused by some accounts of one person keep
// the line for other accounts and the operator, and that the number of probes is bounded.
func TestAccountsTakeNothingFromOthers(t *testing.T) {
	t.Parallel()
	for name, failure := range provoked() {
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
						t.Fatalf("round %d: error of another account: %v", round, err)
					}
					time.Sleep(3 * time.Second) // on the test's clock
				}
				if probes := strings.Count(p.takeCalls(), "probe"); probes > 5 {
					t.Errorf("%d probes", probes)
				}
				if strings.Contains(log.String(), "out of service") {
					t.Errorf("the operator got messages: %s", log.String())
				}
				time.Sleep(time.Minute)
				if got := l.Statuses()[0]; got.State != "in_service" || len(got.ModelsOut)+len(got.FormsOut)+len(got.ModelsCooling) > 0 {
					t.Errorf("%+v", got)
				}
			})
		})
	}
}

// TestARealOutageIsNoticed checks that a probe confirms a real outage at once, so that requests of
// other accounts do not fail.
func TestARealOutageIsNoticed(t *testing.T) {
	t.Parallel()
	for name, failure := range provoked() {
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
					t.Errorf("another account: calls %q, attempts %+v, %v; line %+v", got, attempts, err, l.Statuses()[0])
				}
				if got := l.Statuses()[0]; got.State == "in_service" && len(got.ModelsOut)+len(got.FormsOut)+len(got.ModelsCooling) == 0 {
					t.Errorf("%+v", got)
				}
			})
		})
	}
}

// TestAccountsTakeNoKey checks that a key refused because of a request is used again as soon as a
// probe finds the key accepted, without a message to the operator.
func TestAccountsTakeNoKey(t *testing.T) {
	t.Parallel()
	for name, failure := range map[string]*upstream.Failure{
		"named": noKey(), "a 401": failure(401, `{}`), "a 403": failure(403, `{"error":{"message":"Forbidden"}}`), "a 402": failure(402, `{}`),
		"a quota": failure(429, `{"error":{"message":"no","code":"insufficient_quota"}}`),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			withTwoKeys(t, func(t *testing.T, o *fakeProvider, l *line.Lines, s *catalog.Snapshot, log *bytes.Buffer) {
				for range 20 {
					for _, account := range []string{"first", "second"} {
						calls := 0
						_, _ = l.Try(t.Context(), accountRequest(s, account, "swift", wire.FormChat), func(ctx context.Context, on *line.Attempt) error {
							if calls++; calls == 1 { // the tool's server refuses the first call
								f := *failure
								return &f
							}
							answer, err := on.Chat(ctx, chatcall.Call{})
							if err == nil {
								answer.Body.Close()
							}
							return err
						})
						synctest.Wait()
					}
				}
				if probes := strings.Count(o.takeCalls(), "probe"); probes < 1 || probes > 3 {
					t.Errorf("%d probes", probes)
				}
				_, err := ask(l, accountRequest(s, "good", "swift", wire.FormChat))
				if err != nil || o.takeCalls() != "new" || states(l) != "in_use ready" {
					t.Errorf("%v, the keys are %s", err, states(l))
				}
				if strings.Contains(log.String(), "key is refused") {
					t.Errorf("the operator got messages: %s", log.String())
				}
			})
		})
	}
}
