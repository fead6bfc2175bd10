package trace

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"maps"
	"net/http/httptest"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.uber.org/goleak"

	"tollgate/internal/gatewaytest/fakecollector"
	"tollgate/internal/loop"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	callersTrace = "0af7651916cd43dd8448eb211c80319c"
	callersSpan  = "b7ad6b7169203331"
)

// stopWait is the time for the last exports of a stopping tracer.
const stopWait = 2 * time.Second

// run runs a tracer. The returned function stops it and waits.
func run(t *Tracer) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		work, stopped := loop.Linger(ctx, stopWait)
		defer stopped()
		t.Run(ctx, work)
	}()
	return func() {
		cancel()
		<-ended
	}
}

// spanCounter counts the spans passed to Sent and Dropped.
type spanCounter struct{ sent, dropped atomic.Int64 }

func (c *spanCounter) options() Options {
	return Options{Sent: func(n int) { c.sent.Add(int64(n)) }, Dropped: func(n int) { c.dropped.Add(int64(n)) }}
}

// TestExport checks the exported spans of a request answered by the second line.
func TestExport(t *testing.T) {
	t.Parallel()
	c := fakecollector.New(t)
	var counts spanCounter
	o := counts.options()
	o.Endpoint, o.Headers, o.Version = c.URL()+"/v1/traces", map[string]string{"Authorization": "Bearer hunter2"}, "v1.2.3"
	tracer, err := New(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	stop := run(tracer)
	r := httptest.NewRequest("POST", "/v1/chat/completions", strings.NewReader("a prompt"))
	r.Header.Set("Traceparent", "00-"+callersTrace+"-"+callersSpan+"-01")
	r.Header.Set("Authorization", "Bearer sk-secret")
	at := time.Now().Add(-time.Second)
	s := tracer.Request(r, "req_1", at)
	s.Model("swift-1")
	step := s.Step("hold")
	step.End()
	s.Hold(2_000_000)
	first := s.Attempt(AttemptStart{Operation: Chat, Line: "first", Provider: "openai", BaseURL: "https://API.x.ai/v1", Model: "grok-9"})
	first.Status(503)
	first.Fail("upstream_unavailable")
	first.End()
	second := s.Attempt(AttemptStart{
		Operation: Chat, Line: "second", Provider: "vertex", BaseURL: "http://127.0.0.1:8000", Model: "gemini-9", Stream: true,
	})
	second.Status(200)
	second.FirstChunk(1500 * time.Millisecond)
	second.Answer("gemini-9-001", "answer-1")
	second.Answer("", "")
	second.FinishReasons([]string{"", ""})
	second.FinishReasons([]string{"stop", "", "length"})
	second.EndWork()
	second.Usage(100, 40, 7)
	second.End()
	second.End()
	s.Charge(1_500)
	s.Caller("acct_1", "key_1")
	s.EndRequest("/v1/chat/completions", 200)
	stop()

	want := []struct {
		name, kind string
		failed     bool
		attributes map[string]any
	}{
		{"POST /v1/chat/completions", "server", false, map[string]any{"http.request.method": "POST", "http.route": "/v1/chat/completions",
			"http.response.status_code": int64(200), "gen_ai.request.model": "swift-1", "tollgate.request.id": "req_1",
			"tollgate.account": "acct_1", "tollgate.key.id": "key_1", "tollgate.held.nano": int64(2_000_000), "tollgate.charge.nano": int64(1_500)}},
		{"hold", "internal", false, map[string]any{}},
		{"chat grok-9", "client", true, map[string]any{"gen_ai.operation.name": "chat", "gen_ai.provider.name": "x_ai",
			"gen_ai.request.model": "grok-9", "server.address": "api.x.ai", "server.port": int64(443), "tollgate.line": "first",
			"http.response.status_code": int64(503), "error.type": "upstream_unavailable", "tollgate.code": "upstream_unavailable"}},
		{"chat gemini-9", "client", false, map[string]any{"gen_ai.operation.name": "chat", "gen_ai.provider.name": "gcp.vertex_ai",
			"gen_ai.request.model": "gemini-9", "gen_ai.request.stream": true, "server.address": "127.0.0.1", "server.port": int64(8000),
			"tollgate.line": "second", "http.response.status_code": int64(200), "gen_ai.response.time_to_first_chunk": 1.5,
			"gen_ai.response.model": "gemini-9-001", "gen_ai.response.id": "answer-1", "gen_ai.response.finish_reasons": []string{"stop", "length"},
			"gen_ai.usage.input_tokens": int64(100), "gen_ai.usage.cache_read.input_tokens": int64(40), "gen_ai.usage.output_tokens": int64(7)}},
	}
	spans := c.Spans()
	if len(spans) != len(want) || counts.sent.Load() != int64(len(want)) || counts.dropped.Load() != 0 {
		t.Fatalf("the collector got %d spans, %d were counted as sent and %d as dropped: %+v",
			len(spans), counts.sent.Load(), counts.dropped.Load(), spans)
	}
	for i, w := range want {
		got := spans[i]
		parent := spans[0].ID
		if i == 0 {
			parent = callersSpan
		}
		if got.Name != w.name || got.Kind != w.kind || got.Failed != w.failed || got.Trace != callersTrace || got.Parent != parent ||
			!reflect.DeepEqual(got.Attributes, w.attributes) {
			t.Errorf("span %+v\nwant %+v below %s", got, w, parent)
		}
	}
	if !spans[0].Begin.Equal(at.Truncate(1)) {
		t.Errorf("the request began at %v, want %v", spans[0].Begin, at)
	}
	if got := c.Header().Get("Authorization"); got != "Bearer hunter2" {
		t.Errorf("the Authorization header is %q, want the configured one", got)
	}
	if got := c.Resource(); got["service.name"] != "tollgate" || got["service.version"] != "v1.2.3" || got["host.name"] == nil {
		t.Errorf("the resource is %v, want service, version and host", got)
	}
}

// TestCallerTraces checks that the spans of a caller's unsampled trace are not exported, and that a request
// without a valid trace starts a new trace.
func TestCallerTraces(t *testing.T) {
	t.Parallel()
	c := fakecollector.New(t)
	tracer, err := New(t.Context(), Options{Endpoint: c.URL() + "/v1/traces"})
	if err != nil {
		t.Fatal(err)
	}
	stop := run(tracer)
	for path, parent := range map[string]string{
		"/unsampled": "00-" + callersTrace + "-" + callersSpan + "-00", "/sampled": "00-" + callersTrace + "-" + callersSpan + "-01",
		"/broken": "00-" + callersTrace + "-0000000000000000-01", "/none": "",
	} {
		r := httptest.NewRequest("BREW", path, nil)
		r.Header.Set("Traceparent", parent)
		s := tracer.Request(r, "req_1", time.Now())
		s.Attempt(AttemptStart{Operation: Chat}).End()
		s.Cut()
		s.EndRequest(path, 0)
	}
	stop()
	requests := map[string]bool{} // by name, whether the request continues the caller's trace
	for _, s := range c.Spans() {
		if s.Kind != "server" {
			continue
		}
		requests[s.Name] = s.Trace == callersTrace
		if !s.Failed || s.Attributes["tollgate.cut"] != true || s.Attributes["http.response.status_code"] != nil {
			t.Errorf("the span of a cut request is %+v", s)
		}
	}
	if !maps.Equal(requests, map[string]bool{"_OTHER /sampled": true, "_OTHER /broken": false, "_OTHER /none": false}) {
		t.Errorf("the exported requests are %v, want all except the unsampled one", requests)
	}
}

// stuck is a collector that fails or blocks until the caller gives up.
type stuck struct {
	failing error // if nil, the export blocks
	calls   atomic.Int64
}

func (e *stuck) ExportSpans(ctx context.Context, _ []sdktrace.ReadOnlySpan) error {
	e.calls.Add(1)
	if e.failing != nil {
		return e.failing
	}
	<-ctx.Done()
	return ctx.Err()
}

func (e *stuck) Shutdown(context.Context) error { return nil }

// TestSlowCollector checks that excess spans are dropped at once, that a call has a timeout, and that a
// stop takes two seconds.
func TestSlowCollector(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var counts spanCounter
		tracer, err := newTracer(t.Context(), counts.options().withDefaults(), &stuck{})
		if err != nil {
			t.Fatal(err)
		}
		stop := run(tracer)
		request := func() { tracer.Request(httptest.NewRequest("GET", "/", nil), "req_1", time.Now()).EndRequest("/", 200) }
		for range maxBatch {
			request()
			synctest.Wait()
		}
		began := time.Now()
		for range maxQueue + 7 { // behind the batch being sent
			request()
		}
		if took := time.Since(began); took != 0 || counts.dropped.Load() != 7 {
			t.Errorf("requests waited for %v, and %d spans were dropped", took, counts.dropped.Load())
		}
		time.Sleep(sendWithin)
		synctest.Wait()
		if got := counts.dropped.Load(); got != 7+maxBatch {
			t.Errorf("%d spans were dropped after the timeout of a call, want %d", got, 7+maxBatch)
		}
		began = time.Now()
		stop()
		if took := time.Since(began); took != stopWait || counts.sent.Load() != 0 {
			t.Errorf("the stop took %v; %d spans were sent", took, counts.sent.Load())
		}
		if got := counts.dropped.Load(); got != 7+maxBatch+maxQueue {
			t.Errorf("%d spans were dropped in total, want %d", got, 7+maxBatch+maxQueue)
		}
	})
}

// TestFailureIsLoggedOnce checks that repeated failures of the collector are logged once.
func TestFailureIsLoggedOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		var counts spanCounter
		o := counts.options()
		o.Log = slog.New(slog.NewTextHandler(&log, nil))
		broken := errors.New("no such host")
		exporter := &stuck{failing: broken}
		tracer, err := newTracer(t.Context(), o.withDefaults(), exporter)
		if err != nil {
			t.Fatal(err)
		}
		stop := run(tracer)
		for range 3 {
			tracer.Request(httptest.NewRequest("GET", "/", nil), "req_1", time.Now()).EndRequest("/", 200)
			time.Sleep(sendEvery)
			synctest.Wait()
		}
		stop()
		if got := log.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, "no such host") || counts.dropped.Load() != 3 ||
			exporter.calls.Load() != 3 {
			t.Errorf("%d calls, %d dropped and log %s, want 3, 3 and one line", exporter.calls.Load(), counts.dropped.Load(), got)
		}
	})
}

// TestNoEndpoint checks that New returns no tracer without an endpoint, and rejects invalid endpoints.
func TestNoEndpoint(t *testing.T) {
	t.Parallel()
	tracer, err := New(t.Context(), Options{})
	if tracer != nil || err != nil {
		t.Fatalf("New without an endpoint = %v, %v, want nil", tracer, err)
	}
	tracer.Run(t.Context(), t.Context()) // returns at once
	for _, bad := range []string{"collector:4317", "ftp://collector", "http://", "/v1/traces"} {
		if _, err := New(t.Context(), Options{Endpoint: bad}); err == nil {
			t.Errorf("New accepts the endpoint %s", bad)
		}
	}
}

// untraced calls all span methods of a request.
func untraced(tracer *Tracer) {
	s := tracer.Request(nil, "req_1", time.Time{})
	s.Model("swift-1")
	s.Step("hold").End()
	s.Hold(1)
	a := s.Attempt(AttemptStart{Operation: Chat, Line: "main", Provider: "openai", BaseURL: "https://api.openai.com/v1", Model: "gpt"})
	a.Status(200)
	a.FirstChunk(time.Second)
	a.EndWork()
	a.Usage(1, 0, 1)
	a.Fail("upstream_error")
	a.End()
	s.Charge(1)
	s.Code("")
	s.Job("job_1")
	s.Caller("acct_1", "key_1")
	s.Cut()
	s.EndRequest("/v1/chat/completions", 200)
	tracer.JobAttempt(AttemptStart{Operation: Generate}, "job_1", "acct_1").End()
	_ = s.Log()
}

// TestUntracedAllocations checks that a request without a tracer allocates nothing for spans.
func TestUntracedAllocations(t *testing.T) {
	if n := testing.AllocsPerRun(100, func() { untraced(nil) }); n != 0 {
		t.Errorf("an untraced request allocates %v times, want 0", n)
	}
}

func BenchmarkUntraced(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		untraced(nil)
	}
}
