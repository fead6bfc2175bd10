// Package errormap owns the tests of how providers fail: a row a failure, and what
// must follow for the client, the money, the request log and the line's health.
package errormap

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"tollgate/internal/gatewaytest/fakeprovider"
	"tollgate/internal/gatewaytest/scene"
	"tollgate/internal/money"
	"tollgate/internal/store/storetest"
)

// The rows of these tests say how a provider fails and what must follow: for
// the client, with another line and without one, for the money, for the request
// log and for the line's health. Each runs against the real process on real
// databases. The fixture is one process with a model, a line and a provider of
// its own for each row, so that no row feels another one's failures.

// healthy is the line that stands behind every model of two lines.
const healthy = "healthy"

// effect is what a failure does to its line.
type effect int

const (
	none effect = iota // the line is not to blame: nothing is counted
	good               // an answer like another
	fail
	half
	cool
	cred
	pair
	broke // an answer that had begun broke off: it is no success, whatever else
)

// want is what must follow from a failure.
type want struct {
	code   string // of the error; empty: the client gets an answer
	status int    // that the client sees without another line
	kind   string // error.type
	final  bool   // no other line is asked
	health effect
}

// The wants that most rows share.
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

// refused is an error that no other line can mend.
func refused(status int, code, kind string) want {
	return want{code: code, status: status, kind: kind, final: true}
}

// row is one way to fail.
type row struct {
	name string
	want want
	// whole and stream are what the provider does with the two kinds of
	// requests; nil leaves that kind out.
	whole, stream *fakeprovider.Reply
	// probe is what a probe of the gateway's gets; nil: as whole, or else a good
	// answer.
	probe *fakeprovider.Reply
	// provider makes one that fakeprovider.New cannot; base address and how
	// often it was asked for a model (-1: it cannot know).
	provider func(t testing.TB) provider

	status  int            // the provider's status in the log; 0: no head came
	message string         // what the client is told, where a provider's words pass
	param   string         // error.param
	ask     map[string]any // members of the request; nil ones leave theirs out
	model   map[string]any // members of the model
	line    map[string]any // members of the line
	calls   int            // of the provider, for one request; 0: one

	// text, prompt and completion are what a stream brought before it broke;
	// without counts they are the gateway's own.
	text               string
	prompt, completion int64
	// pieces is how much of the stream goes out before the client has seen
	// some text; 0: all of it.
	pieces int
}

// provider is a provider as the tests see it.
type provider struct {
	url   string
	asked func(model string) int
	// goOn lets the rest of a stream out (row.pieces); nil if there is none.
	goOn func()
	// left is how many callers left before their answer was complete.
	left func() int
}

// both makes a row whose provider does the same for both kinds of requests.
func both(name string, reply fakeprovider.Reply, w want) row {
	status := reply.Status
	if status == 0 {
		status = 200
	}
	return row{name: name, want: w, whole: &reply, stream: &reply, status: status}
}

// anyStatus is for rows whose status in the log does not matter.
const anyStatus = -1

// logged is the row with another status of the provider in the log.
func (r row) logged(status int) row {
	r.status = status
	return r
}

// kinds are the kinds of requests a row is tried with.
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

// scripted is a provider that does what a row says, however often.
func (r row) scripted(t testing.TB, in form) provider {
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
		case probing(q) && r.probe != nil:
			return *r.probe
		case probing(q) && r.whole == nil:
			return in.good(false)
		case !q.Streamed():
			return *r.whole
		}
		reply := *r.stream
		if r.pieces > 0 {
			reply.Gate = gate
		}
		return reply
	})
	return provider{url: p.URL(), asked: func(model string) int { return asked(p, model) }, goOn: func() { close(gate) }, left: p.Left}
}

// probing tells a probe of the gateway's own from the tests' requests.
func probing(q fakeprovider.Request) bool { return bytes.Contains(q.Body, []byte(`"ping"`)) }

// asked counts the requests for a model that reached a provider, without the
// gateway's own probes.
func asked(p *fakeprovider.Server, model string) int {
	n := 0
	for _, q := range p.Requests() {
		if probing(q) {
			continue
		}
		if bytes.Contains(q.Body, []byte(`"model":"vendor-`+model+`"`)) || strings.Contains(q.Path, "/vendor-"+model+":") {
			n++
		}
	}
	return n
}

// form is a wire form that rows are tried in.
type form struct {
	name     string // as the catalog's `forms` have it
	in       scene.Form
	provider string // whose lines speak it
	lines    string // the form of lines; empty: the same
	// good is the healthy line's answer.
	good func(stream bool) fakeprovider.Reply
	// kind is error.type of an error that the chat form shows as w.
	kind func(w want) string
	// native tells that errors have neither code nor param.
	native bool
}

// chatForm is the chat-completions form.
func chatForm() form {
	return form{
		name: "chat", in: scene.Chat, provider: "openai",
		good: func(stream bool) fakeprovider.Reply {
			if stream {
				return fakeprovider.Stream(1000, 500, "all ", "is well")
			}
			return fakeprovider.Answer("all is well", 1000, 500)
		},
		kind: func(w want) string { return w.kind },
	}
}

// fixture is the gateway with all rows' models and lines, and the healthy
// provider that stands behind each model with a second line.
type fixture struct {
	*scene.Gateway
	form    form
	healthy *fakeprovider.Server
}

// entry is one row and one kind of request on the fixture.
type entry struct {
	row
	stream bool
	id     string
	provider
}

// solo and duo are the ids of an entry's models, with the failing line alone
// and with the healthy one behind it; each has a failing line of that name.
func (e entry) solo() string { return e.id + "-solo" }
func (e entry) duo() string  { return e.id + "-duo" }

// eachRow runs a test for each row on both databases: on SQLite with each kind
// of request, on PostgreSQL with one of them, in turn. What the two decide about
// is the same, and a hold does not know of kinds.
func eachRow(t *testing.T, binary string, in form, rows []row, test func(t *testing.T, f *fixture, e entry)) {
	t.Helper()
	t.Parallel()
	storetest.EachURL(t, func(t *testing.T, database string) {
		var entries []entry
		for i, r := range rows {
			p := r.scripted(t, in)
			kinds := r.kinds()
			if strings.HasPrefix(database, "postgres") && len(kinds) == 2 {
				kinds = kinds[i%2 : i%2+1]
			}
			for _, stream := range kinds {
				entries = append(entries, entry{r, stream, fmt.Sprintf("r%d-%v", i, stream), p})
			}
		}
		f := newFixture(t, binary, database, in)
		f.apply(t, entries)
		// Stalls make waiting the larger part, so more of them run at a time
		// than there are processors.
		const workers = 12
		queue := make(chan entry)
		var group sync.WaitGroup
		for range workers {
			group.Go(func() {
				for e := range queue {
					kind := "whole"
					if e.stream {
						kind = "stream"
					}
					t.Run(e.name+"/"+kind, func(t *testing.T) { test(t, f, e) })
				}
			})
		}
		for _, e := range entries {
			queue <- e
		}
		close(queue)
		group.Wait()
		f.Audit(t)
	})
}

// newFixture starts a process on a database, and the healthy provider.
func newFixture(t *testing.T, binary, database string, in form) *fixture {
	t.Helper()
	trust := filepath.Join(t.TempDir(), "trusted.pem")
	if err := os.WriteFile(trust, fakeprovider.NewTLS(t).Certificate(), 0o600); err != nil {
		t.Fatal(err)
	}
	f := &fixture{form: in, healthy: fakeprovider.New(t)}
	f.healthy.Always(func(q fakeprovider.Request) fakeprovider.Reply {
		return in.good(q.Streamed())
	})
	f.Gateway = scene.Open(t, binary, database, map[string]string{"SSL_CERT_FILE": trust})
	return f
}

// model is a model that is called in the fixture's form, and line a line that
// speaks it.
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

// apply makes the catalog of all entries the current one.
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
	f.Process.Admin("PUT", "/catalog", map[string]any{"models": models, "lines": lines}, nil)
}

// TestErrorMap runs every row: what the client sees with the failing line alone
// and with a healthy one behind it, and after the first byte.
func TestErrorMap(t *testing.T) {
	t.Parallel()
	binary := scene.Binary(t)
	t.Run("statuses", func(t *testing.T) { eachRow(t, binary, chatForm(), statusRows(t), tryRow) })
	t.Run("answers", func(t *testing.T) { eachRow(t, binary, chatForm(), append(answerRows(t), beginningRows()...), tryRow) })
	t.Run("broken", func(t *testing.T) { eachRow(t, binary, chatForm(), append(brokenRows(), wholeRows()...), breakRow) })
	t.Run("left", func(t *testing.T) { eachRow(t, binary, chatForm(), leavingRows(), leaveRow) })
	t.Run("foreign", func(t *testing.T) { eachRow(t, binary, chatForm(), foreignRows(), tryRow) })
	t.Run("foreign broken", func(t *testing.T) { eachRow(t, binary, chatForm(), foreignBrokenRows(), breakRow) })
	t.Run("native", func(t *testing.T) { eachRow(t, binary, nativeForm(), nativeRows(t), tryRow) })
	for _, in := range vendorForms() {
		t.Run("vendors in "+in.name, func(t *testing.T) { eachRow(t, binary, in, vendorRows(t), tryRow) })
	}
	t.Run("native broken", func(t *testing.T) { eachRow(t, binary, nativeForm(), nativeBrokenRows(), breakRow) })
}

// tryRow tries one row with and without another line.
func tryRow(t *testing.T, f *fixture, e entry) {
	account, key := f.Process.Account(10, nil)
	sent := time.Now()
	alone := f.Send(t, f.form.in, key, f.request(e, e.solo()))
	f.checkAlone(t, e, account, alone)
	balance := f.CheckMoney(t, account, 10*money.USD, alone)
	f.checkHealth(t, e, e.solo(), sent)

	sent = time.Now()
	behind := f.Send(t, f.form.in, key, f.request(e, e.duo()))
	f.checkBehind(t, e, account, behind)
	f.CheckMoney(t, account, balance, behind)
	f.checkHealth(t, e, e.duo(), sent)
}

// request is what an entry sends for a model.
func (f *fixture) request(e entry, model string) string {
	return scene.Request(f.form.in, model, e.stream, e.ask)
}

// checkAlone checks an answer that only the failing line could give.
func (f *fixture) checkAlone(t *testing.T, e entry, account string, a scene.Answer) {
	t.Helper()
	f.checkAsked(t, e, e.solo(), 0)
	f.checkError(t, e, a)
	r := f.Receipt(t, account, a.ID)
	if r.Status != a.Status || r.Code != e.want.code || len(r.Attempts) != 1 {
		t.Fatalf("receipt %+v", r)
	}
	f.checkAttempt(t, e, r.Attempts[0], e.solo())
}

// checkBehind checks an answer for which a healthy line stood behind the
// failing one.
func (f *fixture) checkBehind(t *testing.T, e entry, account string, a scene.Answer) {
	t.Helper()
	r := f.Receipt(t, account, a.ID)
	if e.want.final {
		f.checkAsked(t, e, e.duo(), 0)
		f.checkError(t, e, a)
		if len(r.Attempts) != 1 {
			t.Errorf("receipt %+v", r)
		}
		return
	}
	f.checkAsked(t, e, e.duo(), 1)
	served := a.Complete && a.Text == "all is well"
	if f.form.in == scene.Responses { // whose answers scene leaves unread
		served = strings.Contains(a.Raw, `"status":"completed"`) && strings.Contains(a.Raw, `"text":"all is well"`)
	}
	if a.Status != 200 || !served {
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

// checkAsked checks how often the failing and the healthy provider were asked
// for a model.
func (f *fixture) checkAsked(t *testing.T, e entry, model string, second int) {
	t.Helper()
	if n, want := e.asked(model), max(e.calls, 1); n != want && n != -1 {
		t.Errorf("the failing provider was asked %d times, want %d", n, want)
	}
	if n := asked(f.healthy, model); n != second {
		t.Errorf("the healthy provider was asked %d times, want %d", n, second)
	}
}

// checkError checks what the client was told in place of an answer, or the
// answer where the row is none.
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
	if a.RetryAfter != "" { // the provider's wish is the line's affair
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
	if a.Err.Code != code || a.Err.Type != f.form.kind(e.want) || a.Err.Param() != param {
		t.Errorf("the client got %s in %s; want %s of type %s, param %q", a.Err, a.Raw, code, f.form.kind(e.want), param)
	}
	if a.Err.Message == "" || e.message != "" && a.Err.Message != e.message {
		t.Errorf("message %q, want %q", a.Err.Message, e.message)
	}
}

// checkSecrets checks that nothing of the lines reached the client.
func (f *fixture) checkSecrets(t *testing.T, e entry, a scene.Answer) {
	t.Helper()
	_, host, _ := strings.Cut(strings.TrimSuffix(e.url, "/v1"), "://")
	said := a.Header + a.Raw
	for _, secret := range []string{scene.Credential, host, "vendor-" + e.id} {
		if strings.Contains(said, secret) {
			t.Errorf("%q reached the client: %s", secret, said)
		}
	}
	if strings.Contains(strings.ReplaceAll(a.Raw, `"model":"`+e.id, ""), e.id) || strings.Contains(a.Header, e.id) {
		t.Errorf("the line's name reached the client: %s", said)
	}
}

// checkAttempt checks what the request log says of the attempt on the failing
// line.
func (f *fixture) checkAttempt(t *testing.T, e entry, got scene.Attempt, line string) {
	t.Helper()
	if got.Line != line || got.Status != e.status && e.status != anyStatus || got.Code != e.want.code || got.FirstByteMS == nil {
		t.Errorf("attempt %+v, want status %d and code %s on %s", got, e.status, e.want.code, line)
	}
	if (got.Cause == "") != (e.want.code == "") || strings.Contains(got.Cause, scene.Credential) {
		t.Errorf("cause %q", got.Cause)
	}
}
