package line_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
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
)

// fakeProvider is the provider of all lines, with scripted failures and a record of its calls.
type fakeProvider struct {
	mu    sync.Mutex
	fails map[string]*upstream.Failure // by line or key; nil if the call is answered
	calls []string                     // such as "line" and "line:probe"; with openKeys, "new" and "old:submit"
}

func (p *fakeProvider) open(t upstream.Target) (chatcall.Adapter, error) {
	return fakeLine{p, t.Line}, nil
}

// set makes calls of a line or with a key fail, or succeed if f is nil.
func (p *fakeProvider) set(name string, f *upstream.Failure) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.fails == nil {
		p.fails = map[string]*upstream.Failure{}
	}
	p.fails[name] = f
}

// takeCalls returns the calls since the previous call of takeCalls.
func (p *fakeProvider) takeCalls() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	calls := strings.Join(p.calls, " ")
	p.calls = nil
	return calls
}

// checkCalls checks the calls of a provider since the previous check.
func checkCalls(t *testing.T, p interface{ takeCalls() string }, want string) {
	t.Helper()
	if got := p.takeCalls(); got != want {
		t.Errorf("calls %q, want %q", got, want)
	}
}

// call records a call and returns the failure of a line or key.
func (p *fakeProvider) call(name, call string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.calls = append(p.calls, call)
	if f := p.fails[name]; f != nil {
		copied := *f
		return &copied
	}
	return nil
}

// chat answers a chat call. Probes are recorded with :probe.
func (p *fakeProvider) chat(name, call string, c chatcall.Call) (*chatcall.Response, error) {
	if strings.Contains(string(c.Body.Bytes()), "ping") {
		call += ":probe"
	}
	if err := p.call(name, call); err != nil {
		return nil, err
	}
	return textAnswer(), nil
}

// textAnswer returns an answer with the text hi.
func textAnswer() *chatcall.Response {
	return &chatcall.Response{ContentType: "application/json",
		Body: io.NopCloser(strings.NewReader(`{"choices":[{"message":{"content":"hi"}}]}`))}
}

type fakeLine struct {
	provider *fakeProvider
	line     string
}

func (l fakeLine) Chat(_ context.Context, c chatcall.Call) (*chatcall.Response, error) {
	return l.provider.chat(l.line, l.line, c)
}

// ask runs Try once. The attempts call the adapters.
func ask(l *line.Lines, r line.RoutingRequest) ([]line.AttemptRecord, error) {
	return l.Try(context.Background(), r, func(ctx context.Context, attempt *line.Attempt) error {
		answer, err := attempt.Chat(ctx, chatcall.Call{Form: wire.FormChat})
		if err != nil {
			return err
		}
		return answer.Body.Close()
	})
}

// skipReasons lists the skipped lines with their reasons.
func skipReasons(attempts []line.AttemptRecord) string {
	var words []string
	for _, a := range attempts {
		words = append(words, a.Line+":"+a.Skipped)
	}
	return strings.Join(words, " ")
}

func connectionRefused() *upstream.Failure {
	return upstream.Fail(fault.UpstreamConnectionError, errors.New("refused"))
}

func invalidKey() *upstream.Failure {
	return upstream.Classify(401, "", []byte(`{"error":{"message":"no","code":"invalid_api_key"}}`), nil)
}

// runUpkeep runs l.Run until stop is called.
func runUpkeep(t *testing.T, l *line.Lines) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); l.Run(ctx) }()
	return func() {
		cancel()
		<-done
	}
}

// withUpkeep runs a test on a synctest clock while l.Run runs.
func withUpkeep(t *testing.T, s *catalog.Snapshot, test func(t *testing.T, p *fakeProvider, l *line.Lines, s *catalog.Snapshot)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		var p fakeProvider
		l := line.New(line.Options{Open: p.open, Catalog: catalog.NewStaticWatcher(s)})
		stop := runUpkeep(t, l)
		defer stop()
		test(t, &p, l, s)
	})
}

// askTimes runs ask n times and fails the test on an error.
func askTimes(t *testing.T, l *line.Lines, s *catalog.Snapshot, n int) {
	t.Helper()
	for range n {
		if _, err := ask(l, request(s)); err != nil {
			t.Fatal(err)
		}
	}
}

// TestDeadLineGetsNoRequests checks that a line gets no request after five failures, until a probe
// succeeds.
func TestDeadLineGetsNoRequests(t *testing.T) {
	t.Parallel()
	withUpkeep(t, snapshot(1, orderedSpecs("a", "b")...), func(t *testing.T, p *fakeProvider, l *line.Lines, s *catalog.Snapshot) {
		p.set("a", connectionRefused())
		askTimes(t, l, s, 5)
		checkCalls(t, p, "a b a b a b a b a b")
		askTimes(t, l, s, 20)
		if got := p.takeCalls(); strings.Contains(got, "a") {
			t.Errorf("calls %q, want none of line a", got)
		}
		if got := l.Statuses()[0]; got.State != "circuit_open" || got.CoolingUntil != time.Now().Add(30*time.Second).Unix() ||
			!strings.Contains(got.Cause, "refused") {
			t.Errorf("status %+v, want circuit_open for 30 s", got)
		}
		time.Sleep(35 * time.Second) // on the test's clock, like all sleeps here
		checkCalls(t, p, "a:probe")
		p.set("a", nil)
		time.Sleep(62 * time.Second)
		checkCalls(t, p, "a:probe")
		if got := l.Statuses()[0]; got.State != "half_open" {
			t.Errorf("status after a successful probe: %+v, want half_open", got)
		}
		askTimes(t, l, s, 3)
		checkCalls(t, p, "a a a")
		if got := l.Statuses()[0]; got.State != "in_service" {
			t.Errorf("status after three answers: %+v, want in_service", got)
		}
	})
}

// TestPanicReleasesPlace checks that an attempt ends after a panic, so that a half-open line does
// not stay occupied.
func TestPanicReleasesPlace(t *testing.T) {
	t.Parallel()
	withUpkeep(t, snapshot(1, spec("a")), func(t *testing.T, p *fakeProvider, l *line.Lines, s *catalog.Snapshot) {
		p.set("a", connectionRefused())
		for range 5 {
			_, _ = ask(l, request(s))
		}
		p.set("a", nil)
		time.Sleep(40 * time.Second)
		if got := l.Statuses()[0]; got.State != "half_open" {
			t.Fatalf("status %+v, want half_open", got)
		}
		p.takeCalls()
		func() {
			defer func() {
				if recover() == nil {
					t.Error("the panic did not reach the caller")
				}
			}()
			_, _ = l.Try(t.Context(), request(s), func(context.Context, *line.Attempt) error { panic("a defect") })
		}()
		if got := l.Statuses()[0]; got.InFlight != 0 {
			t.Errorf("%d calls in flight after a panic, want 0", got.InFlight)
		}
		askTimes(t, l, s, 3)
		checkCalls(t, p, "a a a")
	})
}

// TestOutageReasons checks that a line out of service refuses requests without a call and with the
// right reason, and that it returns after the wait.
func TestOutageReasons(t *testing.T) {
	t.Parallel()
	withUpkeep(t, snapshot(1, spec("a")), func(t *testing.T, p *fakeProvider, l *line.Lines, s *catalog.Snapshot) {
		for _, tt := range []struct {
			failure *upstream.Failure
			skipped string
			wait    time.Duration
		}{
			{upstream.Classify(429, "", []byte(`{"error":{"message":"slow"}}`), http.Header{"Retry-After": {"7"}}), "cooling", 7 * time.Second},
			{upstream.Classify(401, "", []byte(`{"error":{"message":"no","code":"invalid_api_key"}}`), nil), "credentials_out",
				5*time.Minute + time.Second},
			{upstream.Classify(404, "", []byte(`{"error":{"message":"no","code":"model_not_found"}}`), nil), "model_out",
				5*time.Minute + time.Second},
		} {
			p.set("a", tt.failure)
			attempts, err := ask(l, request(s))
			if len(attempts) != 1 || err == nil {
				t.Fatalf("first request: attempts %v, error %v; want one failed attempt", attempts, err)
			}
			p.set("a", nil)
			p.takeCalls()
			attempts, err = ask(l, request(s))
			if got := skipReasons(attempts); got != "a:"+tt.skipped || fault.Of(err).Code != fault.UpstreamUnavailable || p.takeCalls() != "" {
				t.Errorf("second request: skipped %q, error %v; want a:%s and upstream_unavailable, without a call", got, err, tt.skipped)
			}
			time.Sleep(tt.wait)
			askTimes(t, l, s, 3)
			if got := l.Statuses()[0]; got.State != "in_service" || got.ModelsOut != nil {
				t.Errorf("status after the wait: %+v, want in_service", got)
			}
		}
	})
}

// TestDoubtsAreProbedAtOnce checks that an unproven failure moves the request to the next line, and
// that a probe decides whether the line is out.
func TestDoubtsAreProbedAtOnce(t *testing.T) {
	t.Parallel()
	withUpkeep(t, snapshot(1, orderedSpecs("a", "b")...), func(t *testing.T, p *fakeProvider, l *line.Lines, s *catalog.Snapshot) {
		sendHostile := func(status int) {
			_, err := l.Try(t.Context(), request(s), func(ctx context.Context, attempt *line.Attempt) error {
				if attempt.Line.ID == "a" {
					return upstream.Classify(status, "", nil, nil)
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		for _, status := range []int{401, 403, 404} {
			sendHostile(status)
			if got := l.Statuses()[0]; got.State != "in_service" || got.ModelsOut != nil || p.takeCalls() != "a:probe" {
				t.Errorf("after one unproven status %d: line %+v, want in_service and one probe", status, got)
			}
			time.Sleep(time.Minute) // on the test's clock
		}
		p.set("a", upstream.Classify(403, "", nil, nil)) // the probe fails too
		sendHostile(401)
		if got := l.Statuses()[0]; got.State != "credentials_out" || p.takeCalls() != "a:probe" {
			t.Errorf("after the probe failed too: line %+v, want credentials_out", got)
		}
	})
}

// TestRejectionTriesNextLine checks that the next line gets a request that one line rejected, and
// that the client gets the rejection if the next line fails.
func TestRejectionTriesNextLine(t *testing.T) {
	t.Parallel()
	s := snapshot(1, orderedSpecs("a", "b")...)
	var p fakeProvider
	l := line.New(line.Options{Open: p.open, Catalog: catalog.NewStaticWatcher(s)})
	p.set("a", upstream.Classify(404, "", []byte(`{"error":{"message":"No endpoints found that support tool use"}}`), nil))
	if _, err := ask(l, request(s)); err != nil || p.takeCalls() != "a b" {
		t.Errorf("error %v, want an answer from line b", err)
	}
	p.set("b", connectionRefused())
	if _, err := ask(l, request(s)); fault.Of(err).Status() != 404 || !strings.Contains(fault.Of(err).Message(), "tool use") ||
		p.takeCalls() != "a b" {
		t.Errorf("error %v, want the 404 of line a after calls of both lines", err)
	}
	if got := l.Statuses()[0]; got.State != "in_service" || got.ModelsOut != nil || got.Attempts != 0 {
		t.Errorf("status of line a: %+v, want in_service without attempts", got)
	}
}

// TestBusy checks that the client's error lists each line if no slot is free, and that a closed
// answer releases its slot once.
func TestBusy(t *testing.T) {
	t.Parallel()
	a, b, c := spec("a"), spec("b"), spec("c")
	a.Priority, b.Priority, c.Priority = 1, 2, 3
	a.MaxConcurrent, b.MaxConcurrent = 1, 1
	s := snapshot(1, a, b, c)
	var p fakeProvider
	p.set("c", upstream.Classify(429, "", nil, nil))
	l := line.New(line.Options{Open: p.open, Catalog: catalog.NewStaticWatcher(s)})
	var bodies []io.Closer
	tryOnce := func() error {
		_, err := l.Try(t.Context(), request(s), func(ctx context.Context, attempt *line.Attempt) error {
			answer, err := attempt.Chat(ctx, chatcall.Call{})
			if err == nil {
				bodies = append(bodies, answer.Body)
			}
			return err
		})
		return err
	}
	for range 2 {
		if err := tryOnce(); err != nil {
			t.Fatal(err)
		}
	}
	if err := tryOnce(); fault.Of(err).Code != fault.UpstreamBusy { // the third line cools after this request
		t.Errorf("third request: error %v, want upstream_busy", err)
	}
	p.takeCalls()
	for range 2 {
		attempts, err := ask(l, request(s))
		e := fault.Of(err)
		if e.Code != fault.RateLimitExceeded || e.Status() != 429 || e.RetryAfter != time.Second || p.takeCalls() != "" {
			t.Errorf("error %v, want rate_limit_exceeded with Retry-After 1 s and no call", err)
		}
		if got := skipReasons(attempts); got != "a:busy b:busy c:cooling" {
			t.Errorf("skipped %q, want a:busy b:busy c:cooling", got)
		}
		if body := string(e.Body()); !strings.Contains(body,
			`"attempts":[{"place":1,"reason":"busy"},{"place":2,"reason":"busy"},{"place":3,"reason":"cooling_down"}]`) {
			t.Errorf("body %s, want the skipped lines in attempts", body)
		}
	}
	if got := l.Statuses()[0]; got.InFlight != 1 || got.Granted != 1 {
		t.Errorf("status %+v, want one call in flight and one slot", got)
	}
	bodies[0].Close()
	bodies[0].Close() // gives back one slot, not two
	if err := tryOnce(); err != nil || p.takeCalls() != "a" {
		t.Errorf("after the end of an attempt: error %v, want a call of line a", err)
	}
	if err := tryOnce(); fault.Of(err).Code != fault.RateLimitExceeded {
		t.Errorf("error %v, want rate_limit_exceeded, because only one slot was released", err)
	}
}

// TestUntranslatableForAllLines checks the error for a request that the form of a line cannot express,
// while another line has no free slot: a line of the same form could not express it either.
func TestUntranslatableForAllLines(t *testing.T) {
	t.Parallel()
	wrong := fault.At(fault.InvalidRequest, "speed", "speed is not offered.")
	for form, want := range map[wire.Form]fault.Code{wire.FormChat: fault.InvalidRequest, wire.FormMessages: fault.RateLimitExceeded} {
		a, b := spec("a"), spec("b")
		a.Priority, b.Priority, b.MaxConcurrent, b.Forms = 1, 2, 1, []wire.Form{form}
		s := snapshot(1, a, b)
		l := line.New(line.Options{Open: (&fakeProvider{}).open, Catalog: catalog.NewStaticWatcher(s)})
		tryOnce := func() error {
			_, err := l.Try(t.Context(), request(s), func(ctx context.Context, attempt *line.Attempt) error {
				if attempt.Line.ID == "a" {
					return line.UntranslatableError{Err: wrong}
				}
				_, err := attempt.Chat(ctx, chatcall.Call{}) // the answer stays open and keeps its slot
				return err
			})
			return err
		}
		if err := tryOnce(); err != nil {
			t.Fatal(form, err)
		}
		if err := tryOnce(); fault.Of(err).Code != want {
			t.Errorf("with a busy line of the form %s: error %v, want %s", form, err, want)
		}
	}
}

// TestNoLine checks the status, code and Retry-After in each form for a model without lines.
func TestNoLine(t *testing.T) {
	t.Parallel()
	for form, want := range map[wire.Form]struct {
		code   fault.Code
		status int
		retry  bool
	}{
		wire.FormChat:      {fault.UpstreamUnavailable, 502, false},
		wire.FormResponses: {fault.ServiceUnavailable, 503, true},
		wire.FormMessages:  {fault.ServiceUnavailable, 503, true}, // the HTTP layer omits the header
	} {
		s := snapshot(1)
		r := request(s)
		r.Form = form
		_, err := ask(line.New(line.Options{Open: (&fakeProvider{}).open}), r)
		e := fault.Of(err)
		if e.Code != want.code || e.Status() != want.status || (e.RetryAfter > 0) != want.retry ||
			(e.Fields["retry_after"] != nil) != want.retry {
			t.Errorf("%s: error %v, Retry-After %s, fields %v; want %+v", form, err, e.RetryAfter, e.Fields, want)
		}
		if e.RetryAfter%time.Second != 0 || want.retry && e.Fields["retry_after"] != int64(e.RetryAfter/time.Second) {
			t.Errorf("%s: Retry-After %s and fields %v, want equal whole seconds", form, e.RetryAfter, e.Fields)
		}
	}
}

// TestPromptFilterPrefersOtherProviders checks that lines of the same provider come last,
// because they have the same filter.
func TestPromptFilterPrefersOtherProviders(t *testing.T) {
	t.Parallel()
	var specs []catalog.LineSpec
	for i, address := range []string{"https://one/v1", "https://one/v2", "https://two", "https://one", "https://three"} {
		ln := spec(string(rune('a' + i)))
		ln.Priority, ln.BaseURL = i, address
		specs = append(specs, ln)
	}
	s := snapshot(1, specs...)
	var p fakeProvider
	for _, ln := range specs {
		p.set(ln.ID, upstream.Fail(fault.UpstreamPromptFilter, errors.New("flagged")))
	}
	_, err := ask(line.New(line.Options{Open: p.open}), request(s))
	if got := p.takeCalls(); got != "a c e b d" || fault.Of(err).Code != fault.UpstreamPromptFilter {
		t.Errorf("called %q, error %v; want a c e b d and upstream_prompt_filter", got, err)
	}
}

// TestConversationsKeepTheirLine checks that the requests of a conversation use one line, and that
// only conversations of a line out of service move.
func TestConversationsKeepTheirLine(t *testing.T) {
	t.Parallel()
	s := snapshot(1, spec("a"), spec("b"), spec("c"))
	var p fakeProvider
	l := line.New(line.Options{Open: p.open})
	lineOf := map[uint64]string{}
	round := func(check func(conversation uint64, got string)) {
		for conversation := range uint64(60) {
			r := request(s)
			r.Conversation = conversation
			if _, err := ask(l, r); err != nil {
				t.Fatal(err)
			}
			calls := strings.Fields(p.takeCalls())
			check(conversation, calls[len(calls)-1])
		}
	}
	round(func(c uint64, got string) { lineOf[c] = got })
	round(func(c uint64, got string) {
		if got != lineOf[c] {
			t.Errorf("conversation %d moved from %s to %s", c, lineOf[c], got)
		}
	})
	p.set("b", connectionRefused())
	round(func(c uint64, got string) {
		if lineOf[c] != "b" && got != lineOf[c] {
			t.Errorf("conversation %d moved from %s to %s although its line works", c, lineOf[c], got)
		}
	})
	var lines []string
	for _, id := range lineOf {
		lines = append(lines, id)
	}
	slices.Sort(lines)
	if got := slices.Compact(lines); len(got) != 3 {
		t.Errorf("conversations used the lines %v, want all three", got)
	}
}

// TestNewAccountClearsHealth checks that a line's health is cleared if the catalog changes the line's
// address or account, and is kept otherwise.
func TestNewAccountClearsHealth(t *testing.T) {
	t.Parallel()
	a := spec("a")
	s := snapshot(1, a)
	var p fakeProvider
	l := line.New(line.Options{Open: p.open, Catalog: catalog.NewStaticWatcher(s)})
	p.set("a", invalidKey())
	if _, err := ask(l, request(s)); err == nil {
		t.Fatal("the first request succeeded with a refused credential")
	}
	a.Weight = 7
	*s = *snapshot(2, a)
	if got := l.Statuses()[0].State; got != "credentials_out" {
		t.Errorf("state after another weight: %s, want credentials_out", got)
	}
	a.BaseURL = "https://elsewhere"
	*s = *snapshot(3, a)
	if got := l.Statuses()[0].State; got != "in_service" {
		t.Errorf("state after another address: %s, want in_service", got)
	}
	if _, err := ask(l, request(s)); err == nil {
		t.Fatal("the second request succeeded with a refused credential")
	}
	a.Options = map[string]any{"client_id": "another"} // another account for the credential
	*s = *snapshot(4, a)
	if got := l.Statuses()[0].State; got != "in_service" {
		t.Errorf("state after another credential: %s, want in_service", got)
	}
}

// TestAttemptRecordsAreBounded checks that a request has at most 64 records, the last one included.
func TestAttemptRecordsAreBounded(t *testing.T) {
	t.Parallel()
	var specs []catalog.LineSpec
	var p fakeProvider
	for i := range 200 {
		ln := spec(fmt.Sprintf("l%03d", i))
		ln.Priority = i
		specs = append(specs, ln)
		p.set(ln.ID, invalidKey())
	}
	l, r := line.New(line.Options{Open: p.open}), request(snapshot(1, specs...))
	attempts, _ := ask(l, r)
	if calls := len(strings.Fields(p.takeCalls())); calls != 200 || len(attempts) != 64 || attempts[0].Line != "l000" ||
		attempts[63].Line != "l199" {
		t.Errorf("%d lines called, %d attempts recorded; want 200 and 64, the last one of line l199", calls, len(attempts))
	}
	if attempts, _ = ask(l, r); len(attempts) != 64 || attempts[63].Line != "l199" || attempts[63].Skipped == "" {
		t.Errorf("%d skipped lines recorded, want 64, the last one l199", len(attempts))
	}
}

// TestPausesAreALastResort checks that other accounts respect one account's pause while another line
// is available or busy, and otherwise use the paused line.
func TestPausesAreALastResort(t *testing.T) {
	t.Parallel()
	a, b := spec("a"), spec("b")
	a.Priority, b.Priority, b.MaxConcurrent = 1, 2, 1
	s := snapshot(1, a, b)
	var p fakeProvider
	l := line.New(line.Options{Open: p.open, Catalog: catalog.NewStaticWatcher(s)})
	rateLimit := upstream.Classify(429, "", nil, http.Header{"Retry-After": {"20"}})
	askAs := func(account string) ([]line.AttemptRecord, error) {
		r := request(s)
		r.Account = account
		return ask(l, r)
	}
	check := func(account, calls, skips string, code fault.Code) {
		t.Helper()
		attempts, err := askAs(account)
		if got := p.takeCalls(); got != calls || skips != "" && skipReasons(attempts) != skips || code == "" && err != nil ||
			code != "" && fault.Of(err).Code != code {
			t.Errorf("account %s: calls %q, skipped %q, error %v; want %q, %q and %q", account, got, skipReasons(attempts), err, calls, skips, code)
		}
	}
	p.set("a", rateLimit)
	check("large", "a b", "", "")
	check("small", "b", "", "") // line b can take the request
	slotTaken := make(chan struct{})
	releaseSlot := make(chan struct{})
	go func() {
		defer close(slotTaken)
		_, _ = l.Try(context.Background(), request(s), func(context.Context, *line.Attempt) error {
			slotTaken <- struct{}{}
			<-releaseSlot
			return context.Canceled
		})
	}()
	<-slotTaken
	check("small", "", "a:cooling b:busy", fault.RateLimitExceeded)
	close(releaseSlot)
	<-slotTaken
	p.set("b", rateLimit)
	check("large", "b", "", fault.UpstreamBusy)
	check("large", "", "a:cooling b:cooling", fault.UpstreamUnavailable)
	p.set("a", nil)
	check("small", "a", "", "") // line b is skipped
	check("large", "a", "", "")
	p.set("a", rateLimit)
	check("other", "a b", "", fault.UpstreamBusy)
	check("small", "b a", "", fault.UpstreamBusy)
	check("small", "", "a:cooling b:cooling", fault.UpstreamUnavailable)
	check("third", "a b", "", fault.UpstreamBusy) // no probe has confirmed the pauses
}
