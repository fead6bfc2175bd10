package chat

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"tollgate/internal/call"
	"tollgate/internal/catalog"
	"tollgate/internal/fault"
	"tollgate/internal/gatewaytest/fakeprovider"
	"tollgate/internal/ledger"
	"tollgate/internal/ledger/audit"
	"tollgate/internal/ledger/requestlog"
	"tollgate/internal/line"
	"tollgate/internal/money"
	"tollgate/internal/node"
	"tollgate/internal/store"
	"tollgate/internal/store/storetest"
	"tollgate/internal/upstream/adapters"
	"tollgate/internal/wire"

	"golang.org/x/tools/txtar"
)

var update = flag.Bool("update", false, "write the answers and charges of testdata anew")

// flow is a gateway with a real ledger, a real provider's adapter and real connections.
type flow struct {
	t        *testing.T
	db       *store.DB
	ledger   *ledger.Ledger
	provider *fakeprovider.Server
	url      string
	asked    atomic.Int64  // requests so far; the newest one's id follows from it
	last     chan struct{} // gets a value for each ended request
}

// request returns the id of request n. The ids sort in the order of n.
func request(n int64) string { return fmt.Sprintf("req_%026d", n) }

const flowCatalog = `
models:
  - id: swift-1
    kind: chat
    context_window: 100000
    max_output_tokens: 1000
    price:
      {input: 1, cached_input: 0.25, output: 10, options: {service_tier: {priority: 2, flex: 0.5}}, tools: {web_search: 0.01},
       above: [{prompt_tokens: 1000, input: 2, output: 20}]}
lines:
  - {id: main, provider: openai, base_url: %q, api_key: "${KEY}", models: {swift-1: vendor-model}}
`

// newFlow opens the books of one account with a dollar.
func newFlow(t *testing.T, db *store.DB, change func(*ledger.Options)) *flow {
	t.Helper()
	f := &flow{t: t, db: db, provider: fakeprovider.New(t), last: make(chan struct{}, 1024)}
	ctx := context.Background()
	self, err := node.Join(ctx, node.Options{DB: db})
	if err != nil {
		t.Fatal(err)
	}
	o := ledger.Options{DB: db, Node: self, QueueWait: 10 * time.Second}
	if change != nil {
		change(&o)
	}
	f.ledger = ledger.New(o)
	if err := f.ledger.Start(ctx); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		if err := f.ledger.Close(ctx); err != nil {
			t.Error(err)
		}
	})
	err = db.Update(ctx, func(tx *store.Tx) error {
		if err := ledger.OpenAccountTx(tx, "acct_1", 0); err != nil {
			return err
		}
		if _, err := ledger.CreditTx(tx, "acct_1", money.USD, ""); err != nil {
			return err
		}
		return ledger.OpenKeyTx(tx, "key_1", "acct_1", ledger.KeyLimits{})
	})
	if err != nil {
		t.Fatal(err)
	}

	providers := map[string]catalog.Provider{}
	for name, info := range adapters.Providers() {
		providers[name] = catalog.Provider{Kinds: []catalog.Kind{catalog.KindChat}, Forms: info.Forms, OptionalForms: info.OptionalForms,
			DefaultBaseURL: info.DefaultBaseURL,
			NeedsBaseURL:   info.NeedsBaseURL, NeedsKey: info.NeedsKey, Keyless: info.Keyless,
			NeedsForms: info.NeedsForms, CheckOptions: info.CheckOptions}
	}
	doc, _, err := catalog.Parse(fmt.Appendf(nil, flowCatalog, f.provider.URL()), providers)
	if err != nil {
		t.Fatal(err)
	}
	snapshot := catalog.NewSnapshot(1, doc, providers, func(string) (string, bool) { return "secret-of-the-line", true })
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	openLine := adapters.New(adapters.Options{Transport: transport}).Open

	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() { f.last <- struct{}{} }()
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return // the client left while it sent
		}
		request, err := open(wire.FormChat, string(body))
		if err == nil {
			// Separate lines, so that the failures of one request do not affect others.
			c := New(call.New(call.Options{Ledger: f.ledger, Lines: line.New(line.Options{Open: openLine})}), Options{})
			model, _ := snapshot.Model("swift-1")
			err = c.Complete(r.Context(), w, AcceptedRequest{
				Admission: ledger.Admission{Request: r.Header.Get("x-request"), Account: "acct_1", Key: "key_1", KeyVersion: 1,
					Endpoint: "/v1/chat/completions", Received: time.Now()},
				Form: wire.FormChat, Snapshot: snapshot, Model: model, Body: request,
			})
		}
		if err != nil {
			fault.Of(err).Write(w)
		}
	}))
	t.Cleanup(server.Close)
	f.url = server.URL
	return f
}

// post sends a request.
func (f *flow) post(body []byte) (*http.Response, error) {
	r, err := http.NewRequest(http.MethodPost, f.url, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header.Set("x-request", request(f.asked.Add(1)))
	return http.DefaultClient.Do(r)
}

// ask sends a request and returns the status, the whole body, and the error of reading it.
func (f *flow) ask(body []byte) (int, string, error) {
	f.t.Helper()
	response, err := f.post(body)
	if err != nil {
		return 0, "", err
	}
	defer response.Body.Close()
	got, err := io.ReadAll(response.Body)
	<-f.last
	return response.StatusCode, string(got), err
}

// books returns the receipt of the newest request, if admitted, and the account, after checking the
// sums.
func (f *flow) books() (requestlog.Receipt, ledger.AccountState) {
	f.t.Helper()
	var receipt requestlog.Receipt
	var state ledger.AccountState
	err := f.db.View(context.Background(), func(tx *store.Tx) error {
		page, err := requestlog.ListTx(tx, requestlog.Selection{Limit: 5})
		if err != nil {
			return err
		}
		for _, r := range page.Receipts {
			if r.ID == request(f.asked.Load()) {
				receipt = r
			}
		}
		states, err := ledger.AccountsTx(tx, []string{"acct_1"})
		state = states["acct_1"]
		return err
	})
	if err != nil {
		f.t.Fatal(err)
	}
	report, err := audit.Run(context.Background(), f.db)
	if err != nil {
		f.t.Fatal(err)
	}
	if !report.OK {
		f.t.Errorf("the books differ: %+v", report.Differences)
	}
	return receipt, state
}

// TestFlows plays the scenarios of testdata: the client's request, the provider's answer, the
// client's answer and the charge.
func TestFlows(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join("testdata", "*.txtar"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no scenarios: %v", err)
	}
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		f := newFlow(t, db, nil)
		balance := money.USD
		for _, file := range files {
			t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
				balance -= f.play(t, file, balance)
			})
		}
	})
}

// play plays one scenario and returns its charge.
func (f *flow) play(t *testing.T, file string, balance money.Amount) money.Amount {
	archive, err := txtar.ParseFile(file)
	if err != nil {
		t.Fatal(err)
	}
	part := map[string]string{}
	for _, p := range archive.Files {
		part[p.Name] = strings.TrimSuffix(string(p.Data), "\n")
	}
	if answer, ok := part["upstream"]; ok {
		f.provider.Expect(replyOf(t, part["upstream head"], answer))
	}
	before := len(f.provider.Requests())
	status, got, err := f.ask([]byte(part["request"]))
	if err != nil {
		t.Fatal(err)
	}
	receipt, state := f.books()
	charge := fmt.Sprintf("status %d\ncode %s\ncost %s\nprompt %d cached %d completion %d",
		receipt.Status, receipt.Code, receipt.Cost, receipt.Tokens.Prompt, receipt.Tokens.Cached, receipt.Tokens.Completion)
	answer := fmt.Sprintf("%d\n%s", status, got)
	sent := ""
	if requests := f.provider.Requests(); len(requests) > before {
		sent = string(requests[before].Body)
	}
	if state.Held != 0 || state.Balance != balance-receipt.Cost {
		t.Errorf("balance %s, held %s after a charge of %s on %s", state.Balance, state.Held, receipt.Cost, balance)
	}
	if strings.Contains(got, "secret-of-the-line") || strings.Contains(got, "vendor-model") {
		t.Errorf("the answer shows what is the operator's: %s", got)
	}
	for i, p := range archive.Files {
		now := p.Data
		switch p.Name {
		case "sent":
			now = []byte(sent + "\n")
		case "answer":
			now = []byte(strings.TrimRight(answer, "\n") + "\n")
		case "charge":
			now = []byte(charge + "\n")
		}
		if !bytes.Equal(bytes.TrimSpace(now), bytes.TrimSpace(p.Data)) && !*update {
			t.Errorf("%s\n%s\nwant\n%s", p.Name, now, p.Data)
		}
		archive.Files[i].Data = now
	}
	if *update {
		if err := os.WriteFile(file, txtar.Format(archive), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return receipt.Cost
}

// replyOf makes the provider's reply of a scenario: a whole answer, or events.
// The head is a status, `cut` or `reset`.
func replyOf(t *testing.T, head, answer string) fakeprovider.Reply {
	var r fakeprovider.Reply
	switch status, err := strconv.Atoi(head); {
	case err == nil:
		r.Status = status
	case head == "cut":
		r.End = fakeprovider.Cut
	case head == "reset":
		r.End = fakeprovider.Reset
	case head != "":
		t.Fatalf("unknown head %q", head)
	}
	if strings.HasPrefix(answer, "{") {
		r.Body = answer
		return r
	}
	r.ContentType = "text/event-stream"
	for event := range strings.SplitSeq(strings.TrimSpace(answer), "\n\n") {
		r.Raw = append(r.Raw, event+"\n\n")
	}
	return r
}

// TestConcurrentRequests checks the sums after concurrent requests of all kinds, including failed ones.
func TestConcurrentRequests(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		f := newFlow(t, db, nil)
		const each = 30
		var turn atomic.Int64
		f.provider.Always(func(r fakeprovider.Request) fakeprovider.Reply {
			if turn.Add(1)%5 == 0 {
				return fakeprovider.Busy(0)
			}
			if bytes.Contains(r.Body, []byte(`"stream":true`)) {
				return fakeprovider.Stream(100, 10, "Hello", " world")
			}
			return fakeprovider.Answer("Hello", 100, 10)
		})
		limited := strings.Replace(ask, `{"model"`, `{"max_tokens":10,"model"`, 1)
		limitedStream := strings.Replace(askStream, `{"model"`, `{"max_tokens":10,"model"`, 1)
		var good, bad atomic.Int64
		var group sync.WaitGroup
		for range each {
			for _, body := range []string{limited, limitedStream} {
				group.Go(func() {
					status, got, err := f.ask([]byte(body))
					switch {
					case err == nil && status == 200 && (strings.Contains(got, "[DONE]") == (body == limitedStream)):
						good.Add(1)
					case err == nil && status == 502:
						bad.Add(1)
					default:
						t.Errorf("%d %s, %v", status, got, err)
					}
				})
			}
		}
		group.Wait()
		_, state := f.books()
		if want := money.USD - money.Amount(good.Load())*200_000; state.Balance != want || state.Held != 0 || good.Load() != each*2*4/5 {
			t.Errorf("%d good, %d bad, account %+v, want %s", good.Load(), bad.Load(), state, want)
		}
	})
}

// TestClientHangsUp checks that the provider's call is cancelled and the produced part is charged
// if the client closes the connection in the middle of a stream.
func TestClientHangsUp(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		f := newFlow(t, db, nil)
		f.provider.Expect(fakeprovider.Reply{Events: []string{fakeprovider.Text("Hello")}, End: fakeprovider.Stall})
		response, err := f.post([]byte(askStream))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(response.Body, make([]byte, 10)); err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		http.DefaultClient.CloseIdleConnections()
		<-f.last
		f.provider.WaitReplyEnd()
		receipt, state := f.books()
		if f.provider.Disconnects() != 1 || receipt.Code != "client_closed" || receipt.Status != 200 || receipt.Cost != 18_000 ||
			state.Balance != money.USD-18_000 || state.Held != 0 {
			t.Errorf("receipt %+v, account %+v, provider left by %d", receipt, state, f.provider.Disconnects())
		}
	})
}

// TestDatabaseIsAway checks that an answer is not sent if its charge cannot be committed, and that
// no request is charged twice or for nothing.
func TestDatabaseIsAway(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		f := newFlow(t, db, func(o *ledger.Options) { o.OutageGrace = 50 * time.Millisecond })
		for _, test := range []struct {
			body  string
			reply fakeprovider.Reply
		}{
			{ask, fakeprovider.Answer("Hello", 100, 10)},
			{askStream, fakeprovider.Stream(100, 10, "Hello", " world")},
		} {
			gate := make(chan struct{})
			test.reply.Wait = gate
			f.provider.Expect(test.reply)
			locked, unlock := make(chan struct{}), make(chan struct{})
			size := make(chan error, 1)
			go func() {
				f.provider.WaitRequest() // admitted
				size <- db.Update(context.Background(), func(tx *store.Tx) error {
					if err := tx.Lock("ledger_account", "id", "acct_1"); err != nil {
						return err
					}
					close(locked)
					<-unlock
					return nil
				})
			}()
			go func() {
				<-locked
				close(gate)
			}()
			status, got, err := f.ask([]byte(test.body))
			close(unlock)
			if err := <-size; err != nil {
				t.Fatal(err)
			}
			if strings.Contains(got, `"stop"`) || strings.Contains(got, "[DONE]") {
				t.Errorf("%d %s, %v: the client has a whole answer", status, got, err)
			}
			if err == nil && status != http.StatusServiceUnavailable {
				t.Errorf("%d %s: not cut", status, got)
			}
			if errors.Is(err, context.DeadlineExceeded) {
				t.Error(err)
			}
		}
		// The next request waits for the books, so all ends are in them. On a slow
		// machine it may itself be cut, after a charge or without one.
		lowest := money.USD - 400_000
		for status := 0; status != http.StatusOK; {
			if lowest -= 200_000; lowest < money.USD-5_000_000 {
				t.Fatal("no answer comes through any more")
			}
			f.provider.Expect(fakeprovider.Answer("Hello", 100, 10))
			status, _, _ = f.ask([]byte(ask))
		}
		if _, state := f.books(); state.Held != 0 || state.Balance > money.USD-200_000 || state.Balance < lowest {
			t.Errorf("account %+v", state)
		}
	})
}
