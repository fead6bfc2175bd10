package chat

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"tollgate/internal/catalog"
	"tollgate/internal/fault"
	"tollgate/internal/gatewaytest/fakeprovider"
	"tollgate/internal/ledger"
	"tollgate/internal/upstream"
	"tollgate/internal/wire"
	"tollgate/internal/wire/completions"
	"tollgate/internal/wire/messages"
	"tollgate/internal/wire/responses"
	"tollgate/internal/wire/translate"
)

// formSnapshot is a catalog with a model of all forms on one line of one form.
func formSnapshot(t testing.TB, on wire.Form) *catalog.Snapshot {
	t.Helper()
	return snapshotOf(t, on, "")
}

// twoLines is formSnapshot with a second line behind the first.
func twoLines(t testing.TB, on wire.Form) *catalog.Snapshot {
	t.Helper()
	return snapshotOf(t, on, `  - {id: second, provider: script, priority: 2, models: {swift-1: vendor-model}, `+
		`timeouts: {first_token: 10s, idle: 20s, total: 30s}}
`)
}

// snapshotOf is formSnapshot with further lines.
func snapshotOf(t testing.TB, on wire.Form, lines string) *catalog.Snapshot {
	t.Helper()
	providers := map[string]catalog.Provider{"script": {Kinds: []catalog.Kind{catalog.KindChat}, Forms: []wire.Form{on}}}
	doc, _, err := catalog.Parse([]byte(`
models:
  - {id: swift-1, kind: chat, forms: [chat, responses, messages], context_window: 100000, max_output_tokens: 1000, `+
		`default_output_tokens: 100, price: {input: 1, output: 10}}
lines:
  - {id: only, provider: script, models: {swift-1: vendor-model}, timeouts: {first_token: 10s, idle: 20s, total: 30s}}
`+lines), providers)
	if err != nil {
		t.Fatal(err)
	}
	return catalog.NewSnapshot(1, doc, providers, func(string) (string, bool) { return "", false })
}

// formCall is the call of a client's form for a model on a line of a form.
func formCall(t testing.TB, client, on wire.Form, stream bool) AcceptedRequest {
	t.Helper()
	const prompt = `"messages":[{"role":"user","content":"hi"}]`
	c := AcceptedRequest{Form: client, Snapshot: formSnapshot(t, on),
		Admission: ledger.Admission{Request: "req_1", Account: "acct_1", Key: "key_1", KeyVersion: 1, Received: time.Now()}}
	var err error
	switch client {
	case wire.FormResponses:
		var r *responses.Request
		if r, err = responses.Open(fmt.Appendf(nil, `{"model":"swift-1","input":"hi","stream":%v}`, stream)); err == nil {
			err = r.Check()
		}
		c.Body = r
	case wire.FormMessages:
		var r *messages.Request
		if r, err = messages.Open(fmt.Appendf(nil, `{"model":"swift-1","max_tokens":100,%s,"stream":%v}`, prompt, stream)); err == nil {
			err = r.Check()
		}
		c.Body = r
	default:
		var r *completions.Request
		if r, err = completions.Open(fmt.Appendf(nil, `{"model":"swift-1",%s,"stream":%v}`, prompt, stream)); err == nil {
			err = r.Check()
		}
		c.Body = r
	}
	if err != nil {
		t.Fatal(err)
	}
	c.Model, _ = c.Snapshot.Model("swift-1")
	return c
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

// goodStream returns the events of a stream in a line's form. The stream has begun after the first
// begin events; its end follows them.
func goodStream(on wire.Form) (events []string, begin int) {
	switch on {
	case wire.FormResponses:
		return fakeprovider.ResponsesStream(100, 10, "Hello\n", " world").Raw, 5
	case wire.FormMessages:
		return fakeprovider.NativeStream(100, 10, "Hello\n", " world").Raw, 3
	case wire.FormGemini:
		for _, data := range fakeprovider.GeminiStream(100, 10, "Hello\n", " world").Events {
			events = append(events, "data: "+data+"\n\n")
		}
		return events, 1
	}
	for _, data := range fakeprovider.Stream(100, 10, "Hello\n", " world").Events {
		events = append(events, "data: "+data+"\n\n")
	}
	return events, 2
}

// goodWhole is an answer of a line's form.
func goodWhole(on wire.Form) string {
	switch on {
	case wire.FormResponses:
		return fakeprovider.ResponsesAnswer("Hello", 100, 10).Body
	case wire.FormMessages:
		return fakeprovider.NativeAnswer("Hello", 100, 10).Body
	case wire.FormGemini:
		return fakeprovider.GeminiAnswer("Hello", 100, 10).Body
	}
	return fakeprovider.Answer("Hello", 100, 10).Body
}

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
		events, _ := goodStream(on)
		gate := make(chan struct{})
		tr := newTrial(t, reply{pieces: events, gate: gate})
		go func() {
			for range events {
				gate <- struct{}{}
			}
		}()
		if out := tr.send(formCall(t, client, on, true)); out.err != nil || out.cut {
			t.Fatalf("%+v", out)
		}
		tr.want(ledger.Billed, costUsage, 200, "")
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

		tr = newTrial(t, reply{pieces: []string{goodWhole(on)}})
		if out := tr.send(formCall(t, client, on, false)); out.err != nil || out.cut {
			t.Fatalf("%+v", out)
		}
		tr.want(ledger.Billed, costUsage, 200, "")
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
			events, _ := goodStream(on)
			gate := make(chan struct{})
			tr := newTrial(t, reply{pieces: events, gate: gate})
			tr.books.failing = failing
			go func() {
				for range events {
					gate <- struct{}{}
				}
			}()
			out := tr.send(formCall(t, client, on, true))
			got := tr.client.body()
			for _, end := range ends() {
				if strings.Contains(got, end) {
					t.Errorf("the client got %s in %s", end, got)
				}
			}
			if !out.cut || !strings.Contains(got, "Hello") {
				t.Errorf("%+v, the client got %s", out, got)
			}
			checkFailed(t, client, got, fault.ServiceUnavailable)

			tr = newTrial(t, reply{pieces: []string{goodWhole(on)}})
			tr.books.failing = failing
			out = tr.send(formCall(t, client, on, false))
			if errors.Is(failing, ledger.ErrNotSettled) {
				wantFault(t, out, fault.ServiceUnavailable)
			} else if !out.cut {
				t.Errorf("%+v", out)
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
				events, _ := goodStream(on)
				failure := "data: {\"error\":{\"message\":\"x\",\"code\":\"server_error\"}}\n\n"
				events = append(events[:len(events)-1:len(events)-1], failure)
				gate := make(chan struct{})
				tr := newTrial(t, reply{pieces: events, gate: gate})
				go func() {
					for range events {
						gate <- struct{}{}
					}
				}()
				if out := tr.send(formCall(t, client, on, true)); out.err != nil || out.cut {
					t.Fatalf("%+v", out)
				}
				tr.want(ledger.Billed, costUsage, 200, fault.UpstreamUnavailable)
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
		"prompt too long": {wire.FormChat, long, fault.InvalidRequest},
		"client's limit":  {wire.FormMessages, much, fault.InvalidRequest},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			refusal := fmt.Appendf(nil, `{"type":"error","error":{"type":"invalid_request_error","message":%q}}`, test.message)
			tr := newTrial(t, reply{failure: upstream.Classify(400, "application/json", refusal, nil)})
			f := faultOf(t, tr.send(formCall(t, test.client, wire.FormMessages, false)), test.code)
			tr.want(ledger.Failed, "0", f.Status(), test.code)
		})
	}
}
