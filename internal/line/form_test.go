package line_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"tollgate/internal/catalog"
	"tollgate/internal/fault"
	"tollgate/internal/line"
	"tollgate/internal/upstream"
	"tollgate/internal/upstream/chatcall"
	"tollgate/internal/wire"
	"tollgate/internal/wire/rawjson"
)

// formProvider is a provider that answers with a function and records its calls.
type formProvider struct {
	mu     sync.Mutex
	answer func(line, model string, c chatcall.Call) *upstream.Failure // if nil, the provider answers
	calls  []string                                                    // "line model form", followed by "probe" and "tools"
}

func (v *formProvider) open(t upstream.Target) (chatcall.Adapter, error) {
	return formAdapter{v, t.Line}, nil
}

// set replaces the answer function.
func (v *formProvider) set(answer func(line, model string, c chatcall.Call) *upstream.Failure) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.answer = answer
}

// takeCalls returns the calls since the previous call of takeCalls.
func (v *formProvider) takeCalls() string {
	v.mu.Lock()
	defer v.mu.Unlock()
	calls := strings.Join(v.calls, ", ")
	v.calls = nil
	return calls
}

type formAdapter struct {
	provider *formProvider
	line     string
}

func (b formAdapter) Chat(_ context.Context, c chatcall.Call) (*chatcall.Response, error) {
	b.provider.mu.Lock()
	defer b.provider.mu.Unlock()
	call := fmt.Sprintf("%s %s %s", b.line, c.Model, c.Form)
	if strings.Contains(string(c.Body.Bytes()), "ping") {
		call += " probe"
	}
	if strings.Contains(string(c.Body.Bytes()), `"tools"`) {
		call += " tools"
	}
	b.provider.calls = append(b.provider.calls, call)
	if f := b.provider.answer(b.line, c.Model, c); f != nil {
		return nil, f
	}
	return textAnswer(), nil
}

// twoForms returns a catalog of lines with the models swift and deep. Lines without forms get chat
// and responses.
func twoForms(revision int64, lines ...catalog.LineSpec) *catalog.Snapshot {
	for i := range lines {
		lines[i].Provider, lines[i].Priority = "two", i
		lines[i].Models = map[string]string{"swift": "swift", "deep": "deep"}
		if lines[i].Forms == nil {
			lines[i].Forms = []wire.Form{wire.FormChat, wire.FormResponses}
		}
	}
	doc := &catalog.Document{Lines: lines, Models: []catalog.Model{
		{ID: "swift", Kind: catalog.KindChat}, {ID: "deep", Kind: catalog.KindChat}}}
	return catalog.NewSnapshot(revision, doc,
		map[string]catalog.Provider{"two": {Kinds: []catalog.Kind{catalog.KindChat},
			Forms: []wire.Form{wire.FormChat, wire.FormResponses, wire.FormMessages}}},
		func(string) (string, bool) { return "", false })
}

// accountRequest returns a request of an account for a model in a form.
func accountRequest(s *catalog.Snapshot, account, model string, form wire.Form) line.RoutingRequest {
	m, _ := s.Model(model)
	return line.RoutingRequest{Snapshot: s, Model: m, Form: form, Account: account}
}

// send runs Try once. The attempts call the adapters.
func send(l *line.Lines, r line.RoutingRequest) error {
	_, err := l.Try(context.Background(), r, func(ctx context.Context, attempt *line.Attempt) error {
		body := "{}"
		if r.Tools {
			body = `{"tools":[]}`
		}
		answer, err := attempt.Chat(ctx, chatcall.Call{Form: attempt.Form, Model: attempt.ProviderModel, Body: rawjson.Pieces{[]byte(body)}})
		if err != nil {
			return err
		}
		return answer.Body.Close()
	})
	return err
}

// sendTimes runs send n times.
func sendTimes(n int, l *line.Lines, r line.RoutingRequest) {
	for range n {
		_ = send(l, r)
	}
}

// withLines runs a test with the lines of a catalog on a synctest clock.
func withLines(t *testing.T, test func(t *testing.T, v *formProvider, l *line.Lines, s *catalog.Snapshot), lines ...catalog.LineSpec) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := twoForms(1, lines...)
		v := &formProvider{answer: func(string, string, chatcall.Call) *upstream.Failure { return nil }}
		l := line.New(line.Options{Open: v.open, Catalog: catalog.NewStaticWatcher(s)})
		stop := runUpkeep(t, l)
		test(t, v, l, s)
		stop()
	})
}

func failure(status int, body string) *upstream.Failure {
	return upstream.Classify(status, "application/json", []byte(body), nil)
}

// withoutForm returns the answer function of a provider without an endpoint for a form.
func withoutForm(form wire.Form, status int, body string) func(string, string, chatcall.Call) *upstream.Failure {
	return func(_, _ string, c chatcall.Call) *upstream.Failure {
		if c.Form == form {
			return failure(status, body)
		}
		return nil
	}
}

// TestMissingFormUsesAnotherForm checks that a missing form costs only the first request a call, that
// later requests use another form, and that probes find out when the form is available.
func TestMissingFormUsesAnotherForm(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		status    int
		body      string
		namesForm bool // whether the failure names the form; otherwise a probe decides
	}{
		"no such endpoint": {404, `{"detail":"Not Found"}`, false},
		"a page":           {404, `<html>nginx</html>`, false},
		"named in the message": {404, `{"error":{"message":"The requested model 'swift' is not supported with the Responses API.",` +
			`"code":"model_not_found"}}`, true},
		"named by code":        {400, `{"error":{"message":"x","code":"OperationNotSupported"}}`, true},
		"another code":         {400, `{"error":{"message":"x","code":"unsupported_api_for_model"}}`, true},
		"a 410 without a body": {410, ``, false},
		"an invalid URL":       {404, `{"error":{"message":"Invalid URL (POST /v1/responses)","type":"invalid_request_error"}}`, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			withLines(t, func(t *testing.T, v *formProvider, l *line.Lines, s *catalog.Snapshot) {
				v.set(withoutForm(wire.FormResponses, tt.status, tt.body))
				r := accountRequest(s, "x", "swift", wire.FormResponses)
				firstCalls := "a swift responses,"
				if tt.namesForm {
					firstCalls += " a swift chat,"
				}
				err := send(l, r)
				// Probes may happen in between.
				calls := strings.NewReplacer(" a swift responses probe,", "", " a swift chat probe,", "").Replace(v.takeCalls() + ",")
				if (err == nil) != tt.namesForm || !strings.HasPrefix(calls, firstCalls) {
					t.Fatalf("first request: error %v, calls %q; want calls from %q on", err, calls, firstCalls)
				}
				synctest.Wait()
				v.takeCalls()
				for _, account := range []string{"x", "y"} { // account y has not used the form before
					r.Account = account
					if err := send(l, r); err != nil {
						t.Fatal(err)
					}
				}
				if got := v.takeCalls(); !strings.HasSuffix(got, "a swift chat") || !strings.HasPrefix(got, "a swift chat, ") {
					t.Errorf("calls of later requests: %q, want a swift chat each time", got)
				}
				st := l.Statuses()[0]
				if st.State != "in_service" || st.ModelsOut != nil || len(st.FormsOut) != 1 || st.FormsOut[0].Form != wire.FormResponses ||
					st.FormsOut[0].Model != "swift" {
					t.Errorf("status %+v, want the model swift out in form responses only", st)
				}
				time.Sleep(5*time.Minute + 2*time.Second) // on the test's clock, like all sleeps here
				checkCalls(t, v, "a swift responses probe")
				v.set(func(string, string, chatcall.Call) *upstream.Failure { return nil })
				time.Sleep(10*time.Minute + 2*time.Second)
				v.takeCalls()
				if err := send(l, r); err != nil || v.takeCalls() != "a swift responses" || l.Statuses()[0].FormsOut != nil {
					t.Errorf("after the form is available: error %v, status %+v; want a call in this form", err, l.Statuses()[0])
				}
			}, spec("a"))
		})
	}
}

// TestNoOtherForm checks that the next line gets a request if the line lacks the only form, and that
// the client gets the rejection of its tools if there is no other line.
func TestNoOtherForm(t *testing.T) {
	t.Parallel()
	withLines(t, func(t *testing.T, v *formProvider, l *line.Lines, s *catalog.Snapshot) {
		onlyResponses := `{"error":{"message":"This model is only supported in v1/responses and not in v1/chat/completions.","param":"model"}}`
		v.set(func(line, _ string, c chatcall.Call) *upstream.Failure {
			if line == "a" && c.Form == wire.FormChat {
				return failure(404, onlyResponses)
			}
			return nil
		})
		r := accountRequest(s, "x", "swift", wire.FormChat)
		if err := send(l, r); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		v.takeCalls()
		if err := send(l, r); err != nil || v.takeCalls() != "b swift chat" {
			t.Errorf("second request: error %v, want an answer from line b", err)
		}
		if st := l.Statuses()[0]; len(st.ModelsOut) != 1 || st.FormsOut != nil {
			t.Errorf("status %+v, want the model out", st)
		}
	}, chatOnlySpec("a"), chatOnlySpec("b"))
	withLines(t, func(t *testing.T, v *formProvider, l *line.Lines, s *catalog.Snapshot) {
		v.set(withoutForm(wire.FormChat, 400, toolsElsewhere))
		r := accountRequest(s, "x", "swift", wire.FormChat)
		r.Tools = true
		for range 3 {
			if err := send(l, r); fault.Of(err).Status() != 400 || !strings.Contains(fault.Of(err).Message(), "Function tools") {
				t.Errorf("error %v, want the rejection of the tools with status 400", err)
			}
		}
		if st := l.Statuses()[0]; st.State != "in_service" || st.ModelsOut != nil || st.FormsOut != nil || st.Attempts != 0 {
			t.Errorf("status %+v, want no block and no attempt", st)
		}
	}, chatOnlySpec("a"))
}

// TestRoutingFieldsKeepTheirForm checks that requests with routing fields are not translated.
func TestRoutingFieldsKeepTheirForm(t *testing.T) {
	t.Parallel()
	ln := spec("a")
	ln.Pass = []string{"plugins"}
	withLines(t, func(t *testing.T, v *formProvider, l *line.Lines, s *catalog.Snapshot) {
		v.set(withoutForm(wire.FormResponses, 404, `{"detail":"Not Found"}`))
		r := accountRequest(s, "x", "swift", wire.FormResponses)
		r.Routing = []string{"plugins"}
		for range 2 {
			if err := send(l, r); err == nil {
				t.Error("the request succeeded")
			}
			synctest.Wait()
		}
		for call := range strings.SplitSeq(v.takeCalls(), ", ") {
			if !strings.HasSuffix(call, "probe") && call != "a swift responses" {
				t.Errorf("call %q, want only the client's form", call)
			}
		}
	}, ln)
}

const toolsElsewhere = `{"error":{"message":"Function tools with reasoning_effort are not supported for swift in /v1/chat/completions. ` +
	`Please use /v1/responses instead.","param":"reasoning_effort"}}`

// chatOnlySpec returns a line with chat completions only.
func chatOnlySpec(id string) catalog.LineSpec {
	ln := spec(id)
	ln.Forms = []wire.Form{wire.FormChat}
	return ln
}

// TestRateLimitPausesOneModel checks that a rate limit of one model keeps the line's other models in
// service.
func TestRateLimitPausesOneModel(t *testing.T) {
	t.Parallel()
	withLines(t, func(t *testing.T, v *formProvider, l *line.Lines, s *catalog.Snapshot) {
		v.set(func(line, model string, _ chatcall.Call) *upstream.Failure {
			if line == "a" && model == "swift" {
				return failure(429, `{"error":{"message":"slow down"}}`)
			}
			return nil
		})
		for range 3 {
			for _, model := range []string{"swift", "deep"} {
				if err := send(l, accountRequest(s, "x", model, wire.FormChat)); err != nil {
					t.Fatal(err)
				}
			}
		}
		checkCalls(t, v, "a swift chat, b swift chat, a deep chat, b swift chat, a deep chat, b swift chat, a deep chat")
		if st := l.Statuses()[0]; st.State != "in_service" || len(st.ModelsCooling) != 1 || st.ModelsCooling[0].Model != "swift" {
			t.Errorf("status %+v, want only the model swift cooling", st)
		}
	}, spec("a"), spec("b"))
}

// TestProbesSkipMissingModels checks that a line returns although its first model by name is missing
// and its other model is missing in the first form.
func TestProbesSkipMissingModels(t *testing.T) {
	t.Parallel()
	for _, outage := range []func() *upstream.Failure{connectionRefused, invalidKey} {
		withLines(t, func(t *testing.T, v *formProvider, l *line.Lines, s *catalog.Snapshot) {
			retired := func(_, model string, c chatcall.Call) *upstream.Failure {
				switch {
				case model == "deep":
					return failure(404, `{"error":{"message":"gone","code":"model_not_found"}}`)
				case c.Form == wire.FormChat:
					return failure(404, `{"error":{"message":"This model is only supported in v1/responses","param":"model"}}`)
				}
				return nil
			}
			v.set(func(string, string, chatcall.Call) *upstream.Failure { return outage() })
			r := accountRequest(s, "", "swift", wire.FormResponses)
			sendTimes(5, l, r)
			if got := l.Statuses()[0].State; got != "circuit_open" && got != "credentials_out" {
				t.Fatalf("state %s after failures, want circuit_open or credentials_out", got)
			}
			v.takeCalls()
			v.set(retired)
			time.Sleep(5*time.Minute + time.Second)
			checkCalls(t, v, "a deep chat probe, a deep responses probe, a swift chat probe, a swift responses probe")
			for range 3 {
				if err := send(l, r); err != nil {
					t.Fatal(err)
				}
			}
			if got := l.Statuses()[0].State; got != "in_service" {
				t.Errorf("state %s after three answers, want in_service", got)
			}
			// From now on, probes begin with the model and form of the last answer.
			v.set(func(string, string, chatcall.Call) *upstream.Failure { return outage() })
			sendTimes(5, l, r)
			v.takeCalls()
			v.set(retired)
			time.Sleep(15 * time.Minute)
			checkCalls(t, v, "a swift responses probe")
		}, spec("a"))
	}
}

// TestModelMissingInEveryForm checks that a 404 without the name of a model or form counts against
// the model if the line's other form returns 404 too.
func TestModelMissingInEveryForm(t *testing.T) {
	t.Parallel()
	withLines(t, func(t *testing.T, v *formProvider, l *line.Lines, s *catalog.Snapshot) {
		v.set(func(_, model string, _ chatcall.Call) *upstream.Failure {
			if model == "swift" {
				return failure(404, `{"detail":"Not Found"}`)
			}
			return nil
		})
		if err := send(l, accountRequest(s, "x", "swift", wire.FormChat)); err == nil {
			t.Error("the request succeeded")
		}
		synctest.Wait()
		if st := l.Statuses()[0]; st.State != "in_service" || len(st.ModelsOut) != 1 || st.FormsOut != nil {
			t.Errorf("status %+v, want the whole model out", st)
		}
		v.set(withoutForm(wire.FormChat, 404, ``)) // the model is available again in one form
		time.Sleep(20 * time.Minute)
		if st := l.Statuses()[0]; st.ModelsOut != nil {
			t.Errorf("status %+v, want the model back after a successful probe", st)
		}
	}, spec("a"))
}

// TestForbiddenModel checks that a 403 to a probe counts against the model if the line answers for
// another model, and otherwise against the credential.
func TestForbiddenModel(t *testing.T) {
	t.Parallel()
	for _, all := range []bool{false, true} {
		withLines(t, func(t *testing.T, v *formProvider, l *line.Lines, s *catalog.Snapshot) {
			if err := send(l, accountRequest(s, "x", "deep", wire.FormChat)); err != nil {
				t.Fatal(err)
			}
			v.set(func(_, model string, _ chatcall.Call) *upstream.Failure {
				if all || model == "swift" {
					return failure(403, `{"error":{"message":"Forbidden"}}`)
				}
				return nil
			})
			if err := send(l, accountRequest(s, "x", "swift", wire.FormChat)); err == nil {
				t.Error("the request succeeded")
			}
			synctest.Wait()
			st := l.Statuses()[0]
			if !all && (st.State != "in_service" || len(st.ModelsOut) != 1 || st.ModelsOut[0].Model != "swift") {
				t.Errorf("status %+v, want only the model swift out", st)
			}
			if all && (st.State != "credentials_out" || st.ModelsOut != nil) {
				t.Errorf("status %+v, want credentials_out", st)
			}
		}, spec("a"))
	}
}

// TestLineWithoutItsModels checks that a line returns if it answers every probe with a 404 for the
// model, and that a request then finds the missing model.
func TestLineWithoutItsModels(t *testing.T) {
	t.Parallel()
	withLines(t, func(t *testing.T, v *formProvider, l *line.Lines, s *catalog.Snapshot) {
		v.set(func(string, string, chatcall.Call) *upstream.Failure { return connectionRefused() })
		r := accountRequest(s, "", "swift", wire.FormChat)
		sendTimes(5, l, r)
		v.set(func(string, string, chatcall.Call) *upstream.Failure {
			return failure(404, `{"error":{"message":"gone","code":"model_not_found"}}`)
		})
		time.Sleep(31 * time.Second)
		if err := send(l, r); err == nil {
			t.Error("the request succeeded")
		}
		if st := l.Statuses()[0]; st.State != "half_open" || len(st.ModelsOut) != 1 {
			t.Errorf("status %+v, want half_open with one model out", st)
		}
	}, spec("a"))
}

// TestFailuresOfOneAccount checks that the line serves another account at once after failures of one
// account, and that the operator sees no block after the answer.
func TestFailuresOfOneAccount(t *testing.T) {
	t.Parallel()
	for name, failure := range map[string]func() *upstream.Failure{
		"5xx":         func() *upstream.Failure { return failure(500, `{"error":{"message":"x"}}`) },
		"connections": connectionRefused,
		"rate limits": func() *upstream.Failure { return failure(429, `{"error":{"message":"x"}}`) },
		"all limited": func() *upstream.Failure { return failure(429, `{"error":{"message":"Your account is limited"}}`) },
		"no such form": func() *upstream.Failure {
			return failure(400, `{"error":{"message":"x","code":"OperationNotSupported"}}`)
		},
		"no such model": func() *upstream.Failure { return failure(404, `{"error":{"message":"x","code":"model_not_found"}}`) },
		"bad key":       invalidKey,
		"forbidden":     func() *upstream.Failure { return failure(403, ``) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			withLines(t, func(t *testing.T, _ *formProvider, l *line.Lines, s *catalog.Snapshot) {
				for round := range 40 {
					for range 12 {
						_, _ = l.Try(t.Context(), accountRequest(s, "hostile", "swift", wire.FormChat),
							func(context.Context, *line.Attempt) error { return failure() })
					}
					attempts, err := l.Try(t.Context(), accountRequest(s, "good", "swift", wire.FormChat),
						func(context.Context, *line.Attempt) error { return nil })
					if err != nil || len(attempts) != 1 || attempts[0].Line != "a" {
						t.Fatalf("round %d: request of account good: error %v, attempts %+v; want one attempt on line a", round, err, attempts)
					}
					st := l.Statuses()[0]
					if st.State != "in_service" || st.ModelsOut != nil || st.ModelsCooling != nil || st.FormsOut != nil {
						t.Fatalf("round %d: status %+v, want no block", round, st)
					}
					time.Sleep(3 * time.Second)
				}
			}, spec("a"), spec("b"))
		})
	}
}

// TestCircuitOfOneAccountIsProbed checks that a circuit opened by one account is probed at once, and
// closed if the probe succeeds.
func TestCircuitOfOneAccountIsProbed(t *testing.T) {
	t.Parallel()
	withLines(t, func(t *testing.T, v *formProvider, l *line.Lines, s *catalog.Snapshot) {
		failHostile := func() {
			for range 5 {
				_, _ = l.Try(t.Context(), accountRequest(s, "hostile", "swift", wire.FormChat),
					func(context.Context, *line.Attempt) error { return connectionRefused() })
			}
			synctest.Wait()
		}
		failHostile()
		if got := v.takeCalls(); strings.Count(got, "probe") != 2 || l.Statuses()[1].State != "in_service" {
			t.Errorf("after five failures: calls %q, status of line b %+v; want two probes and in_service", got, l.Statuses()[1])
		}
		time.Sleep(2 * time.Minute)
		for range 3 {
			if err := send(l, accountRequest(s, "good", "swift", wire.FormChat)); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Minute)
		v.takeCalls()
		failHostile()
		if got := v.takeCalls(); !strings.Contains(got, "a swift chat probe") || l.Statuses()[0].State != "in_service" {
			t.Errorf("after the circuit was refuted: calls %q, status %+v; want a probe and in_service", got, l.Statuses()[0])
		}
	}, spec("a"), spec("b"))
}

// TestToolsPreferAnotherForm checks that requests with tools use the other form if the model
// rejects tools in the first, and that other requests keep the first form.
func TestToolsPreferAnotherForm(t *testing.T) {
	t.Parallel()
	ln := spec("a")
	ln.Forms = []wire.Form{wire.FormChat, wire.FormMessages}
	withLines(t, func(t *testing.T, v *formProvider, l *line.Lines, s *catalog.Snapshot) {
		v.set(func(_, _ string, c chatcall.Call) *upstream.Failure {
			if c.Form == wire.FormChat && strings.Contains(string(c.Body.Bytes()), `"tools"`) {
				return failure(400, toolsElsewhere)
			}
			return nil
		})
		plain := accountRequest(s, "x", "swift", wire.FormChat)
		tools := plain
		tools.Tools = true
		check := func(r line.RoutingRequest, want string) {
			t.Helper()
			if err := send(l, r); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			checkCalls(t, v, want)
		}
		check(tools, "a swift chat tools, a swift messages tools, a swift chat probe tools")
		check(tools, "a swift messages tools")
		check(plain, "a swift chat")
		if st := l.Statuses()[0]; len(st.FormsOut) != 1 || !st.FormsOut[0].Tools || st.ModelsOut != nil || st.State != "in_service" {
			t.Errorf("status %+v, want form chat out for requests with tools", st)
		}
		v.set(func(string, string, chatcall.Call) *upstream.Failure { return nil })
		time.Sleep(5*time.Minute + 2*time.Second)
		v.takeCalls()
		check(tools, "a swift chat tools")
	}, ln)
}
