package line_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"

	"tollgate/internal/catalog"
	"tollgate/internal/fault"
	"tollgate/internal/line"
	"tollgate/internal/upstream"
	"tollgate/internal/upstream/chatcall"
	"tollgate/internal/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// snapshot returns a catalog with one model and the given lines.
func snapshot(revision int64, lines ...catalog.LineSpec) *catalog.Snapshot {
	doc := &catalog.Document{Models: []catalog.Model{{ID: "swift", Kind: catalog.KindChat}}, Lines: lines}
	return catalog.NewSnapshot(revision, doc,
		map[string]catalog.Provider{"fake": {Kinds: []catalog.Kind{catalog.KindChat}, Forms: []wire.Form{wire.FormChat, wire.FormMessages}}},
		func(string) (string, bool) { return "", false })
}

// spec returns a line with the name vendor-ID for the model.
func spec(id string) catalog.LineSpec {
	return catalog.LineSpec{ID: id, Provider: "fake", Weight: 100, Enabled: true, Models: map[string]string{"swift": "vendor-" + id}}
}

// orderedSpecs returns lines that are used in the order of ids.
func orderedSpecs(ids ...string) (specs []catalog.LineSpec) {
	for i, id := range ids {
		ln := spec(id)
		ln.Priority = i
		specs = append(specs, ln)
	}
	return specs
}

// provider opens adapters that answer {}, and records their lines. The line broken cannot be opened.
type provider struct{ opened []string }

func (p *provider) open(t upstream.Target) (chatcall.Adapter, error) {
	p.opened = append(p.opened, t.Line)
	if t.Line == "broken" {
		return nil, errors.New("cannot be opened")
	}
	return p, nil
}

func (p *provider) Chat(context.Context, chatcall.Call) (*chatcall.Response, error) {
	return &chatcall.Response{Body: io.NopCloser(strings.NewReader("{}"))}, nil
}

// request returns a request for the model of a snapshot.
func request(s *catalog.Snapshot) line.RoutingRequest {
	m, _ := s.Model("swift")
	return line.RoutingRequest{Snapshot: s, Model: m, Form: wire.FormChat}
}

// try runs Try. An attempt returns the error in results for its line id.
func try(ctx context.Context, l *line.Lines, s *catalog.Snapshot, results map[string]error) ([]line.AttemptRecord, error) {
	return l.Try(ctx, request(s), func(ctx context.Context, attempt *line.Attempt) error {
		answer, err := attempt.Chat(ctx, chatcall.Call{})
		if err != nil {
			return err
		}
		answer.Body.Close()
		return results[attempt.Line.ID]
	})
}

func rejection() *upstream.Failure {
	return upstream.Classify(400, "",
		[]byte(`{"error":{"message":"too long","type":"invalid_request_error","code":"context_length_exceeded"}}`), nil)
}

// TestTry checks which lines get a request after the results of earlier attempts, and the client's
// error.
func TestTry(t *testing.T) {
	t.Parallel()
	fail := func(code fault.Code) error { return upstream.Fail(code, errors.New("cause")) }
	otherErr := errors.New("not a failure of a line")
	for _, tt := range []struct {
		name    string
		lines   []string
		results map[string]error
		called  string // lines called, in order
		code    fault.Code
		err     error // error that Try must return unchanged
	}{
		{name: "first answers", lines: []string{"a", "b"}, called: "a"},
		{name: "second answers", lines: []string{"a", "b", "c"}, results: map[string]error{"a": fail(fault.UpstreamTimeout)}, called: "a b"},
		{name: "no line answers", lines: []string{"a", "b"},
			results: map[string]error{"a": fail(fault.UpstreamBusy), "b": fail(fault.UpstreamTimeout)}, called: "a b", code: fault.UpstreamTimeout},
		{name: "all lines are busy", lines: []string{"a", "b"},
			results: map[string]error{"a": fail(fault.UpstreamBusy), "b": fail(fault.UpstreamBusy)}, called: "a b", code: fault.UpstreamBusy},
		{name: "a rejection is final", lines: []string{"a", "b"}, results: map[string]error{"a": rejection()}, called: "a",
			code: "context_length_exceeded"},
		{name: "a wrapped rejection", lines: []string{"a", "b"}, results: map[string]error{"a": fmt.Errorf("x: %w", rejection())},
			called: "a", code: "context_length_exceeded"},
		{name: "content_filter is final", lines: []string{"a", "b"}, results: map[string]error{"a": fail(fault.ContentFilter)}, called: "a",
			code: fault.ContentFilter},
		{name: "max_tokens_too_small is final", lines: []string{"a", "b"}, results: map[string]error{"a": fail(fault.MaxTokensTooSmall)},
			called: "a", code: fault.MaxTokensTooSmall},
		{name: "a disconnected client is final", lines: []string{"a", "b"}, results: map[string]error{"a": fail(fault.ClientClosed)}, called: "a",
			code: fault.ClientClosed},
		{name: "the prompt filter is reported before later failures", lines: []string{"a", "b"},
			results: map[string]error{"a": fail(fault.UpstreamPromptFilter), "b": fail(fault.UpstreamTimeout)},
			called:  "a b", code: fault.UpstreamPromptFilter},
		{name: "a rejection is reported before the prompt filter", lines: []string{"a", "b"},
			results: map[string]error{"a": fail(fault.UpstreamPromptFilter), "b": rejection()},
			called:  "a b", code: "context_length_exceeded"},
		{name: "another error is returned unchanged", lines: []string{"a", "b"}, results: map[string]error{"a": otherErr}, called: "a",
			err: otherErr},
		{name: "no line", called: "", code: fault.UpstreamUnavailable},
		{name: "a line that cannot be opened", lines: []string{"broken", "b"}, called: "broken b"},
		{name: "only a line that cannot be opened", lines: []string{"broken"}, called: "broken", code: fault.UpstreamUnavailable},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			l := line.New(line.Options{Open: (&provider{}).open})
			attempts, err := try(t.Context(), l, snapshot(1, orderedSpecs(tt.lines...)...), tt.results)
			var called []string
			for _, a := range attempts {
				called = append(called, a.Line)
			}
			if got := strings.Join(called, " "); got != tt.called {
				t.Errorf("called %q, want %q", got, tt.called)
			}
			var e *fault.Error
			switch {
			case tt.err != nil:
				if !errors.Is(err, tt.err) {
					t.Errorf("Try returned error %v, want %v", err, tt.err)
				}
			case tt.code == "":
				if err != nil {
					t.Errorf("Try failed: %v", err)
				}
			case !errors.As(err, &e) || e.Code != tt.code:
				t.Errorf("error %v, want %s", err, tt.code)
			case strings.Contains(e.Message(), "vendor") || strings.Contains(e.Message(), "line"):
				t.Errorf("the message contains internal data: %q", e.Message())
			}
		})
	}
}

// TestUnusableLinesGetNoCall checks that lines are skipped without a call if they lack their key,
// are disabled, or have an unknown provider.
func TestUnusableLinesGetNoCall(t *testing.T) {
	t.Parallel()
	out, disabled, form := spec("out"), spec("disabled"), spec("form")
	out.APIKey = "${NOT_SET}"
	disabled.Enabled = false
	form.Provider = "unknown"
	p := &provider{}
	attempts, err := try(t.Context(), line.New(line.Options{Open: p.open}), snapshot(1, out, disabled, form), nil)
	if fault.Of(err) == nil || fault.Of(err).Code != fault.UpstreamUnavailable || fault.Of(err).Status() != 502 {
		t.Errorf("Try returned error %v, want upstream_unavailable with status 502", err)
	}
	if len(attempts) != 2 || attempts[0].Skipped != "out_of_service" || attempts[1].Skipped != "out_of_service" || len(p.opened) != 0 {
		t.Errorf("attempts %v, opened adapters %v; want two lines skipped as out_of_service and no adapter", attempts, p.opened)
	}
}

// TestDeadlineEndsTry checks that no further line is called after the request's deadline or the
// client's disconnect.
func TestDeadlineEndsTry(t *testing.T) {
	t.Parallel()
	for cause, code := range map[error]fault.Code{context.DeadlineExceeded: fault.UpstreamTimeout, context.Canceled: fault.ClientClosed} {
		ctx, cancel := context.WithCancelCause(t.Context())
		s := snapshot(1, orderedSpecs("a", "b")...)
		attempts, err := line.New(line.Options{Open: (&provider{}).open}).Try(ctx, request(s),
			func(context.Context, *line.Attempt) error {
				cancel(cause)
				return upstream.Fail(fault.UpstreamBusy, nil)
			})
		if len(attempts) != 1 || fault.Of(err).Code != code {
			t.Errorf("ended by %v: %d attempts, error %v; want 1 attempt and %s", cause, len(attempts), err, code)
		}
	}
}

// TestTimeoutCountsAgainstFirstLine checks that a timeout counts only against the first line, because
// a later line has little time left.
func TestTimeoutCountsAgainstFirstLine(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := snapshot(1, orderedSpecs("a", "b")...)
		l := line.New(line.Options{Open: (&provider{}).open, Catalog: catalog.NewStaticWatcher(s)})
		for range 5 {
			ctx, cancel := context.WithTimeout(t.Context(), 15*time.Second)
			_, err := l.Try(ctx, request(s), func(ctx context.Context, _ *line.Attempt) error {
				ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
				defer cancel()
				<-ctx.Done()
				return upstream.ConnectionFailure(ctx, ctx.Err())
			})
			cancel()
			if got := fault.Of(err).Code; got != fault.UpstreamTimeout {
				t.Fatalf("error code %s, want upstream_timeout", got)
			}
		}
		statuses := l.Statuses()
		if statuses[0].State != "circuit_open" || statuses[1].State != "in_service" || statuses[1].Attempts != 0 {
			t.Errorf("statuses %+v, want only the first line out", statuses)
		}
	})
}

// TestAttemptRecords checks the records of a failed attempt and of an answer.
func TestAttemptRecords(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := snapshot(1, orderedSpecs("a", "b")...)
		attempts, err := line.New(line.Options{Open: (&provider{}).open}).Try(t.Context(), request(s),
			func(_ context.Context, attempt *line.Attempt) error {
				if want := "vendor-" + attempt.Line.ID; attempt.ProviderModel != want {
					t.Errorf("provider's model %q, want %q", attempt.ProviderModel, want)
				}
				time.Sleep(20 * time.Millisecond) // on the test's clock
				if attempt.Line.ID == "a" {
					return upstream.Classify(503, "text/plain", []byte("down"), nil)
				}
				return nil
			})
		if err != nil {
			t.Fatal(err)
		}
		want := []line.AttemptRecord{
			{Line: "a", Status: 503, Code: "upstream_unavailable", Cause: "text/plain: down", DurationMS: 20},
			{Line: "b", Status: 200, FirstByteMS: 20, DurationMS: 20},
		}
		if len(attempts) != 2 || attempts[0] != want[0] || attempts[1] != want[1] {
			t.Errorf("%+v\nwant %+v", attempts, want)
		}
	})
}

// TestAdaptersAreReused checks that requests of the two newest catalogs share adapters.
func TestAdaptersAreReused(t *testing.T) {
	t.Parallel()
	p := &provider{}
	l := line.New(line.Options{Open: p.open})
	first, second, third := snapshot(1, spec("a")), snapshot(2, spec("a")), snapshot(3, spec("a"))
	for i, step := range []struct {
		s      *catalog.Snapshot
		opened int
	}{
		{first, 1}, {first, 1}, {second, 2}, {first, 2}, {second, 2}, {third, 3}, {second, 3},
		{first, 4}, {first, 5}, // an old snapshot gets a new adapter
		{third, 5},
	} {
		if _, err := try(t.Context(), l, step.s, nil); err != nil {
			t.Fatal(err)
		}
		if len(p.opened) != step.opened {
			t.Fatalf("step %d: %d adapters were opened, want %d", i, len(p.opened), step.opened)
		}
	}
}

// TestStatusesAndMetrics checks the effect of answers, failures and broken answers on Statuses and
// on the metrics.
func TestStatusesAndMetrics(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		disabled, out := spec("disabled"), spec("out")
		disabled.Enabled, out.APIKey, out.MaxConcurrent = false, "${NOT_SET}", 7
		s := snapshot(1, spec("a"), disabled, out)
		registry := prometheus.NewPedanticRegistry()
		l := line.New(line.Options{Open: (&provider{}).open, Registry: registry, Catalog: catalog.NewStaticWatcher(s)})
		var answer *chatcall.Response
		var attempts []*line.Attempt
		run := func(wait time.Duration, result error) {
			_, _ = l.Try(t.Context(), request(s), func(ctx context.Context, attempt *line.Attempt) error {
				attempts = append(attempts, attempt)
				answer, _ = attempt.Chat(ctx, chatcall.Call{})
				time.Sleep(wait) // on the test's clock
				if result != nil {
					answer.Body.Close()
				}
				return result
			})
		}
		status := func() line.Status { return l.Statuses()[0] }

		if got := status(); got.SuccessRate != nil || got.FirstByteMS != nil || got.State != "in_service" || got.Attempts != 0 {
			t.Errorf("before the first attempt: status %+v, want no attempts and no rates", got)
		}
		run(30*time.Millisecond, nil)
		if got := status(); got.InFlight != 1 || *got.SuccessRate != 1 || *got.FirstByteMS != 30 {
			t.Errorf("while the answer streams: status %+v, want 1 call in flight and its first byte after 30 ms", got)
		}
		answer.Body.Close()
		answer.Body.Close()
		if got := status(); got.InFlight != 0 {
			t.Errorf("after two calls of Close: %d calls in flight, want 0", got.InFlight)
		}
		run(0, upstream.Fail(fault.UpstreamTimeout, errors.New("timeout")))
		run(0, rejection())                               // the request's fault
		run(0, upstream.Fail(fault.ClientClosed, nil))    // the client's fault
		run(0, upstream.Fail(fault.EmptyCompletion, nil)) // half a failure
		if got := status(); got.Attempts != 3 || *got.SuccessRate != 0.5 || got.Cause != "empty_completion" || got.InFlight != 0 {
			t.Errorf("after failures: status %+v, success rate %v; want 3 attempts and 0.5", got, *got.SuccessRate)
		}
		// A broken answer no longer counts as a success, and counts as a failure once.
		breakFailure := upstream.Fail(fault.UpstreamConnectionError, errors.New("connection lost"))
		attempts[0].RecordBreak(upstream.Fail(fault.ClientClosed, nil))
		attempts[0].RecordBreak(breakFailure)
		attempts[0].RecordBreak(breakFailure)
		attempts[1].RecordBreak(breakFailure) // the attempt had already failed
		if got := status(); got.Attempts != 3 || *got.SuccessRate != 0.5/3 {
			t.Errorf("after a broken answer: status %+v, success rate %v; want 3 attempts and 0.5/3", got, *got.SuccessRate)
		}
		statuses := l.Statuses()
		if statuses[1].State != "disabled" || statuses[2].State != "out_of_service" ||
			!strings.Contains(statuses[2].Cause, "NOT_SET") || statuses[2].MaxConcurrent != 7 {
			t.Errorf("statuses of unusable lines %+v, want disabled and out_of_service because of NOT_SET", statuses[1:])
		}
		checkMetrics(t, registry, addInitialSeries([]string{"a", "disabled", "out"}, map[string]float64{
			"tollgate_line_attempts_total a ok": 1, "tollgate_line_attempts_total a upstream_timeout": 1,
			"tollgate_line_attempts_total a rejected": 1, "tollgate_line_attempts_total a client_closed": 1,
			"tollgate_line_attempts_total a empty_completion": 1, "tollgate_line_broken_total a upstream_connection_error": 1,
			"tollgate_line_in_flight a": 0, "tollgate_line_first_byte_seconds a": 1, "tollgate_line_in_service a": 1,
			"tollgate_line_in_flight disabled": 0, "tollgate_line_first_byte_seconds disabled": 0,
			"tollgate_line_in_service disabled": 1, "tollgate_line_attempts_total disabled ok": 0,
			"tollgate_line_in_flight out": 0, "tollgate_line_first_byte_seconds out": 0,
			"tollgate_line_in_service out": 1, "tollgate_line_attempts_total out ok": 0,
		}))

		time.Sleep(6 * time.Minute) // on the test's clock; no attempt is recent any more
		if got := status(); got.Attempts != 0 || got.SuccessRate != nil || got.Cause != "" {
			t.Errorf("after six minutes: status %+v, want no recent attempts", got)
		}
		// The metrics of a deleted line are deleted too.
		s = snapshot(2, spec("b"))
		run(0, upstream.Fail(fault.UpstreamTimeout, nil))
		checkMetrics(t, registry, addInitialSeries([]string{"b"}, map[string]float64{
			"tollgate_line_attempts_total b ok": 0, "tollgate_line_attempts_total b upstream_timeout": 1,
			"tollgate_line_in_flight b": 0, "tollgate_line_first_byte_seconds b": 0, "tollgate_line_in_service b": 1,
		}))
	})
}

// TestCredentialIsRedacted checks that the line's key is redacted in failures of calls and of
// answers.
func TestCredentialIsRedacted(t *testing.T) {
	t.Parallel()
	const key = "sk-line-credential-0123456789"
	ln := spec("a")
	ln.APIKey = "${KEY}"
	doc := &catalog.Document{Models: []catalog.Model{{ID: "swift", Kind: catalog.KindChat}}, Lines: []catalog.LineSpec{ln}}
	s := catalog.NewSnapshot(1, doc,
		map[string]catalog.Provider{"fake": {Kinds: []catalog.Kind{catalog.KindChat}, Forms: []wire.Form{wire.FormChat, wire.FormMessages}}},
		func(string) (string, bool) { return key, true })
	failure := func() *upstream.Failure {
		return upstream.Classify(200, "", []byte(`{"error":{"type":"invalid_request_error","message":"bad `+key+`"}}`), nil)
	}
	l := line.New(line.Options{Open: (&provider{}).open})
	attempts, err := l.Try(t.Context(), request(s), func(context.Context, *line.Attempt) error { return failure() })
	if text := err.Error() + attempts[0].Cause; strings.Contains(text, key) || !strings.Contains(text, "bad [redacted]") {
		t.Errorf("the client's error and the record are %q, want the key redacted", text)
	}
	var attempt *line.Attempt
	if _, err := l.Try(t.Context(), request(s), func(_ context.Context, a *line.Attempt) error { attempt = a; return nil }); err != nil {
		t.Fatal(err)
	}
	f := failure()
	attempt.RecordBreak(f)
	if text := f.Error() + f.FaultInStream().Message(); strings.Contains(text, key) {
		t.Errorf("the failure of a broken answer is %q, want the key redacted", text)
	}
}

// tokenProvider opens adapters that have a token in addition to the line's key.
type tokenProvider struct{ provider }

const token = "cloud-token-0123456789"

func (*tokenProvider) Secrets() []string { return []string{token} }

// TestTokensAreRedacted checks that an adapter's token is redacted like the line's key.
func TestTokensAreRedacted(t *testing.T) {
	t.Parallel()
	s := snapshot(1, spec("a"))
	l := line.New(line.Options{Open: func(upstream.Target) (chatcall.Adapter, error) { return &tokenProvider{}, nil }})
	failure := func() *upstream.Failure {
		return upstream.Classify(200, "", []byte(`{"error":{"type":"invalid_request_error","message":"bad `+token+`"}}`), nil)
	}
	attempts, err := l.Try(t.Context(), request(s), func(context.Context, *line.Attempt) error { return failure() })
	if text := err.Error() + attempts[0].Cause; strings.Contains(text, token) {
		t.Errorf("the client's error and the record are %q, want the token redacted", text)
	}
	if _, err := l.Try(t.Context(), request(s), func(_ context.Context, attempt *line.Attempt) error {
		f, job := failure(), &upstream.JobFailure{Failure: failure(), Message: token}
		attempt.RecordBreak(f)
		attempt.RecordJobFailure(job)
		if text := f.Error() + job.Error() + job.Message; strings.Contains(text, token) {
			t.Errorf("the failures of an answer and a job are %q, want the token redacted", text)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
}

// addInitialSeries adds the initial series of lines, at zero, to the expected series.
func addInitialSeries(lines []string, want map[string]float64) map[string]float64 {
	for _, ln := range lines {
		for _, series := range []string{
			"attempts_total %s rejected", "attempts_total %s upstream_error", "attempts_total %s upstream_unavailable",
			"broken_total %s upstream_error",
			"broken_total %s upstream_unavailable", "busy_total %s", "probes_total %s ok", "ignored_fields_total %s", "gateway_counts_total %s",
			"left_total %s circuit_open", "left_total %s credentials_out", "charged_usd_total %s swift", "over_hold_usd_total %s swift",
			"implausible_cost_total %s",
		} {
			name := "tollgate_line_" + fmt.Sprintf(series, ln)
			want[name] += 0
		}
	}
	return want
}

// checkMetrics compares all series of a registry: counters and gauges by value, histograms by
// count.
func checkMetrics(t *testing.T, registry *prometheus.Registry, want map[string]float64) {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			name := f.GetName()
			for _, label := range m.GetLabel() {
				name += " " + label.GetValue()
			}
			got[name] = m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount())
		}
	}
	for name, value := range want {
		if v, ok := got[name]; !ok || v != value {
			t.Errorf("%s = %g (present %t), want %g", name, v, ok, value)
		}
	}
	for name := range got {
		if _, ok := want[name]; !ok {
			t.Errorf("unexpected series %s", name)
		}
	}
}

// TestRecentAttemptsAreBounded checks that only the last 128 attempts count, and that RecordBreak
// has no effect on older attempts.
func TestRecentAttemptsAreBounded(t *testing.T) {
	t.Parallel()
	s := snapshot(1, spec("a"))
	l := line.New(line.Options{Open: (&provider{}).open, Catalog: catalog.NewStaticWatcher(s)})
	var first *line.Attempt
	for i := range 300 {
		_, err := l.Try(t.Context(), request(s), func(_ context.Context, attempt *line.Attempt) error {
			if i == 0 {
				first = attempt
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	first.RecordBreak(upstream.Fail(fault.UpstreamConnectionError, nil))
	if got := l.Statuses()[0]; got.Attempts != 128 || *got.SuccessRate != 1 {
		t.Errorf("status %+v, success rate %v; want 128 attempts and 1", got, *got.SuccessRate)
	}
}
