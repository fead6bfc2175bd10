package webhook

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"tollgate/internal/egress"
	"tollgate/internal/money"
	"tollgate/internal/store"
)

// TestChosenEvents checks that an endpoint gets only committed events of its account and chosen types.
func TestChosenEvents(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, env *testEnv) {
		n := env.node("a")
		r := newReceiver(t, nil)
		secret := env.endpoint(n, "acct_1", r.URL+"/hook?x=1", ImageCompleted, BalanceLow)
		env.emit(func(q *store.Batch, nowMS int64) {
			n.EmitJob(q, nowMS, JobEnd{Account: "acct_1", Type: ImageCompleted, Body: []byte(jobBody + "\n")})
			n.EmitJob(q, nowMS, JobEnd{Account: "acct_1", Type: ImageFailed, Body: []byte(jobBody)}) // not chosen
			n.EmitJob(q, nowMS, JobEnd{Account: "acct_2", Type: ImageCompleted, Body: []byte(jobBody)})
			n.EmitLow(q, nowMS, "acct_1", money.USD/2, 3*money.USD)
			n.EmitLow(q, nowMS, "acct_2", 0, money.USD)
		})
		env.transaction(false, func(q *store.Batch, nowMS int64) { // rolled back
			n.EmitJob(q, nowMS, JobEnd{Account: "acct_1", Type: ImageCompleted, Body: []byte(jobBody)})
		})
		n.settle()
		posts := r.requests()
		if len(posts) != 2 {
			t.Fatalf("the endpoint got %d events, want 2", len(posts))
		}
		data := map[string]string{}
		for _, p := range posts {
			verify(t, secret, p)
			var e struct {
				ID, Object, Type string
				Created          int64 `json:"created_at"`
				Data             json.RawMessage
			}
			if err := json.Unmarshal([]byte(p.body), &e); err != nil {
				t.Fatal(err)
			}
			if e.ID != p.id || !strings.HasPrefix(e.ID, "evt_") || e.Object != "event" || e.Created != env.clock.Now().Unix() ||
				p.path != "/hook?x=1" {
				t.Errorf("the request is %+v, want an event with the id of the header", p)
			}
			data[e.Type] = string(e.Data)
		}
		if data[ImageCompleted] != jobBody || data[BalanceLow] != `{"balance_credits":100,"threshold_credits":600}` {
			t.Errorf("the data of the events is %v", data)
		}
		if env.count("webhook_delivery") != 2 || env.count("webhook_queue") != 0 || env.count("webhook_receiver") != 0 {
			t.Error("the tables have more rows than two ended deliveries")
		}
		env.endpoint(n, "acct_1", "", ImageCompleted)
		env.emit(func(q *store.Batch, nowMS int64) {
			n.EmitJob(q, nowMS, JobEnd{Account: "acct_1", Type: ImageCompleted, Body: []byte(jobBody)})
		})
		n.settle()
		if len(r.requests()) != 2 {
			t.Error("an endpoint without an address got an event")
		}
	})
}

// TestCallbacks checks that a callback gets the job object instead of the account's endpoint.
func TestCallbacks(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, env *testEnv) {
		n := env.node("a")
		endpoint, callback := newReceiver(t, nil), newReceiver(t, nil)
		secret := env.endpoint(n, "acct_1", endpoint.URL, types...)
		env.callback(n, "acct_1", callback.URL+"/cb")
		env.callback(n, "acct_2", callback.URL+"/other") // never had a secret
		n.settle()
		if len(endpoint.requests()) != 0 || len(callback.requests()) != 2 {
			t.Fatalf("the endpoint got %d requests and the callback %d, want 0 and 2", len(endpoint.requests()), len(callback.requests()))
		}
		for _, p := range callback.requests() {
			if p.path == "/cb" {
				verify(t, secret, p)
			} else {
				verify(t, env.secret("acct_2"), p)
			}
			if p.body != jobBody || !strings.HasPrefix(p.id, "evt_") {
				t.Errorf("the request is %+v, want the job object", p)
			}
		}
	})
}

// TestSchedule checks that a delivery without a success has attempts after the waits of the settings,
// with the same id and body and with a new timestamp and signature.
func TestSchedule(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, env *testEnv) {
		n, r := env.deliver(status(500))
		secret := env.secret("acct_1")
		for i, wait := range schedule {
			if d := env.log("acct_1")[0]; d.State != "pending" || len(d.Attempts) != i+1 || d.NextMS != env.clock.Now().Add(wait).UnixMilli() {
				t.Fatalf("after %d attempts the delivery is %+v, want pending for %v", i+1, d, wait)
			}
			env.clock.Advance(wait - time.Millisecond)
			n.settle()
			if got := len(r.requests()); got != i+1 {
				t.Fatalf("%d attempts before the end of the wait of %v, want %d", got, wait, i+1)
			}
			env.clock.Advance(time.Millisecond)
			n.settle()
		}
		env.clock.Advance(24 * time.Hour)
		n.settle()
		posts := r.requests()
		d := env.log("acct_1")[0]
		if len(posts) != 6 || d.State != "failed" || d.NextMS != 0 || len(d.Attempts) != 6 || d.Attempts[5].Status != 500 ||
			d.Attempts[5].Error == "" {
			t.Fatalf("%d requests for the delivery %+v, want 6 and failed", len(posts), d)
		}
		timestamps := map[string]bool{}
		for i, p := range posts {
			verify(t, secret, p)
			if p.id != posts[0].id || p.body != posts[0].body || p.id != d.Event {
				t.Errorf("attempt %d is %+v, want the id and body of the first", i, p)
			}
			timestamps[p.timestamp] = true
			if want := strconv.FormatInt(d.Attempts[i].AtMS/1000, 10); p.timestamp != want {
				t.Errorf("attempt %d has the timestamp %s, want %s as in the log", i, p.timestamp, want)
			}
		}
		if len(timestamps) != 6 {
			t.Errorf("%d different timestamps, want 6", len(timestamps))
		}
		env.checkQueueIsEmpty()
	})
}

// TestTimestamp checks that the official library accepts the timestamp by its own clock.
func TestTimestamp(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, env *testEnv) {
		n := env.node("a", func(o *Options) { o.Now = time.Now })
		r := newReceiver(t, nil)
		env.callback(n, "acct_1", r.URL)
		n.settle()
		hook, err := standardwebhooks.NewWebhook(env.secret("acct_1"))
		if err != nil {
			t.Fatal(err)
		}
		if p := r.requests()[0]; hook.Verify([]byte(p.body), p.header) != nil {
			t.Errorf("the library rejects %+v", p)
		}
	})
}

// TestDecide checks the next state of a delivery after each kind of outcome.
func TestDecide(t *testing.T) {
	t.Parallel()
	waits := []time.Duration{time.Second, time.Minute}
	for _, c := range []struct {
		tries int64
		kind  kind
		want  decision
	}{
		{0, delivered, decision{stateDelivered, 1, 0}},
		{2, delivered, decision{stateDelivered, 3, 0}},
		{0, failed, decision{statePending, 1, 2000}},
		{1, failed, decision{statePending, 2, 61000}},
		{1, disabled, decision{statePending, 2, 61000}},
		{2, failed, decision{stateFailed, 3, 0}},
		{2, disabled, decision{stateFailed, 3, 0}},
		{0, aborted, decision{statePending, 0, 77}},
		{2, aborted, decision{statePending, 2, 77}},
		{2, unsent, decision{statePending, 2, 77}},
	} {
		if got := decide(waits, c.tries, 77, 1000, outcome{kind: c.kind}); got != c.want {
			t.Errorf("decide after %d tries and outcome %d = %+v, want %+v", c.tries, c.kind, got, c.want)
		}
	}
	if got := decide(nil, 0, 0, 0, outcome{kind: failed}); got.state != stateFailed {
		t.Errorf("decide without retries = %+v, want failed", got)
	}
}

// TestAnswers checks the state, status and error in the log for each kind of answer.
func TestAnswers(t *testing.T) {
	t.Parallel()
	drip := func(w http.ResponseWriter, r *http.Request, write func() error) {
		tick := time.NewTicker(50 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-r.Context().Done():
				return
			case <-tick.C:
				if write() != nil {
					return
				}
			}
		}
	}
	answers := map[string]struct {
		answer http.HandlerFunc
		state  string
		status int
		err    string
	}{
		"200": {status(200), "delivered", 200, ""}, "201": {status(201), "delivered", 201, ""}, "204": {status(204), "delivered", 204, ""},
		"299": {status(299), "delivered", 299, ""}, "304": {status(304), "pending", 304, "redirects are not followed"},
		"400": {status(400), "pending", 400, "answered 400"}, "404": {status(404), "pending", 404, "answered 404"},
		"410": {status(410), "pending", 410, "answered 410"}, "429": {status(429), "pending", 429, "answered 429"},
		"500": {status(500), "pending", 500, "answered 500"}, "503": {status(503), "pending", 503, "answered 503"},
		"301": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "/elsewhere", http.StatusMovedPermanently)
		}, "pending", 301, "redirects are not followed"},
		"307": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
		}, "pending", 307, "redirects are not followed"},
		"stall": {func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, "pending", 0, "no complete answer in time"},
		"close": {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, "pending", 0, "closed before"},
		"no http": {func(w http.ResponseWriter, _ *http.Request) {
			conn, _, err := w.(http.Hijacker).Hijack()
			if err == nil {
				_, _ = conn.Write([]byte("220 mail.example ESMTP\r\n\r\n"))
				_ = conn.Close()
			}
		}, "pending", 0, "could not be read as HTTP"},
		"dripping head": {func(w http.ResponseWriter, r *http.Request) {
			conn, _, err := w.(http.Hijacker).Hijack()
			if err != nil {
				return
			}
			defer conn.Close()
			head := "HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", 1000)
			for i := 0; i < len(head); i++ {
				if _, err := conn.Write([]byte{head[i]}); err != nil {
					return
				}
				<-time.After(50 * time.Millisecond)
			}
		}, "pending", 0, "no complete answer in time"},
		"dripping body": {func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(200)
			drip(w, r, func() error { _, err := w.Write([]byte("x")); w.(http.Flusher).Flush(); return err })
		}, "delivered", 200, ""},
		"endless body": {func(w http.ResponseWriter, r *http.Request) {
			for r.Context().Err() == nil {
				if _, err := w.Write(make([]byte, 1<<16)); err != nil {
					return
				}
			}
		}, "delivered", 200, ""},
		"cut body": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			_, _ = w.Write([]byte("x"))
			w.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		}, "delivered", 200, ""},
	}
	each(t, func(t *testing.T, env *testEnv) {
		n := env.node("a", func(o *Options) { o.Timeout = 1500 * time.Millisecond })
		r := newReceiver(t, nil)
		r.respond(func(w http.ResponseWriter, req *http.Request) {
			if a, ok := answers[strings.TrimPrefix(req.URL.Path, "/")]; ok {
				a.answer(w, req)
			}
		})
		names := make([]string, 0, len(answers))
		for name := range answers {
			names = append(names, name)
		}
		slices.Sort(names)
		for i, name := range names { // one account each, so that slow answers do not delay others
			env.callback(n, fmt.Sprintf("acct_%d", i), r.URL+"/"+strings.ReplaceAll(name, " ", "%20"))
		}
		start := time.Now()
		n.settle()
		if elapsed := time.Since(start); elapsed > 10*time.Second {
			t.Errorf("the attempts took %v, want at most 10 s", elapsed)
		}
		for i, name := range names {
			want := answers[name]
			d := env.log(fmt.Sprintf("acct_%d", i))[0]
			if len(d.Attempts) != 1 || d.State != want.state || d.Attempts[0].Status != want.status ||
				!strings.Contains(d.Attempts[0].Error, want.err) ||
				(want.err == "") != (d.Attempts[0].Error == "") {
				t.Errorf("%s: the delivery is %+v, want state %s, status %d and error %q", name, d, want.state, want.status, want.err)
			}
		}
		if got := len(r.requests()); got != len(names) {
			t.Errorf("%d requests for %d deliveries, want one each without redirects", got, len(names))
		}
	})
}

// TestRolledSecret checks that the next attempt uses a rolled secret.
func TestRolledSecret(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, env *testEnv) {
		n := env.node("a")
		r := newReceiver(t, status(500))
		env.update(func(tx *store.Tx) error { return OpenTx(tx, "acct_1") })
		old := env.secret("acct_1")
		env.update(func(tx *store.Tx) error { return OpenTx(tx, "acct_1") })
		if env.secret("acct_1") != old {
			t.Error("a second OpenTx changed the secret")
		}
		env.callback(n, "acct_1", r.URL)
		n.settle()
		var rolled string
		env.update(func(tx *store.Tx) (err error) { rolled, err = RollTx(tx, "acct_1"); return err })
		if rolled == old || env.secret("acct_1") != rolled || env.endpoint(n, "acct_1", r.URL, ImageCompleted) != rolled {
			t.Error("the secret was not rolled, or changed with the address")
		}
		env.clock.Advance(time.Minute)
		n.settle()
		posts := r.requests()
		verify(t, old, posts[0])
		verify(t, rolled, posts[1])
		if posts[0].id != posts[1].id {
			t.Errorf("the attempts have the ids %s and %s, want the same", posts[0].id, posts[1].id)
		}
	})
}

// TestSecretFormat checks that new secrets are unique and that the official library accepts them.
func TestSecretFormat(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for range 100 {
		secret := newSecret()
		if !strings.HasPrefix(secret, "whsec_") || strings.HasSuffix(secret, "=") || seen[secret] {
			t.Fatalf("newSecret() = %q, want a new secret with the prefix and without padding", secret)
		}
		seen[secret] = true
		if _, err := standardwebhooks.NewWebhook(secret); err != nil {
			t.Fatal(err)
		}
	}
}

// TestDisabledAccount checks that attempts for a disabled account fail without a request, and that the
// delivery continues after the account is enabled.
func TestDisabledAccount(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, env *testEnv) {
		n, r := env.deliver(status(500))
		env.disable("acct_1", true)
		env.clock.Advance(time.Minute)
		n.settle()
		d := env.log("acct_1")[0]
		if len(r.requests()) != 1 || len(d.Attempts) != 2 || !strings.Contains(d.Attempts[1].Error, "disabled") || d.State != "pending" {
			t.Fatalf("%d requests and the delivery %+v, want 1 and pending", len(r.requests()), d)
		}
		if _, err := n.Resend(context.Background(), d.ID); err == nil || !strings.Contains(err.Error(), "disabled") {
			t.Errorf("Resend for a disabled account: %v, want an error", err)
		}
		env.disable("acct_1", false)
		r.respond(nil)
		env.clock.Advance(5 * time.Minute)
		n.settle()
		if d := env.log("acct_1")[0]; d.State != "delivered" || len(r.requests()) != 2 {
			t.Errorf("%d requests and the delivery %+v, want 2 and delivered", len(r.requests()), d)
		}
	})
}

// TestAddressesAreCheckedWhenDialed checks that an attempt to a private address fails, even if the address
// was public or allowed when the account set it.
func TestAddressesAreCheckedWhenDialed(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, env *testEnv) {
		n := env.node("a", func(o *Options) { o.Guard = egress.New(nil) })
		r := newReceiver(t, nil)
		env.callback(n, "acct_1", r.URL)
		env.callback(n, "acct_2", strings.Replace(r.URL, "127.0.0.1", "localhost", 1))
		n.settle()
		for _, account := range []string{"acct_1", "acct_2"} {
			if d := env.log(account)[0]; d.State != "pending" || d.Attempts[0].Error != "the host has no public address" ||
				d.Attempts[0].Status != 0 {
				t.Errorf("the delivery of %s is %+v, want pending without a public address", account, d)
			}
		}
		if len(r.requests()) != 0 {
			t.Error("a private address got a request")
		}
	})
}

// FuzzSign compares the signature of any bytes with the official library's signature.
func FuzzSign(f *testing.F) {
	f.Add("evt_1", int64(1_790_000_000), `{"a":1}`)
	f.Add("", int64(0), "")
	f.Add("evt.with.dots", int64(-1), "\xff\x00.")
	secret := newSecret()
	hook, err := standardwebhooks.NewWebhook(secret)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, event string, stamp int64, body string) {
		got, err := sign(secret, event, strconv.FormatInt(stamp, 10), body)
		if err != nil {
			t.Fatal(err)
		}
		want, err := hook.Sign(event, time.Unix(stamp, 0), []byte(body))
		if err != nil || got != want {
			t.Fatalf("sign returned %q, want %q; error %v", got, want, err)
		}
	})
}
