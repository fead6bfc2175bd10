package chat

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"sync"
	"testing"
	"time"

	"tollgate/internal/call"
	"tollgate/internal/catalog"
	"tollgate/internal/fault"
	"tollgate/internal/ledger"
	"tollgate/internal/line"
	"tollgate/internal/upstream"
	"tollgate/internal/upstream/chatcall"
	"tollgate/internal/wire"
	"tollgate/internal/wire/completions"
	"tollgate/internal/wire/messages"
	"tollgate/internal/wire/rawjson"
	"tollgate/internal/wire/responses"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("database/sql.(*DB).connectionOpener"))
}

// document is the catalog of these tests. A million tokens cost a dollar in and ten dollars out, so
// that amounts are easy to read.
const document = `
models:
  - id: swift-1
    kind: chat
    context_window: 100000
    max_output_tokens: 1000
    price: {input: 1, cached_input: 0.5, output: 10, options: {service_tier: {priority: 2}}, tools: {web_search: 0.01}}
  - id: default-1
    kind: chat
    context_window: 100000
    max_output_tokens: 1000
    default_output_tokens: 100
    reasoning: true
    price: {input: 1, output: 10}
lines:
  - id: first
    provider: script
    models: {swift-1: vendor-model, default-1: vendor-model}
    timeouts: {first_token: 10s, idle: 20s, total: 30s}
    error_sentences: ["^service overloaded"]
  - id: second
    provider: script
    models: {swift-1: vendor-model}
    priority: 2
    timeouts: {first_token: 10s, idle: 20s, total: 30s}
`

// snapshot returns the catalog of these tests.
func snapshot(t testing.TB) *catalog.Snapshot {
	t.Helper()
	return snapshotOf(t, document, wire.FormChat)
}

// snapshotOf returns the catalog of a document with lines of one form.
func snapshotOf(t testing.TB, document string, on wire.Form) *catalog.Snapshot {
	t.Helper()
	providers := map[string]catalog.Provider{"script": {Kinds: []catalog.Kind{catalog.KindChat}, Forms: []wire.Form{on}}}
	doc, _, err := catalog.Parse([]byte(document), providers)
	if err != nil {
		t.Fatal(err)
	}
	return catalog.NewSnapshot(1, doc, providers, func(string) (string, bool) { return "", false })
}

// reply is the answer of a scripted provider: a failure, or a body sent in pieces.
type reply struct {
	failure *upstream.Failure
	pieces  []string        // read one by one
	delays  []time.Duration // before each piece; the last one is also for all further pieces
	err     error           // at the end; nil is the end of the body
	stall   bool            // the end never comes
}

// pieces returns a reply with a body in pieces.
func pieces(body ...string) reply { return reply{pieces: body} }

// failing returns a reply with a failure.
func failing(code fault.Code) reply {
	return reply{failure: upstream.Fail(code, errors.New("the script fails"))}
}

// rejecting returns a reply with status 400 and an error object.
func rejecting(members string, args ...any) reply {
	body := fmt.Appendf(nil, `{"error":{`+members+`}}`, args...)
	return reply{failure: upstream.Classify(400, "application/json", body, nil)}
}

// provider is an adapter for tests: it answers with its replies in turn and
// fails the test on surplus calls.
type provider struct {
	t testing.TB

	mu      sync.Mutex
	replies []reply
	calls   []chatcall.Call
	open    int // unclosed bodies
	left    int // calls and reads ended by the caller
}

// Chat implements chatcall.Adapter.
func (p *provider) Chat(ctx context.Context, c chatcall.Call) (*chatcall.Response, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	c.Body = rawjson.Pieces{bytes.Clone(c.Body.Bytes())}
	p.calls = append(p.calls, c)
	if len(p.replies) == 0 {
		p.t.Error("a call that the script has no reply for")
		return nil, upstream.Fail(fault.UpstreamUnavailable, errors.New("no reply"))
	}
	r := p.replies[0]
	p.replies = p.replies[1:]
	if r.failure != nil {
		failure := *r.failure // a copy, because callers may change it
		return nil, &failure
	}
	p.open++
	contentType := "application/json"
	if c.Stream {
		contentType = "text/event-stream; charset=utf-8"
	}
	return &chatcall.Response{Body: &scripted{ctx: ctx, provider: p, reply: r}, ContentType: contentType, Stream: c.Stream}, nil
}

// scripted is the body of a reply.
type scripted struct {
	ctx      context.Context
	provider *provider
	reply    reply
	rest     string
	closed   bool
}

// Read implements io.Reader.
func (s *scripted) Read(b []byte) (int, error) {
	if s.rest == "" {
		if err := s.wait(); err != nil {
			s.provider.mu.Lock()
			s.provider.left++
			s.provider.mu.Unlock()
			return 0, err
		}
	}
	if s.rest == "" {
		if s.reply.err != nil {
			return 0, s.reply.err
		}
		return 0, io.EOF
	}
	n := copy(b, s.rest)
	s.rest = s.rest[n:]
	return n, nil
}

// wait makes the next piece the rest, or finds the caller gone.
func (s *scripted) wait() error {
	if err := s.ctx.Err(); err != nil {
		return err
	}
	if len(s.reply.pieces) == 0 {
		if !s.reply.stall {
			return nil
		}
		<-s.ctx.Done()
		return s.ctx.Err()
	}
	if delays := s.reply.delays; len(delays) > 0 {
		select {
		case <-time.After(delays[0]):
		case <-s.ctx.Done():
			return s.ctx.Err()
		}
		s.reply.delays = delays[min(1, len(delays)-1):]
	}
	s.rest, s.reply.pieces = s.reply.pieces[0], s.reply.pieces[1:]
	return nil
}

// Close implements io.Closer.
func (s *scripted) Close() error {
	s.provider.mu.Lock()
	defer s.provider.mu.Unlock()
	if s.closed {
		s.provider.t.Error("a body was closed twice")
	}
	s.closed = true
	s.provider.open--
	return nil
}

// fakeLedger is a ledger for tests with scripted results and the contract of package ledger.
type fakeLedger struct {
	t testing.TB

	mu         sync.Mutex
	admitError error // of Admit
	failing    error // of Settle
	settling   func()
	amounts    []ledger.Admission
	ends       []ledger.End
	released   []bool
	progress   []ledger.Progress
	lost       bool // the node was declared dead
	refusals   []ledger.Refusal
	isSettled  bool
}

func (b *fakeLedger) admit(ctx context.Context, a ledger.Admission) (call.RequestHold, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.admitError != nil {
		return nil, b.admitError
	}
	b.amounts = append(b.amounts, a)
	return b, nil
}

// Progress implements hold.
func (b *fakeLedger) Progress(p ledger.Progress) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.progress = append(b.progress, p)
}

// Lost implements hold.
func (b *fakeLedger) Lost() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.lost
}

// Settle implements hold.
func (b *fakeLedger) Settle(ctx context.Context, e ledger.End) error {
	if b.settling != nil {
		b.settling()
	}
	if ctx.Err() != nil {
		b.t.Error("a settlement ended with its client")
	}
	b.end(e, false)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.isSettled = b.failing == nil
	return b.failing
}

// Release implements hold.
func (b *fakeLedger) Release(e ledger.End) { b.end(e, true) }

func (b *fakeLedger) end(e ledger.End, released bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.ends) > 0 {
		b.t.Errorf("a hold was ended twice: %+v, %+v", b.ends[0], e)
	}
	b.ends, b.released = append(b.ends, e), append(b.released, released)
}

func (b *fakeLedger) settled() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.isSettled
}

// client is the connection to a client. It records the writes and their order relative to the
// settlement.
type client struct {
	header http.Header
	books  *fakeLedger

	mu       sync.Mutex
	status   int
	pending  []byte   // written, not flushed
	writes   []string // the bytes of each flush
	early    string   // the bytes sent before the settlement
	failing  error    // of writes, from the second on
	onFlush  func(sent string)
	onWrite  func(size int) // may take its time, up to the deadline
	deadline time.Time
}

// Header implements http.ResponseWriter.
func (c *client) Header() http.Header { return c.header }

// WriteHeader implements http.ResponseWriter.
func (c *client) WriteHeader(status int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.status = status
}

// Write implements http.ResponseWriter.
func (c *client) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.failing != nil && len(c.writes) > 0 {
		return 0, c.failing
	}
	if c.onWrite != nil {
		if c.onWrite(len(p)); time.Now().After(c.deadline) {
			return 0, os.ErrDeadlineExceeded
		}
	}
	c.pending = append(c.pending, p...)
	return len(p), nil
}

// FlushError implements the method used by http.ResponseController.
func (c *client) FlushError() error {
	c.mu.Lock()
	sent := string(c.pending)
	c.pending = nil
	c.writes = append(c.writes, sent)
	if !c.books.settled() {
		c.early += sent
	}
	onFlush := c.onFlush
	c.mu.Unlock()
	if onFlush != nil {
		onFlush(sent)
	}
	return nil
}

// SetWriteDeadline implements the method used by http.ResponseController.
func (c *client) SetWriteDeadline(t time.Time) error {
	c.deadline = t
	return nil
}

// body returns all bytes of the client's answer.
func (c *client) body() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var b bytes.Buffer
	for _, w := range c.writes {
		b.WriteString(w)
	}
	b.Write(c.pending)
	return b.String()
}

// testRequest is one request through a conductor with all its surroundings faked.
type testRequest struct {
	t        testing.TB
	provider *provider
	books    *fakeLedger
	client   *client
	opts     call.Options
	observed Options
	ctx      context.Context
	lines    *line.Lines // once it ran
}

func newTrial(t testing.TB, replies ...reply) *testRequest {
	b := &fakeLedger{t: t}
	return &testRequest{
		t: t, books: b, provider: &provider{t: t, replies: replies},
		client: &client{header: http.Header{}, books: b}, ctx: context.Background(),
	}
}

// outcome is the result of a trial: the returned error, or a panic.
type outcome struct {
	err error
	cut bool
}

// leaveAfter disconnects the client after a time.
func (tr *testRequest) leaveAfter(d time.Duration) {
	ctx, leave := context.WithCancel(tr.t.Context())
	tr.ctx = ctx
	time.AfterFunc(d, leave)
}

// run conducts a request with the given body.
func (tr *testRequest) run(body string) outcome {
	tr.t.Helper()
	return tr.send(chatCall(tr.t, snapshot(tr.t), body))
}

// mustRun is run for a request with an answer.
func (tr *testRequest) mustRun(body string) {
	tr.t.Helper()
	tr.mustSend(chatCall(tr.t, snapshot(tr.t), body))
}

// mustSend is send for a request with an answer.
func (tr *testRequest) mustSend(c AcceptedRequest) {
	tr.t.Helper()
	if out := tr.send(c); out.err != nil || out.cut {
		tr.t.Fatalf("%+v; the client got %s", out, tr.client.body())
	}
}

// send conducts a call of any form.
func (tr *testRequest) send(c AcceptedRequest) (out outcome) {
	tr.t.Helper()
	opts := tr.opts
	if tr.lines == nil {
		tr.lines = line.New(line.Options{
			Open:    func(upstream.Target) (chatcall.Adapter, error) { return tr.provider, nil },
			Catalog: catalog.NewStaticWatcher(c.Snapshot),
		})
	}
	opts.Lines = tr.lines
	conductor := New(call.New(opts), tr.observed)
	conductor.Admit = tr.books.admit
	conductor.LogRefused = func(r ledger.Refusal) { tr.books.refusals = append(tr.books.refusals, r) }
	defer func() {
		if r := recover(); r != nil {
			if err, ok := r.(error); !ok || !errors.Is(err, http.ErrAbortHandler) {
				panic(r)
			}
			out.cut = true
		}
		if tr.provider.open != 0 {
			tr.t.Errorf("%d bodies of the provider were left open", tr.provider.open)
		}
		if size := conductor.Answers.Held(); size != 0 {
			tr.t.Errorf("%d bytes of the memory budget were not released", size)
		}
		if n := len(tr.books.amounts); n != len(tr.books.ends) {
			tr.t.Errorf("%d holds, %d ends", n, len(tr.books.ends))
		}
		if !tr.client.deadline.IsZero() {
			tr.t.Error("a write deadline was left on the connection")
		}
	}()
	out.err = conductor.Complete(tr.ctx, tr.client, c)
	return out
}

// chatCall returns a chat request for the model in its body.
func chatCall(t testing.TB, s *catalog.Snapshot, body string) AcceptedRequest {
	t.Helper()
	return accepted(t, s, wire.FormChat, body)
}

// accepted returns a request in a form for the model in its body.
func accepted(t testing.TB, s *catalog.Snapshot, form wire.Form, body string) AcceptedRequest {
	t.Helper()
	c := AcceptedRequest{
		Admission: ledger.Admission{Request: "req_1", Account: "acct_1", Key: "key_1", KeyVersion: 1,
			Endpoint: "/v1/chat/completions", Received: time.Now()},
		Form: form, Snapshot: s, Body: checked(t, form, body),
	}
	var named struct{ Model string }
	if err := json.Unmarshal([]byte(body), &named); err != nil {
		t.Fatal(err)
	}
	var ok bool
	if c.Model, ok = s.Model(named.Model); !ok {
		t.Fatalf("no model %s", named.Model)
	}
	return c
}

// checked returns a valid request of a form.
func checked(t testing.TB, form wire.Form, body string) wire.Request {
	t.Helper()
	r, err := open(form, body)
	if err != nil {
		t.Fatalf("%s: %v", body, err)
	}
	return r
}

// open reads and checks a request of a form.
func open(form wire.Form, body string) (wire.Request, error) {
	var r interface {
		wire.Request
		Check() error
	}
	var err error
	switch form {
	case wire.FormChat:
		r, err = completions.Open([]byte(body))
	case wire.FormResponses:
		r, err = responses.Open([]byte(body))
	default:
		r, err = messages.Open([]byte(body))
	}
	if err != nil {
		return nil, err
	}
	return r, r.Check()
}

// end is the one end of the trial's hold.
func (tr *testRequest) end() ledger.End {
	tr.t.Helper()
	if len(tr.books.ends) != 1 {
		tr.t.Fatalf("%d ends", len(tr.books.ends))
	}
	return tr.books.ends[0]
}

// attempts returns the attempts of the request.
func (tr *testRequest) attempts() []line.AttemptRecord {
	tr.t.Helper()
	attempts, _ := tr.end().Attempts.([]line.AttemptRecord)
	return attempts
}

// want checks how the request ended in the books.
func (tr *testRequest) want(o ledger.Outcome, cost string, status int, code fault.Code) {
	tr.t.Helper()
	e := tr.end()
	if e.Outcome != o || e.Cost.String() != cost || e.Status != status || e.Code != string(code) {
		tr.t.Errorf("ended with outcome %d, cost %s, status %d, code %q; want %d, %s, %d, %q",
			e.Outcome, e.Cost, e.Status, e.Code, o, cost, status, code)
	}
	if released := tr.books.released[0]; released != (o != ledger.Billed) {
		tr.t.Errorf("released: %v", released)
	}
}

// wantFault checks the error for the caller of Complete and returns it.
func wantFault(t testing.TB, out outcome, code fault.Code) *fault.Error {
	t.Helper()
	var f *fault.Error
	if !errors.As(out.err, &f) || f.Code != code || out.cut {
		t.Fatalf("got %v, cut %v; want %s", out.err, out.cut, code)
	}
	return f
}

// Bodies of requests and pieces of answers. The text of firstLine is too long for an error
// sentence, so the answer begins with it.
const (
	ask       = `{"model":"swift-1","messages":[{"role":"user","content":"hi"}]}`
	askStream = `{"model":"swift-1","messages":[{"role":"user","content":"hi"}],"stream":true}`
	askUsage  = `{"model":"swift-1","messages":[{"role":"user","content":"hi"}],"stream":true,"stream_options":{"include_usage":true}}`

	role = `data: {"id":"c","created":7,"model":"vendor-model","choices":[{"index":0,"delta":{"role":"assistant","content":""},` +
		`"finish_reason":null}]}` + "\n\n"
	hello = `data: {"id":"c","created":7,"model":"vendor-model","choices":[{"index":0,"delta":{"content":"Hello"},` +
		`"finish_reason":null}]}` + "\n\n"
	world = `data: {"id":"c","created":7,"model":"vendor-model","choices":[{"index":0,"delta":{"content":" world"},` +
		`"finish_reason":null}]}` + "\n\n"
	firstLine = `data: {"id":"c","created":7,"model":"vendor-model","choices":[{"index":0,"delta":{"content":"Hello\n"},` +
		`"finish_reason":null}]}` + "\n\n"
	stop  = `data: {"id":"c","created":7,"model":"vendor-model","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}` + "\n\n"
	usage = `data: {"id":"c","created":7,"model":"vendor-model","choices":[],"usage":{"prompt_tokens":100,"completion_tokens":10}}` +
		"\n\n"
	doneEvent = "data: [DONE]\n\n"
	busyEvent = `data: {"error":{"message":"slow down","code":"rate_limit_exceeded"}}` + "\n\n"

	whole1 = `{"id":"c","model":"vendor-model","choices":[{"index":0,"message":{"role":"assistant","content":"Hello world"},` +
		`"finish_reason":"stop"}],"usage":{"prompt_tokens":100,"completion_tokens":10}}`
)

// toClient is an event as the client gets it.
func toClient(events ...string) string {
	var b bytes.Buffer
	for _, e := range events {
		b.WriteString(string(bytes.ReplaceAll([]byte(e), []byte("vendor-model"), []byte("swift-1"))))
	}
	return b.String()
}

// errorEvent returns the last event of a broken stream.
func errorEvent(code fault.Code) string {
	return fmt.Sprintf("data: {\"error\":%s}\n\n", (&upstream.Failure{Code: code}).FaultInStream().Object())
}
