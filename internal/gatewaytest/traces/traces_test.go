// Package traces owns the tests of traces: requests and jobs on gateways with a collector, and
// without a collector.
package traces

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"tollgate/internal/gatewaytest/fakecollector"
	"tollgate/internal/gatewaytest/fakeprovider"
	"tollgate/internal/gatewaytest/scene"
	"tollgate/internal/store/storetest"
)

const (
	callersTrace = "0af7651916cd43dd8448eb211c80319c"
	callersSpan  = "b7ad6b7169203331"
	prompt       = "tell nobody of hunter2"
)

// gateway has a failing chat line, a working chat line, and a line for images.
type gateway struct {
	*scene.Gateway
	account, key string
	providers    []*fakeprovider.Server
}

func open(t *testing.T, database string, settings map[string]string) *gateway {
	settings["log_format"] = "json"
	g := &gateway{Gateway: scene.Open(t, scene.Binary(t), database, settings)}
	failing, good := fakeprovider.New(t), fakeprovider.New(t)
	failing.Always(func(fakeprovider.Request) fakeprovider.Reply {
		return fakeprovider.Error(500, "server_error", "", "no: "+prompt)
	})
	good.Always(func(r fakeprovider.Request) fakeprovider.Reply { return fakeprovider.Good("chat", r.IsStream()) })
	g.providers = []*fakeprovider.Server{failing, good}
	g.SetCatalog([]map[string]any{scene.ChatModel("duo", nil), scene.ChatModel("solo", nil), scene.ImageModel("easel", nil)},
		[]map[string]any{
			scene.ChatLine("first", failing.URL(), nil, "duo", "solo"),
			scene.ChatLine("second", good.URL(), map[string]any{"priority": 2}, "duo"),
			{"id": "studio", "provider": "sandbox", "models": map[string]string{"easel": "sandbox-image"}},
		})
	g.account, g.key = g.Process.Account(100, nil)
	return g
}

// call sends a request with the caller's trace.
func (g *gateway) call(t *testing.T, method, path, body string) scene.FormAnswer {
	t.Helper()
	return scene.Call(t, g.Gateway, method, path, body, "Authorization", "Bearer "+g.key, "Content-Type", "application/json",
		"Traceparent", "00-"+callersTrace+"-"+callersSpan+"-01", "Tracestate", "caller=state")
}

// play sends a request answered by the second line, a failing request, and a job, and returns their
// ids.
func (g *gateway) play(t *testing.T) (good, bad, submission, job string) {
	t.Helper()
	a := g.call(t, "POST", "/v1/chat/completions", `{"model":"duo","stream":true,"messages":[{"role":"user","content":"`+prompt+`"}]}`)
	b := g.call(t, "POST", "/v1/chat/completions", `{"model":"solo","messages":[{"role":"user","content":"`+prompt+`"}]}`)
	c := g.call(t, "POST", "/v1/images/generations", `{"model":"easel","prompt":"`+prompt+`"}`)
	var accepted struct{ ID string }
	if err := json.Unmarshal([]byte(c.Raw), &accepted); err != nil || a.Status != 200 || b.Status != 502 || c.Status != 202 {
		t.Fatalf("answered %d, %d and %d: %s", a.Status, b.Status, c.Status, c.Raw)
	}
	scene.Eventually(t, "the job ends", func() bool {
		poll := g.call(t, "GET", "/v1/images/jobs/"+accepted.ID, "").Raw
		if strings.Contains(poll, `"failed"`) {
			t.Fatalf("the job has failed: %s", poll)
		}
		return strings.Contains(poll, `"succeeded"`)
	})
	return a.ID(), b.ID(), c.ID(), accepted.ID
}

// logged returns the lines of the log with a message, decoded from JSON.
func (g *gateway) logged(message string) (lines []map[string]any) {
	for line := range strings.Lines(g.Process.Output()) {
		var l map[string]any
		if json.Unmarshal([]byte(line), &l) == nil && l["msg"] == message {
			lines = append(lines, l)
		}
	}
	return lines
}

// TestTraces checks the spans in a collector: a span for each request, for each of its steps and for
// each attempt on a line, all in the caller's trace. No provider may get the trace.
func TestTraces(t *testing.T) {
	t.Parallel()
	storetest.EachURL(t, func(t *testing.T, database string) {
		c := fakecollector.New(t)
		g := open(t, database, map[string]string{"otlp_endpoint": c.URL(), "otlp_headers": "x-team=core"})
		good, bad, submission, job := g.play(t)
		failed := g.logged("request failed")
		g.Process.Stop()
		spans := c.Spans()
		spanOf := func(request string) (fakecollector.Span, []string) {
			t.Helper()
			at := slices.IndexFunc(spans, func(s fakecollector.Span) bool { return s.Attributes["tollgate.request.id"] == request })
			if at < 0 {
				t.Fatalf("no span for request %s in %+v", request, spans)
			}
			s := spans[at]
			if s.Trace != callersTrace || s.Parent != callersSpan || s.Kind != "server" || s.Attributes["tollgate.account"] != g.account {
				t.Errorf("span %+v", s)
			}
			var children []string
			for _, child := range spans {
				if child.Parent == s.ID {
					children = append(children, child.Name)
					if child.Begin.Before(s.Begin) || child.End.After(s.End) || child.Trace != s.Trace {
						t.Errorf("%+v is not within %+v", child, s)
					}
				}
			}
			return s, children
		}
		s, children := spanOf(good)
		if s.Name != "POST /v1/chat/completions" || s.Failed || s.Attributes["gen_ai.request.model"] != "duo" ||
			s.Attributes["tollgate.charge.nano"] != int64(scene.AnswerCost) || s.Attributes["http.response.status_code"] != int64(200) {
			t.Errorf("span %+v", s)
		}
		if !slices.Equal(children, []string{"hold", "chat vendor-duo", "chat vendor-duo", "settle"}) {
			t.Errorf("the children are %q", children)
		}
		s, children = spanOf(bad)
		if !s.Failed || s.Attributes["error.type"] != "upstream_unavailable" || s.Attributes["tollgate.charge.nano"] != nil ||
			!slices.Equal(children, []string{"hold", "chat vendor-solo"}) {
			t.Errorf("span %+v with the children %q", s, children)
		}
		if s, _ = spanOf(submission); s.Attributes["tollgate.job.id"] != job || s.Name != "POST /v1/images/generations" {
			t.Errorf("span %+v", s)
		}
		checkAttempts(t, spans, job)
		if len(failed) != 1 || failed[0]["request"] != bad || failed[0]["trace"] != callersTrace {
			t.Errorf("failed requests in the log: %v", failed)
		}
		if c.Header().Get("X-Team") != "core" {
			t.Errorf("the collector got the header %v", c.Header())
		}
		g.checkSecrecy(t, spans)
	})
}

// checkAttempts checks the spans of attempts.
func checkAttempts(t *testing.T, spans []fakecollector.Span, job string) {
	t.Helper()
	var lines []string
	for _, s := range spans {
		if s.Kind != "client" {
			continue
		}
		lines = append(lines, s.Attributes["tollgate.line"].(string))
		switch a := s.Attributes; a["tollgate.line"] {
		case "first":
			if !s.Failed || a["error.type"] != "upstream_unavailable" || a["http.response.status_code"] != int64(500) {
				t.Errorf("span %+v", s)
			}
		case "second":
			if s.Failed || a["gen_ai.operation.name"] != "chat" || a["gen_ai.provider.name"] != "openai" || a["server.address"] != "127.0.0.1" ||
				a["gen_ai.usage.input_tokens"] != int64(1000) || a["gen_ai.usage.output_tokens"] != int64(500) ||
				a["gen_ai.response.time_to_first_chunk"] == nil ||
				a["gen_ai.response.model"] != "vendor-model" || a["gen_ai.response.id"] != "chatcmpl-fake" {
				t.Errorf("span %+v", s)
			}
		case "studio":
			if s.Failed || s.Name != "generate_content sandbox-image" || s.Parent != "" || a["tollgate.job.id"] != job {
				t.Errorf("span %+v", s)
			}
		}
	}
	slices.Sort(lines)
	if !slices.Equal(lines, []string{"first", "first", "second", "studio"}) {
		t.Errorf("the lines of the attempts are %q", lines)
	}
}

// TestWhyAnswersEnded checks the finish reason of the answer in the span of an attempt, with and
// without streaming. The line's form decides the spelling.
func TestWhyAnswersEnded(t *testing.T) {
	t.Parallel()
	c := fakecollector.New(t)
	g := &gateway{Gateway: scene.Open(t, scene.Binary(t), storetest.SQLite(t), map[string]string{"otlp_endpoint": c.URL()})}
	words := map[string]string{"chat": "stop", "messages": "end_turn", "responses": "completed", "gemini": "STOP",
		"interactions": "completed"}
	var models, lines []map[string]any
	for form := range words {
		p := fakeprovider.New(t)
		p.Always(func(r fakeprovider.Request) fakeprovider.Reply { return fakeprovider.Good(form, r.IsStream()) })
		models = append(models, scene.ChatModel(form, nil))
		lines = append(lines, scene.FormLine(form, form, p.URL(), nil, form))
	}
	g.SetCatalog(models, lines)
	g.account, g.key = g.Process.Account(100, nil)
	for form := range words {
		for _, stream := range []string{"true", "false"} {
			body := `{"model":"` + form + `","stream":` + stream + `,"messages":[{"role":"user","content":"hello"}]}`
			if a := g.call(t, "POST", "/v1/chat/completions", body); a.Status != 200 {
				t.Errorf("%s: %d %s", form, a.Status, a.Raw)
			}
		}
	}
	g.Process.Stop()
	attempts := 0
	for _, s := range c.Spans() {
		if on, attempt := s.Attributes["tollgate.line"].(string); attempt {
			attempts++
			if got, _ := s.Attributes["gen_ai.response.finish_reasons"].([]string); !slices.Equal(got, []string{words[on]}) {
				t.Errorf("line %s: finish reasons %q in %+v", on, got, s)
			}
		}
	}
	if attempts != 2*len(words) {
		t.Errorf("%d attempts with spans; want %d", attempts, 2*len(words))
	}
}

// checkSecrecy fails the test if a span contains a prompt or a secret, or if a provider got the
// headers of the caller's trace.
func (g *gateway) checkSecrecy(t *testing.T, spans []fakecollector.Span) {
	t.Helper()
	for _, s := range spans {
		raw, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		for _, secret := range []string{prompt, "hunter2", g.key, scene.Credential} {
			if strings.Contains(string(raw), secret) {
				t.Errorf("a span contains %q: %s", secret, raw)
			}
		}
	}
	for _, p := range g.providers {
		for _, r := range p.Requests() {
			for _, name := range []string{"Traceparent", "Tracestate", "Baggage"} {
				if r.Header.Get(name) != "" {
					t.Errorf("a provider got the header %s: %s", name, r.Header.Get(name))
				}
			}
		}
	}
}

// TestTracesByTheStandardVariables checks that the standard OpenTelemetry variables apply if the
// setting is absent.
func TestTracesByTheStandardVariables(t *testing.T) {
	t.Parallel()
	c := fakecollector.New(t)
	g := open(t, storetest.SQLite(t), map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": c.URL() + "/", "OTEL_SERVICE_NAME": "gate-7",
		"OTEL_EXPORTER_OTLP_HEADERS": "x-team=core"})
	g.play(t)
	g.Process.Stop()
	if c.Resource()["service.name"] != "gate-7" || c.Header().Get("X-Team") != "core" || len(c.Spans()) < 3 {
		t.Errorf("%d spans with the resource %v and the header %v", len(c.Spans()), c.Resource(), c.Header())
	}
}

// TestCollectorsThatAreAway checks that requests and the stop of the gateway work if the collector is
// unreachable or its address is invalid.
func TestCollectorsThatAreAway(t *testing.T) {
	t.Parallel()
	for name, settings := range map[string]map[string]string{
		"unreachable":     {"otlp_endpoint": fakeprovider.ClosedAddress(t)},
		"invalid address": {"OTEL_EXPORTER_OTLP_ENDPOINT": "collector:4317"},
		"no collector":    {},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := open(t, storetest.SQLite(t), settings)
			_, bad, _, _ := g.play(t)
			failed := g.logged("request failed")
			g.Process.CheckStop(t)
			if _, traced := failed[0]["trace"]; len(failed) != 1 || failed[0]["request"] != bad || traced != (name == "unreachable") {
				t.Errorf("failed requests in the log: %v", failed)
			}
			if warned := strings.Contains(g.Process.Output(), "OTEL_EXPORTER_OTLP_ENDPOINT"); warned != (name == "invalid address") {
				t.Errorf("the log: %s", g.Process.Output())
			}
		})
	}
}
