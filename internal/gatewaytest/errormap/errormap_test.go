// Package errormap tests failures of providers. Each row is one failure with the expected answer to
// the client, entry in the request log, charge, and effect on the line, with and without a second
// line. The rows of a client's form share a gateway process. Each row has its own model, line and
// provider.
package errormap

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"tollgate/internal/gatewaytest/fakeprovider"
	"tollgate/internal/gatewaytest/scene"
	"tollgate/internal/money"
	"tollgate/internal/store/storetest"
)

// healthy is the id of the second line of a model.
const healthy = "healthy"

// effect is the effect of a failure on the health of its line.
type effect int

const (
	none effect = iota // the line is not at fault, so the attempt does not count
	good               // counts as a success
	fail
	half
	cool
	cred
	pair
	broke // the answer broke off, so the success rate is 0; the state depends on the code
)

// want is the expected result of a failure.
type want struct {
	code   string // of the error; empty if the client gets an answer
	status int    // of the error without a second line
	kind   string // error.type
	final  bool   // no other line is tried
	health effect
}

func unavailable(h effect) want {
	return want{code: "upstream_unavailable", status: 502, kind: "upstream_error", health: h}
}

func upstream(code string, h effect) want {
	return want{code: code, status: 502, kind: "upstream_error", health: h}
}

func timedOut() want   { return upstream("upstream_timeout", fail) }
func broken() want     { return upstream("upstream_connection_error", fail) }
func busy() want       { return upstream("upstream_busy", cool) }
func stopped() want    { return upstream("upstream_prompt_filter", none) }
func empty() want      { return upstream("empty_completion", half) }
func answered() want   { return want{final: true, health: good} }
func withheld() want   { return refused(400, "content_filter", "invalid_request_error") }
func outOfOrder() want { return unavailable(fail) }

// refused returns the expected result of a rejection without failover.
func refused(status int, code, kind string) want {
	return want{code: code, status: status, kind: kind, final: true}
}

// row is one failure.
type row struct {
	name string
	want want
	// whole and stream are the provider's replies to requests without and with streaming. A kind of
	// request without a reply is not tested.
	whole, stream *fakeprovider.Reply
	// probe is the reply to a probe of the gateway. If nil, the reply is whole, or else a good answer.
	probe *fakeprovider.Reply
	// provider starts a provider instead of fakeprovider.New.
	provider func(t testing.TB) provider

	status  int            // the provider's status in the log; 0 if there was no header
	message string         // the client's message, if it is the provider's message
	param   string         // error.param
	ask     map[string]any // members of the request; nil removes a default member
	model   map[string]any
	line    map[string]any
	calls   int // requests to the provider for one request of the client; 0 means 1

	// text is the delivered part of a broken stream. prompt and completion are the provider's counts.
	// If 0, the gateway counts the tokens.
	text               string
	prompt, completion int64
	// pieces is the number of events sent before the client has received text. 0 means all.
	pieces int
}

// provider is a started provider.
type provider struct {
	url      string
	requests func(model string) int
	// resume sends the rest of a stream after row.pieces.
	resume func()
	// left returns the number of clients that disconnected before the end of their answer.
	left func() int
}

// both returns a row with the same reply to both kinds of requests.
func both(name string, reply fakeprovider.Reply, w want) row {
	status := reply.Status
	if status == 0 {
		status = 200
	}
	return row{name: name, want: w, whole: &reply, stream: &reply, status: status}
}

// anyStatus is the status of rows without a fixed status in the log.
const anyStatus = -1

// logged returns the row with another status in the log.
func (r row) logged(status int) row {
	r.status = status
	return r
}

// kinds returns the kinds of requests of a row. true means a streamed answer.
func (r row) kinds() []bool {
	var kinds []bool
	if r.whole != nil || r.provider != nil {
		kinds = append(kinds, false)
	}
	if r.stream != nil || r.provider != nil {
		kinds = append(kinds, true)
	}
	return kinds
}

// start starts the provider of a row.
func (r row) start(t testing.TB, in form) provider {
	if r.provider != nil {
		return r.provider(t)
	}
	p := fakeprovider.New(t)
	gate := make(chan struct{}, r.pieces)
	for range r.pieces {
		gate <- struct{}{}
	}
	p.Always(func(q fakeprovider.Request) fakeprovider.Reply {
		switch {
		case isProbe(q) && r.probe != nil:
			return *r.probe
		case isProbe(q) && r.whole == nil:
			return fakeprovider.Good(in.good, false)
		case !q.IsStream():
			return *r.whole
		}
		reply := *r.stream
		if r.pieces > 0 {
			reply.Gate = gate
		}
		return reply
	})
	requests := func(model string) int { return requestsFor(p, model) }
	return provider{url: p.URL(), requests: requests, resume: func() { close(gate) }, left: p.Disconnects}
}

// isProbe reports whether the request is a probe of the gateway.
func isProbe(q fakeprovider.Request) bool { return bytes.Contains(q.Body, []byte(`"ping"`)) }

// requestsFor returns the number of requests for a model, without probes.
func requestsFor(p *fakeprovider.Server, model string) int {
	n := 0
	for _, q := range p.Requests() {
		if isProbe(q) {
			continue
		}
		if bytes.Contains(q.Body, []byte(`"model":"vendor-`+model+`"`)) || strings.Contains(q.Path, "/vendor-"+model+":") {
			n++
		}
	}
	return n
}

// form is a wire form of clients.
type form struct {
	name     string // in the catalog
	in       scene.Form
	provider string // of the lines
	lines    string // form of the lines, by default name
	good     string // form of the healthy line's answers
	// kind returns error.type of an error in this form.
	kind func(w want) string
	// native reports whether errors have no code and no param.
	native bool
}

func chatForm() form {
	return form{
		name: "chat", in: scene.Chat, provider: "openai",
		good: "chat",
		kind: func(w want) string { return w.kind },
	}
}

// fixture is a gateway with the models and lines of all rows.
type fixture struct {
	*scene.Gateway
	form     form
	healthy  *fakeprovider.Server
	previous map[string]string // by line, the preceding line in the catalog
}

// entry is a row with one kind of request.
type entry struct {
	row
	stream bool
	id     string // prefix of its models and lines
	title  string
	test   func(*testing.T, *fixture, entry, *customer)
	provider
}

// solo and duo return the ids of the entry's models. Each model has a failing line of the same id,
// and duo has the healthy line as its second line.
func (e entry) solo() string { return e.id + "-solo" }
func (e entry) duo() string  { return e.id + "-duo" }

type customer struct {
	account, key string
	balance      money.Amount
}

const (
	workers         = 12 // more than processors, because many rows wait for a timeout
	rowsPerCustomer = 10 // a new account takes three commits, but a long request log is slow to read
)

// group is a test of some rows.
type group struct {
	name string
	rows []row
	test func(*testing.T, *fixture, entry, *customer)
}

// run runs groups on one gateway for each database. On PostgreSQL, a row runs with only one kind of
// request, because holds and charges do not depend on the kind.
func run(t *testing.T, binary string, in form, groups ...group) {
	t.Helper()
	t.Parallel()
	storetest.EachURL(t, func(t *testing.T, database string) {
		var entries []entry
		for _, g := range groups {
			entries = append(entries, g.entries(t, in, strings.HasPrefix(database, "postgres"))...)
		}
		f := newFixture(t, binary, database, in)
		f.apply(t, entries)
		slices.SortStableFunc(entries, func(a, b entry) int { return len(b.line) - len(a.line) }) // timeouts first
		queue := make(chan entry)
		var group sync.WaitGroup
		for range workers {
			group.Go(func() { f.work(t, queue) })
		}
		for _, e := range entries {
			queue <- e
		}
		close(queue)
		group.Wait()
		f.Audit(t)
	})
}

// entries returns the rows with each kind of request, or with one kind.
func (g group) entries(t *testing.T, in form, oneKind bool) []entry {
	t.Helper()
	var entries []entry
	for i, r := range g.rows {
		p := r.start(t, in)
		kinds := r.kinds()
		if oneKind && len(kinds) == 2 {
			kinds = kinds[i%2 : i%2+1]
		}
		for _, stream := range kinds {
			kind := "whole"
			if stream {
				kind = "stream"
			}
			id := fmt.Sprintf("r%d-%s-%s", i, strings.ReplaceAll(g.name, " ", "-"), kind)
			entries = append(entries, entry{r, stream, id, g.name + "/" + r.name + "/" + kind, g.test, p})
		}
	}
	return entries
}

// work runs entries until the queue is closed.
func (f *fixture) work(t *testing.T, queue <-chan entry) {
	var c *customer
	left := 0 // rows of c
	for e := range queue {
		if left == 0 {
			c, left = &customer{balance: 10 * money.USD}, rowsPerCustomer
			c.account, c.key = f.Process.Account(10, nil)
		}
		left--
		if !t.Run(e.title, func(t *testing.T) { e.test(t, f, e, c) }) {
			left = 0 // the balance may be wrong
		}
	}
}

func newFixture(t *testing.T, binary, database string, in form) *fixture {
	t.Helper()
	trust := filepath.Join(t.TempDir(), "trusted.pem")
	if err := os.WriteFile(trust, fakeprovider.NewTLS(t).Certificate(), 0o600); err != nil {
		t.Fatal(err)
	}
	f := &fixture{form: in, healthy: fakeprovider.New(t)}
	f.healthy.Always(func(q fakeprovider.Request) fakeprovider.Reply {
		return fakeprovider.Good(in.good, q.IsStream())
	})
	f.Gateway = scene.Open(t, binary, database, map[string]string{"SSL_CERT_FILE": trust})
	return f
}

func (f *fixture) model(id string, more map[string]any) map[string]any {
	m := scene.ChatModel(id, more)
	m["forms"] = []string{f.form.name}
	return m
}

func (f *fixture) line(id, url string, more map[string]any, models ...string) map[string]any {
	l := scene.ChatLine(id, url, map[string]any{"provider": f.form.provider}, models...)
	if f.form.lines != "" {
		l["forms"] = []string{f.form.lines}
	}
	maps.Copy(l, more)
	return l
}

// apply applies the catalog of all entries.
func (f *fixture) apply(t *testing.T, entries []entry) {
	t.Helper()
	var models, lines []any
	var duos []string
	for _, e := range entries {
		duos = append(duos, e.duo())
		for _, id := range []string{e.solo(), e.duo()} {
			models = append(models, f.model(id, e.model))
			lines = append(lines, f.line(id, e.url, e.line, id))
		}
	}
	lines = append(lines, f.line(healthy, f.healthy.URL(), map[string]any{"priority": 2}, duos...))
	f.previous = map[string]string{}
	for i := range lines[1:] {
		f.previous[lines[i+1].(map[string]any)["id"].(string)] = lines[i].(map[string]any)["id"].(string)
	}
	f.Process.Admin("PUT", "/catalog", map[string]any{"models": models, "lines": lines}, nil)
}

func TestErrorMap(t *testing.T) {
	t.Parallel()
	binary := scene.Binary(t)
	vendors := vendorRows(t)
	// A catalog may have 1000 lines, so chat needs two catalogs.
	t.Run("chat", func(t *testing.T) { run(t, binary, chatForm(), group{"statuses", statusRows(t), tryRow}) })
	t.Run("chat answers", func(t *testing.T) {
		run(t, binary, chatForm(),
			group{"answers", append(answerRows(t), beginningRows()...), tryRow},
			group{"broken", append(brokenRows(), wholeRows()...), breakRow},
			group{"left", leavingRows(), leaveRow},
			group{"foreign", foreignRows(), tryRow},
			group{"foreign broken", foreignBrokenRows(), breakRow},
			group{"vendors", vendors, tryRow})
	})
	t.Run("messages", func(t *testing.T) {
		run(t, binary, nativeForm(), group{"native", nativeRows(t), tryRow}, group{"native broken", nativeBrokenRows(), breakRow})
	})
	for _, in := range vendorForms() {
		t.Run(in.name+" on chat", func(t *testing.T) { run(t, binary, in, group{"vendors", vendors, tryRow}) })
	}
}

// tryRow sends the request of a row to both models and checks the results.
func tryRow(t *testing.T, f *fixture, e entry, c *customer) {
	sent := time.Now()
	alone := f.Send(t, f.form.in, c.key, f.request(e, e.solo()))
	f.checkAlone(t, e, c, alone)
	f.checkHealth(t, e, e.solo(), sent)

	sent = time.Now()
	withSecond := f.Send(t, f.form.in, c.key, f.request(e, e.duo()))
	f.checkWithSecond(t, e, c, withSecond)
	f.checkHealth(t, e, e.duo(), sent)
}

// receipt checks the money and returns the receipt of an answer.
func (f *fixture) receipt(t *testing.T, c *customer, a scene.Answer) scene.Receipt {
	t.Helper()
	r := f.Receipt(t, c.account, a.ID)
	c.balance = f.CheckReceipt(t, c.account, c.balance, a, r)
	return r
}

func (f *fixture) request(e entry, model string) string {
	return scene.Request(f.form.in, model, e.stream, e.ask)
}

// checkAlone checks the result without a second line.
func (f *fixture) checkAlone(t *testing.T, e entry, c *customer, a scene.Answer) {
	t.Helper()
	f.checkRequests(t, e, e.solo(), 0)
	f.checkError(t, e, a)
	r := f.receipt(t, c, a)
	if r.Status != a.Status || r.Code != e.want.code || len(r.Attempts) != 1 {
		t.Fatalf("receipt %+v", r)
	}
	f.checkAttempt(t, e, r.Attempts[0], e.solo())
}

// checkWithSecond checks the result with a healthy second line.
func (f *fixture) checkWithSecond(t *testing.T, e entry, c *customer, a scene.Answer) {
	t.Helper()
	r := f.receipt(t, c, a)
	if e.want.final {
		f.checkRequests(t, e, e.duo(), 0)
		f.checkError(t, e, a)
		if len(r.Attempts) != 1 {
			t.Errorf("receipt %+v", r)
		}
		return
	}
	f.checkRequests(t, e, e.duo(), 1)
	ok := a.Complete && a.Text == "all is well"
	if f.form.in == scene.Responses { // scene.Answer has no text for responses
		ok = strings.Contains(a.Raw, `"status":"completed"`) && strings.Contains(a.Raw, `"text":"all is well"`)
	}
	if a.Status != 200 || !ok {
		t.Errorf("the client got %+v; want the healthy line's answer", a)
	}
	f.checkSecrets(t, e, a)
	if r.Status != 200 || r.Code != "" || r.Line != healthy || r.Cost != scene.AnswerCost || len(r.Attempts) != 2 {
		t.Fatalf("receipt %+v", r)
	}
	f.checkAttempt(t, e, r.Attempts[0], e.duo())
	if last := r.Attempts[1]; last.Line != healthy || last.Status != 200 || last.Code != "" || last.FirstByteMS == nil {
		t.Errorf("second attempt %+v", last)
	}
}

// checkRequests checks the number of requests to the failing and the healthy provider.
func (f *fixture) checkRequests(t *testing.T, e entry, model string, second int) {
	t.Helper()
	if n, want := e.requests(model), max(e.calls, 1); n != want && n != -1 {
		t.Errorf("the failing provider got %d requests, want %d", n, want)
	}
	if n := requestsFor(f.healthy, model); n != second {
		t.Errorf("the healthy provider got %d requests, want %d", n, second)
	}
}

// checkError checks the error, or the answer if the row has no error.
func (f *fixture) checkError(t *testing.T, e entry, a scene.Answer) {
	t.Helper()
	f.checkSecrets(t, e, a)
	if e.want.code == "" {
		if a.Status != 200 || !a.Complete {
			t.Errorf("the client got %+v; want the line's answer", a)
		}
		return
	}
	if a.Status != e.want.status || a.ContentType != "application/json" {
		t.Errorf("the client got %d %s (%s), want %+v", a.Status, a.Err, a.ContentType, e.want)
	}
	if a.RetryAfter != "" { // the provider's Retry-After is only for the line
		t.Errorf("the client got Retry-After %q", a.RetryAfter)
	}
	f.checkObject(t, e, a, e.param)
}

// checkObject checks the error object of an answer or of a stream's last event.
func (f *fixture) checkObject(t *testing.T, e entry, a scene.Answer, param string) {
	t.Helper()
	code := e.want.code
	if f.form.native {
		code, param = "", "absent"
	}
	if param == "max_tokens" && f.form.in == scene.Responses {
		param = "max_output_tokens" // the client's own name
	}
	if a.Err.Code != code || a.Err.Type != f.form.kind(e.want) || a.Err.Param() != param {
		t.Errorf("the client got %s in %s; want %s of type %s, param %q", a.Err, a.Raw, code, f.form.kind(e.want), param)
	}
	if a.Err.Message == "" || e.message != "" && a.Err.Message != e.message {
		t.Errorf("message %q, want %q", a.Err.Message, e.message)
	}
}

// checkSecrets checks that the answer contains no detail of a line.
func (f *fixture) checkSecrets(t *testing.T, e entry, a scene.Answer) {
	t.Helper()
	_, host, _ := strings.Cut(strings.TrimSuffix(e.url, "/v1"), "://")
	response := a.Header + a.Raw
	for _, secret := range []string{scene.Credential, host, "vendor-" + e.id} {
		if strings.Contains(response, secret) {
			t.Errorf("%q reached the client: %s", secret, response)
		}
	}
	if strings.Contains(strings.ReplaceAll(a.Raw, `"model":"`+e.id, ""), e.id) || strings.Contains(a.Header, e.id) {
		t.Errorf("the line's name reached the client: %s", response)
	}
}

// checkAttempt checks the attempt on the failing line in the request log.
func (f *fixture) checkAttempt(t *testing.T, e entry, got scene.Attempt, line string) {
	t.Helper()
	if got.Line != line || got.Status != e.status && e.status != anyStatus || got.Code != e.want.code || got.FirstByteMS == nil {
		t.Errorf("attempt %+v, want status %d and code %s on %s", got, e.status, e.want.code, line)
	}
	if (got.Cause == "") != (e.want.code == "") || strings.Contains(got.Cause, scene.Credential) {
		t.Errorf("cause %q", got.Cause)
	}
}
