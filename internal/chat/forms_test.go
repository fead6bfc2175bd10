package chat

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"tollgate/internal/fault"
	"tollgate/internal/gatewaytest/fakeprovider"
	"tollgate/internal/ledger"
	"tollgate/internal/upstream"
	"tollgate/internal/wire"
	"tollgate/internal/wire/translate"
)

// formDocument is a catalog with a model of all client forms on one line, and secondLine adds a line
// behind it.
const (
	formDocument = `
models:
  - {id: swift-1, kind: chat, forms: [chat, responses, messages], context_window: 100000, max_output_tokens: 1000,
     default_output_tokens: 100, price: {input: 1, output: 10}}
lines:
  - {id: only, provider: script, models: {swift-1: vendor-model}, timeouts: {first_token: 10s, idle: 20s, total: 30s}}
`
	secondLine = `  - {id: second, provider: script, priority: 2, models: {swift-1: vendor-model},
     timeouts: {first_token: 10s, idle: 20s, total: 30s}}
`
)

// formBody returns a request in a form.
func formBody(form wire.Form, stream bool) string {
	members := map[wire.Form]string{
		wire.FormChat:      `"messages":[{"role":"user","content":"hi"}]`,
		wire.FormResponses: `"input":"hi"`,
		wire.FormMessages:  `"max_tokens":100,"messages":[{"role":"user","content":"hi"}]`,
	}[form]
	return fmt.Sprintf(`{"model":"swift-1",%s,"stream":%v}`, members, stream)
}

// formCall returns a request in a client's form for a model on a line of a form.
func formCall(t testing.TB, client, on wire.Form, stream bool) AcceptedRequest {
	t.Helper()
	return accepted(t, snapshotOf(t, formDocument, on), client, formBody(client, stream))
}

// eachPair runs a test for every client form and every line form for its translation.
func eachPair(t *testing.T, test func(t *testing.T, client, on wire.Form)) {
	t.Helper()
	for _, client := range []wire.Form{wire.FormChat, wire.FormResponses, wire.FormMessages} {
		for _, on := range []wire.Form{wire.FormChat, wire.FormResponses, wire.FormMessages, wire.FormGemini} {
			if client == on || translate.Translates(client, on) {
				t.Run(fmt.Sprintf("%s on %s", client, on), func(t *testing.T) {
					t.Parallel()
					test(t, client, on)
				})
			}
		}
	}
}

// good returns an answer of a line's form with the text "all is well", 1000 tokens of prompt and 500 of
// completion, at costGood.
func good(on wire.Form, stream bool) reply {
	r := fakeprovider.Good(string(on), stream)
	if !stream {
		return pieces(r.Body)
	}
	for _, data := range r.Events {
		r.Raw = append(r.Raw, "data: "+data+"\n\n")
	}
	return pieces(r.Raw...)
}

const costGood = "0.006"

// ends returns the markers of a complete or ended stream.
func ends() []string {
	return []string{"[DONE]", `"finish_reason":"`, "message_delta", "message_stop", "response.completed", "response.incomplete",
		`"stop_reason":"`}
}

// TestEndsWaitForTheSettlement checks in every form that the end of an answer is sent after its
// charge.
func TestEndsWaitForTheSettlement(t *testing.T) {
	t.Parallel()
	eachPair(t, func(t *testing.T, client, on wire.Form) {
		tr := newTrial(t, good(on, true))
		tr.mustSend(formCall(t, client, on, true))
		tr.want(ledger.Billed, costGood, 200, "")
		last := map[wire.Form]string{wire.FormChat: "data: [DONE]", wire.FormMessages: `data: {"type":"message_stop"}`}[client]
		got := tr.client.body()
		if client == wire.FormResponses {
			last = got[strings.LastIndex(got, "event: response.completed"):]
			last = strings.TrimSpace(last)
		}
		if !strings.HasSuffix(got, last+"\n\n") || tr.client.early == "" {
			t.Errorf("the client got %s", got)
		}
		for _, end := range ends() {
			if strings.Contains(tr.client.early, end) {
				t.Errorf("%s went out before the settlement: %s", end, tr.client.early)
			}
		}

		tr = newTrial(t, good(on, false))
		tr.mustSend(formCall(t, client, on, false))
		tr.want(ledger.Billed, costGood, 200, "")
		if tr.client.early != "" {
			t.Errorf("%s went out before the settlement", tr.client.early)
		}
	})
}

// TestFormsThatCannotBeSettled checks in every form that an answer without a settled charge is not
// complete for its client.
func TestFormsThatCannotBeSettled(t *testing.T) {
	t.Parallel()
	eachPair(t, func(t *testing.T, client, on wire.Form) {
		for _, failing := range []error{ledger.ErrUnknown, ledger.ErrNotSettled} {
			tr := newTrial(t, good(on, true))
			tr.books.failing = failing
			out := tr.send(formCall(t, client, on, true))
			got := tr.client.body()
			for _, end := range ends() {
				if strings.Contains(got, end) {
					t.Errorf("the client got %s in %s", end, got)
				}
			}
			if !out.cut || !strings.Contains(got, "is well") {
				t.Errorf("%+v, the client got %s", out, got)
			}
			checkFailed(t, client, got, fault.ServiceUnavailable)

			tr = newTrial(t, good(on, false))
			tr.books.failing = failing
			out = tr.send(formCall(t, client, on, false))
			if !errors.Is(failing, ledger.ErrNotSettled) {
				if !out.cut {
					t.Errorf("%+v", out)
				}
			} else if f := wantFault(t, out, fault.ServiceUnavailable); f.RetryAfter == 0 {
				t.Error("no time to retry after")
			}
			if got := tr.client.body(); got != "" || tr.client.status != 0 {
				t.Errorf("the client got %d %s", tr.client.status, got)
			}
		}
	})
}

// checkFailed checks the last event of a failed stream.
func checkFailed(t *testing.T, client wire.Form, got string, code fault.Code) {
	t.Helper()
	events := strings.Split(strings.TrimSuffix(got, "\n\n"), "\n\n")
	last := events[len(events)-1]
	begins := `data: {"error":{`
	switch client {
	case wire.FormMessages:
		begins = "event: error\ndata: {\"type\":\"error\",\"error\":{"
	case wire.FormResponses:
		begins = fmt.Sprintf("event: response.failed\ndata: {\"type\":\"response.failed\",\"sequence_number\":%d,", len(events)-1)
	}
	if !strings.HasPrefix(last, begins) || client != wire.FormMessages && !strings.Contains(last, fmt.Sprintf(`"code":%q`, code)) {
		t.Errorf("the last of %d events is %s; want it to begin %s", len(events), last, begins)
	}
}

// TestFormsBreakOffBehindTheFinish checks that the events held for the settlement are not sent if
// the stream fails after them.
func TestFormsBreakOffBehindTheFinish(t *testing.T) {
	t.Parallel()
	for _, on := range []wire.Form{wire.FormChat, wire.FormMessages} {
		for _, client := range []wire.Form{wire.FormChat, wire.FormResponses, wire.FormMessages} {
			t.Run(fmt.Sprintf("%s on %s", client, on), func(t *testing.T) {
				t.Parallel()
				events := good(on, true).pieces
				failure := "data: {\"error\":{\"message\":\"x\",\"code\":\"server_error\"}}\n\n"
				events = append(events[:len(events)-1:len(events)-1], failure)
				tr := newTrial(t, pieces(events...))
				tr.mustSend(formCall(t, client, on, true))
				tr.want(ledger.Billed, costGood, 200, fault.UpstreamUnavailable)
				got := tr.client.body()
				for _, end := range ends() {
					if strings.Contains(got, end) {
						t.Errorf("the client got %s in %s", end, got)
					}
				}
				checkFailed(t, client, got, fault.UpstreamUnavailable)
			})
		}
	}
}

// TestLimitThatMessagesDemand checks that the gateway adds a limit if the client sent none, because
// the form demands one, and that a line's rejection of the limit does not reach the client.
func TestLimitThatMessagesDemand(t *testing.T) {
	t.Parallel()
	const much, long = "max_tokens: 100 > 64, which is the maximum allowed", "input length and `max_tokens` exceed context limit"
	for name, test := range map[string]struct {
		client  wire.Form
		message string
		code    fault.Code
	}{
		"chat":            {wire.FormChat, much, fault.UpstreamUnavailable},
		"responses":       {wire.FormResponses, much, fault.UpstreamUnavailable},
		"prompt too long": {wire.FormChat, long, upstream.ContextLengthExceeded},
		"client's limit":  {wire.FormMessages, much, fault.InvalidRequest},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			refusal := fmt.Appendf(nil, `{"type":"error","error":{"type":"invalid_request_error","message":%q}}`, test.message)
			tr := newTrial(t, reply{failure: upstream.Classify(400, "application/json", refusal, nil)})
			f := wantFault(t, tr.send(formCall(t, test.client, wire.FormMessages, false)), test.code)
			tr.want(ledger.Failed, "0", f.Status(), test.code)
		})
	}
}

// TestOverload checks in every form of lines that the next line answers if a provider reports an
// overload, as a client error or in an answer with status 200.
func TestOverload(t *testing.T) {
	t.Parallel()
	for _, words := range []string{
		`"type":"invalid_request_error","message":"Selected model is at capacity. Please try a different model."`,
		`"type":"invalid_request_error","code":null,"param":null,"message":"The model is currently over capacity."`,
		`"type":"overloaded_error","message":"Overloaded"`,
		`"code":503,"message":"The service is out of capacity."`,
		`"code":"429","message":"No capacity available for model x."`,
	} {
		for _, on := range []wire.Form{wire.FormChat, wire.FormResponses, wire.FormMessages, wire.FormGemini} {
			client := on
			if on == wire.FormGemini {
				client = wire.FormChat
			}
			for _, stream := range []bool{false, true} {
				for name, first := range overloads(on, stream, words) {
					t.Run(fmt.Sprintf("%s, stream %v, %s, %s", on, stream, name, words), func(t *testing.T) {
						t.Parallel()
						tr := newTrial(t, first, good(on, stream))
						tr.mustSend(accepted(t, snapshotOf(t, formDocument+secondLine, on), client, formBody(client, stream)))
						if e, a := tr.end(), tr.attempts(); e.Line != "second" || len(a) != 2 || a[0].Code != string(fault.UpstreamBusy) || e.Cost <= 0 {
							t.Errorf("end %+v, attempts %+v", e, a)
						}
					})
				}
			}
		}
	}
}

// overloads returns replies of a line with the words of an overload.
func overloads(on wire.Form, stream bool, words string) map[string]reply {
	failed := strings.Replace(fakeprovider.ResponsesObject("failed", "null"), `"code":"server_error","message":"The model failed."`, words, 1)
	bodies := map[string]string{"error": `{"error":{` + words + `}}`, "typed error": `{"type":"error","error":{` + words + `}}`}
	if on == wire.FormResponses {
		bodies["failed"] = failed
	}
	replies := map[string]reply{"status 400": rejecting(words)}
	for name, body := range bodies {
		if stream {
			body = "data: " + body + "\n\n"
		}
		replies[name] = pieces(body)
	}
	switch {
	case stream && on == wire.FormResponses:
		replies["event"] = pieces(fakeprovider.ResponsesEvents(fakeprovider.ResponsesEvent("response.failed", `"response":`+failed)).Raw...)
	case stream && on == wire.FormMessages:
		replies["event"] = pieces(fakeprovider.NativeEvent("error", `"error":{`+words+`}`))
	}
	return replies
}

// TestTooLongOnEveryPair expects a prompt beyond the context window, said in the words of each vendor, to be
// said in the words that each client looks for.
func TestTooLongOnEveryPair(t *testing.T) {
	t.Parallel()
	bodies := map[wire.Form]string{
		wire.FormChat: `{"error":{"message":"This model's maximum context length is 9 tokens. However, your messages resulted in 12 tokens.",` +
			`"type":"invalid_request_error","param":"messages","code":"context_length_exceeded"}}`,
		wire.FormMessages: `{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 12 tokens > 9 maximum"}}`,
		wire.FormResponses: `{"error":{"message":"Your input exceeds the context window of this model.","type":"invalid_request_error",` +
			`"param":"input","code":"context_length_exceeded"}}`,
		wire.FormGemini: `{"error":{"code":400,"message":"The input token count (12) exceeds the maximum number of tokens allowed (9).",` +
			`"status":"INVALID_ARGUMENT"}}`,
	}
	eachPair(t, func(t *testing.T, client, on wire.Form) {
		for _, stream := range []bool{false, true} {
			tr := newTrial(t, reply{failure: upstream.Classify(400, "application/json", []byte(bodies[on]), nil)})
			f := wantFault(t, tr.send(formCall(t, client, on, stream)), upstream.ContextLengthExceeded)
			if got := string(f.NativeBody()); client == wire.FormMessages && !strings.Contains(got, "prompt is too long") {
				t.Errorf("got %s, want the words of the messages form", got)
			}
			if got := string(f.Body()); !strings.Contains(got, `"context_length_exceeded"`) {
				t.Errorf("got %s, want the code", got)
			}
		}
	})
}
