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
	calls []string                     // "line", "line:probe"; or "new", "old:submit" and so on by key
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
	return hi(), nil
}

// hi returns an answer.
func hi() *chatcall.Response {
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

// ask runs Try once; the attempts make their calls with the adapters.
func ask(l *line.Lines, r line.RoutingRequest) ([]line.AttemptRecord, error) {
	return l.Try(context.Background(), r, func(ctx context.Context, on *line.Attempt) error {
		answer, err := on.Chat(ctx, chatcall.Call{Form: wire.FormChat})
		if err != nil {
			return err
		}
		return answer.Body.Close()
	})
}

// skipped lists the reasons for skipping lines.
func skipped(attempts []line.AttemptRecord) string {
	var words []string
	for _, a := range attempts {
		words = append(words, a.Line+":"+a.Skipped)
	}
	return strings.Join(words, " ")
}

func down() *upstream.Failure {
	return upstream.Fail(fault.UpstreamConnectionError, errors.New("refused"))
}

func noKey() *upstream.Failure {
	return upstream.Classify(401, "", []byte(`{"error":{"message":"no","code":"invalid_api_key"}}`), nil)
}

// runUpkeep runs the upkeep of lines until stop returns.
func runUpkeep(t *testing.T, l *line.Lines) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); l.Run(ctx) }()
	return func() {
		cancel()
		<-done
	}
}

// withUpkeep runs a test with the lines of a catalog and their upkeep on a synctest clock.
func withUpkeep(t *testing.T, s *catalog.Snapshot, play func(t *testing.T, p *fakeProvider, l *line.Lines, s *catalog.Snapshot)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		var p fakeProvider
		l := line.New(line.Options{Open: p.open, Catalog: catalog.NewStaticWatcher(s)})
		stop := runUpkeep(t, l)
		defer stop()
		play(t, &p, l, s)
	})
}

// askTimes runs Try n times and expects answers.
func askTimes(t *testing.T, l *line.Lines, s *catalog.Snapshot, n int) {
	t.Helper()
	for range n {
		if _, err := ask(l, request(s)); err != nil {
			t.Fatal(err)
		}
	}
}

// TestADeadLineCostsNothing checks that the line gets no request after five failures, until the
// gateway's own probe is answered.
func TestADeadLineCostsNothing(t *testing.T) {
	t.Parallel()
	withUpkeep(t, snapshot(1, inOrder("a", "b")...), func(t *testing.T, p *fakeProvider, l *line.Lines, s *catalog.Snapshot) {
		p.set("a", down())
		askTimes(t, l, s, 5)
		checkCalls(t, p, "a b a b a b a b a b")
		askTimes(t, l, s, 20)
		if got := p.takeCalls(); strings.Contains(got, "a") {
			t.Errorf("the dead line was called: %s", got)
		}
		if got := l.Statuses()[0]; got.State != "circuit_open" || got.CoolingUntil != time.Now().Add(30*time.Second).Unix() ||
			!strings.Contains(got.Cause, "refused") {
			t.Errorf("%+v", got)
		}
		time.Sleep(35 * time.Second) // on the test's clock, like all sleeps here
		checkCalls(t, p, "a:probe")
		p.set("a", nil)
		time.Sleep(62 * time.Second)
		checkCalls(t, p, "a:probe")
		if got := l.Statuses()[0]; got.State != "half_open" {
			t.Errorf("%+v", got)
		}
		askTimes(t, l, s, 3)
		checkCalls(t, p, "a a a")
		if got := l.Statuses()[0]; got.State != "in_service" {
			t.Errorf("%+v", got)
		}
	})
}

// TestAPanicGivesThePlaceBack checks that an attempt releases its slot and place even after a
// panic, so that a half-open line does not stay occupied.
func TestAPanicGivesThePlaceBack(t *testing.T) {
	t.Parallel()
	withUpkeep(t, snapshot(1, spec("a")), func(t *testing.T, p *fakeProvider, l *line.Lines, s *catalog.Snapshot) {
		p.set("a", down())
		for range 5 {
			_, _ = ask(l, request(s))
		}
		p.set("a", nil)
		time.Sleep(40 * time.Second)
		if got := l.Statuses()[0]; got.State != "half_open" {
			t.Fatalf("%+v", got)
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
			t.Errorf("%d in flight", got.InFlight)
		}
		askTimes(t, l, s, 3)
		checkCalls(t, p, "a a a")
	})
}

// TestEveryKindOfOutage checks that the line refuses requests with the right reason without a call,
// and that it serves its other models if one model is missing.
func TestEveryKindOfOutage(t *testing.T) {
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
				t.Fatalf("%v, %v", attempts, err)
			}
			p.set("a", nil)
			p.takeCalls()
			attempts, err = ask(l, request(s))
			if got := skipped(attempts); got != "a:"+tt.skipped || fault.Of(err).Code != fault.UpstreamUnavailable || p.takeCalls() != "" {
				t.Errorf("%s: skipped %s, error %v", tt.skipped, got, err)
			}
			time.Sleep(tt.wait)
			askTimes(t, l, s, 3)
			if got := l.Statuses()[0]; got.State != "in_service" || got.ModelsOut != nil {
				t.Errorf("%+v", got)
			}
		}
	})
}

// TestDoubtsAreProbedAtOnce checks that an unproven failure moves the request to the next line, and
// that a probe decides whether the line is out.
func TestDoubtsAreProbedAtOnce(t *testing.T) {
	t.Parallel()
	withUpkeep(t, snapshot(1, inOrder("a", "b")...), func(t *testing.T, p *fakeProvider, l *line.Lines, s *catalog.Snapshot) {
		hostile := func(status int) {
			_, err := l.Try(t.Context(), request(s), func(ctx context.Context, on *line.Attempt) error {
				if on.Line.ID == "a" {
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
			hostile(status)
			if got := l.Statuses()[0]; got.State != "in_service" || got.ModelsOut != nil || p.takeCalls() != "a:probe" {
				t.Errorf("after one unproven status %d: %+v", status, got)
			}
			time.Sleep(time.Minute) // on the test's clock
		}
		p.set("a", upstream.Classify(403, "", nil, nil)) // the probe fails too
		hostile(401)
		if got := l.Statuses()[0]; got.State != "credentials_out" || p.takeCalls() != "a:probe" {
			t.Errorf("after a 401 for the probe: %+v", got)
		}
	})
}

// TestRejectionsThatAnotherLineMayNotShare checks that a request rejected by one line goes to the
// next, and that the client gets the first rejection if no line can serve it.
func TestRejectionsThatAnotherLineMayNotShare(t *testing.T) {
	t.Parallel()
	s := snapshot(1, inOrder("a", "b")...)
	var p fakeProvider
	l := line.New(line.Options{Open: p.open, Catalog: catalog.NewStaticWatcher(s)})
	p.set("a", upstream.Classify(404, "", []byte(`{"error":{"message":"No endpoints found that support tool use"}}`), nil))
	if _, err := ask(l, request(s)); err != nil || p.takeCalls() != "a b" {
		t.Errorf("the second line serves the request: %v", err)
	}
	p.set("b", down())
	if _, err := ask(l, request(s)); fault.Of(err).Status() != 404 || !strings.Contains(fault.Of(err).Message(), "tool use") ||
		p.takeCalls() != "a b" {
		t.Errorf("no line serves the request: %v", err)
	}
	if got := l.Statuses()[0]; got.State != "in_service" || got.ModelsOut != nil || got.Attempts != 0 {
		t.Errorf("%+v", got)
	}
}

// TestBusy checks the error if all slots are taken. The error lists each line.
func TestBusy(t *testing.T) {
	t.Parallel()
	a, b, c := spec("a"), spec("b"), spec("c")
	a.Priority, b.Priority, c.Priority = 1, 2, 3
	a.MaxConcurrent, b.MaxConcurrent = 1, 1
	s := snapshot(1, a, b, c)
	var p fakeProvider
	p.set("c", upstream.Classify(429, "", nil, nil))
	l := line.New(line.Options{Open: p.open, Catalog: catalog.NewStaticWatcher(s)})
	var open []io.Closer
	try := func() error {
		_, err := l.Try(t.Context(), request(s), func(ctx context.Context, on *line.Attempt) error {
			answer, err := on.Chat(ctx, chatcall.Call{})
			if err == nil {
				open = append(open, answer.Body)
			}
			return err
		})
		return err
	}
	for range 2 {
		if err := try(); err != nil {
			t.Fatal(err)
		}
	}
	if err := try(); fault.Of(err).Code != fault.UpstreamBusy { // the third line cools after this request
		t.Errorf("third: %v", err)
	}
	p.takeCalls()
	for range 2 {
		attempts, err := ask(l, request(s))
		e := fault.Of(err)
		if e.Code != fault.RateLimitExceeded || e.Status() != 429 || e.RetryAfter != time.Second || p.takeCalls() != "" {
			t.Errorf("%v", err)
		}
		if got := skipped(attempts); got != "a:busy b:busy c:cooling" {
			t.Errorf("skipped %s", got)
		}
		if body := string(e.Body()); !strings.Contains(body,
			`"attempts":[{"place":1,"reason":"busy"},{"place":2,"reason":"busy"},{"place":3,"reason":"cooling_down"}]`) {
			t.Errorf("body %s", body)
		}
	}
	if got := l.Statuses()[0]; got.InFlight != 1 || got.Granted != 1 {
		t.Errorf("%+v", got)
	}
	open[0].Close()
	open[0].Close() // gives back one slot, not two
	if err := try(); err != nil || p.takeCalls() != "a" {
		t.Errorf("after the end of an attempt: %v", err)
	}
	if err := try(); fault.Of(err).Code != fault.RateLimitExceeded {
		t.Errorf("one slot was released twice: %v", err)
	}
}

// TestNoLine checks the error in each form if no line is healthy.
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
			t.Errorf("%s: %v, retry after %s, %v", form, err, e.RetryAfter, e.Fields)
		}
		if e.RetryAfter%time.Second != 0 || want.retry && e.Fields["retry_after"] != int64(e.RetryAfter/time.Second) {
			t.Errorf("%s: %s and %v", form, e.RetryAfter, e.Fields)
		}
	}
}

// TestPromptFilterTriesAnotherProviderFirst checks that lines of the same provider come last,
// because they have the same filter.
func TestPromptFilterTriesAnotherProviderFirst(t *testing.T) {
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
		t.Errorf("called %s, %v", got, err)
	}
}

// TestConversationsStay checks that the requests of a conversation use one line. If the line is
// out, only its own conversations move.
func TestConversationsStay(t *testing.T) {
	t.Parallel()
	s := snapshot(1, spec("a"), spec("b"), spec("c"))
	var p fakeProvider
	l := line.New(line.Options{Open: p.open})
	first := map[uint64]string{}
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
	round(func(c uint64, got string) { first[c] = got })
	round(func(c uint64, got string) {
		if got != first[c] {
			t.Errorf("conversation %d moved from %s to %s", c, first[c], got)
		}
	})
	p.set("b", down())
	round(func(c uint64, got string) {
		if first[c] != "b" && got != first[c] {
			t.Errorf("conversation %d moved from %s to %s although its line works", c, first[c], got)
		}
	})
	var lines []string
	for _, id := range first {
		lines = append(lines, id)
	}
	slices.Sort(lines)
	if got := slices.Compact(lines); len(got) != 3 {
		t.Errorf("only %v were used", got)
	}
}

// TestNewAddressNewHealth checks that a line's findings are cleared if the catalog changes its
// provider, and are kept otherwise.
func TestNewAddressNewHealth(t *testing.T) {
	t.Parallel()
	a := spec("a")
	s := snapshot(1, a)
	var p fakeProvider
	l := line.New(line.Options{Open: p.open, Catalog: catalog.NewStaticWatcher(s)})
	p.set("a", noKey())
	if _, err := ask(l, request(s)); err == nil {
		t.Fatal("no error")
	}
	a.Weight = 7
	*s = *snapshot(2, a)
	if got := l.Statuses()[0].State; got != "credentials_out" {
		t.Errorf("after another weight: %s", got)
	}
	a.BaseURL = "https://elsewhere"
	*s = *snapshot(3, a)
	if got := l.Statuses()[0].State; got != "in_service" {
		t.Errorf("after another address: %s", got)
	}
	if _, err := ask(l, request(s)); err == nil {
		t.Fatal("no error")
	}
	a.Options = map[string]any{"client_id": "another"} // another account for the credential
	*s = *snapshot(4, a)
	if got := l.Statuses()[0].State; got != "in_service" {
		t.Errorf("after another credential: %s", got)
	}
}

// TestTraceIsBounded checks that the attempts of a request over very many lines are bounded.
func TestTraceIsBounded(t *testing.T) {
	t.Parallel()
	var specs []catalog.LineSpec
	var p fakeProvider
	for i := range 200 {
		ln := spec(fmt.Sprintf("l%03d", i))
		ln.Priority = i
		specs = append(specs, ln)
		p.set(ln.ID, noKey())
	}
	l, r := line.New(line.Options{Open: p.open}), request(snapshot(1, specs...))
	attempts, _ := ask(l, r)
	if calls := len(strings.Fields(p.takeCalls())); calls != 200 || len(attempts) != 64 || attempts[0].Line != "l000" ||
		attempts[63].Line != "l199" {
		t.Errorf("%d lines called, %d attempts recorded, from %s to %s", calls, len(attempts), attempts[0].Line, attempts[len(attempts)-1].Line)
	}
	if attempts, _ = ask(l, r); len(attempts) != 64 || attempts[63].Line != "l199" || attempts[63].Skipped == "" {
		t.Errorf("%d attempts recorded", len(attempts))
	}
}

// TestPausesAreALastResort checks that other accounts respect one account's pause while another
// line can take them, now or in a moment, and ignore it otherwise.
func TestPausesAreALastResort(t *testing.T) {
	t.Parallel()
	a, b := spec("a"), spec("b")
	a.Priority, b.Priority, b.MaxConcurrent = 1, 2, 1
	s := snapshot(1, a, b)
	var p fakeProvider
	l := line.New(line.Options{Open: p.open, Catalog: catalog.NewStaticWatcher(s)})
	slow := upstream.Classify(429, "", nil, http.Header{"Retry-After": {"20"}})
	as := func(account string) ([]line.AttemptRecord, error) {
		r := request(s)
		r.Account = account
		return ask(l, r)
	}
	check := func(account, calls, skips string, code fault.Code) {
		t.Helper()
		attempts, err := as(account)
		if got := p.takeCalls(); got != calls || skips != "" && skipped(attempts) != skips || code == "" && err != nil ||
			code != "" && fault.Of(err).Code != code {
			t.Errorf("account %s: calls %q, skipped %q, error %v; want %q, %q and %q", account, got, skipped(attempts), err, calls, skips, code)
		}
	}
	p.set("a", slow)
	check("large", "a b", "", "")
	check("small", "b", "", "") // line b can take the request
	taken := make(chan struct{})
	leave := make(chan struct{})
	go func() {
		defer close(taken)
		_, _ = l.Try(context.Background(), request(s), func(context.Context, *line.Attempt) error {
			taken <- struct{}{}
			<-leave
			return context.Canceled
		})
	}()
	<-taken
	check("small", "", "a:cooling b:busy", fault.RateLimitExceeded)
	close(leave)
	<-taken
	p.set("b", slow)
	check("large", "b", "", fault.UpstreamBusy)
	check("large", "", "a:cooling b:cooling", fault.UpstreamUnavailable)
	p.set("a", nil)
	check("small", "a", "", "") // line b is skipped
	check("large", "a", "", "")
	p.set("a", slow)
	check("other", "a b", "", fault.UpstreamBusy)
	check("small", "b a", "", fault.UpstreamBusy)
	check("small", "", "a:cooling b:cooling", fault.UpstreamUnavailable)
	check("third", "a b", "", fault.UpstreamBusy) // no probe has confirmed the pauses
}
