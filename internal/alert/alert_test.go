package alert

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"tollgate/internal/loop"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// pipes is a network in memory, for servers in a synctest bubble.
type pipes struct {
	conns chan net.Conn
	once  sync.Once
	done  chan struct{}
}

func newPipes() *pipes { return &pipes{conns: make(chan net.Conn), done: make(chan struct{})} }

func (p *pipes) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	near, far := net.Pipe()
	select {
	case p.conns <- far:
		return near, nil
	case <-p.done:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error   { p.once.Do(func() { close(p.done) }); return nil }
func (p *pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipes", Net: "unix"} }

// receiver receives alerts on a network in memory and records their bodies in order.
type receiver struct {
	transport http.RoundTripper
	server    *http.Server
	ended     chan struct{}

	mu     sync.Mutex
	bodies []string
	times  []time.Time
}

// receive starts a receiver. answer answers the nth request, from 0.
func receive(t *testing.T, answer func(n int, w http.ResponseWriter, r *http.Request)) *receiver {
	t.Helper()
	network := newPipes()
	rec := &receiver{
		transport: &http.Transport{DialContext: network.dial, DisableKeepAlives: true},
		ended:     make(chan struct{}),
	}
	rec.server = &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Errorf("read an alert: %v", err)
		}
		rec.mu.Lock()
		n := len(rec.bodies)
		rec.bodies, rec.times = append(rec.bodies, string(body)), append(rec.times, time.Now())
		rec.mu.Unlock()
		if r.Method != http.MethodPost || r.Header.Get("Content-Type") != "application/json" {
			t.Errorf("the request is a %s with content type %q, want a POST with JSON", r.Method, r.Header.Get("Content-Type"))
		}
		answer(n, w, r)
	})}
	go func() {
		defer close(rec.ended)
		_ = rec.server.Serve(network) // until it is closed
	}()
	return rec
}

func (r *receiver) close() {
	r.server.Close()
	<-r.ended
}

func (r *receiver) got() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]string(nil), r.bodies...)
}

// stopWait is the time for the last posts of a stopping sender.
const stopWait = 2 * time.Second

// start runs the sender. The returned function stops it and waits for its end.
func start(a *Sender) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		work, stopped := loop.Linger(ctx, stopWait)
		defer stopped()
		a.Run(ctx, work)
	}()
	return func() {
		cancel()
		<-ended
	}
}

// diary is a log for tests.
type diary struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (d *diary) Write(p []byte) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.text.Write(p)
}

func (d *diary) String() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.text.String()
}

func newDiary() (*diary, *slog.Logger) {
	d := &diary{}
	return d, slog.New(slog.NewTextHandler(d, nil))
}

const (
	secretAddress = "http://user:hunter2@alerts.example/services/T0/secret-path?token=secret-query"
	secretPart    = "secret"
)

// checkNoSecrets checks that the log does not contain the address.
func checkNoSecrets(t *testing.T, d *diary) {
	t.Helper()
	for _, secret := range []string{secretPart, "hunter2", "/services"} {
		if strings.Contains(d.String(), secret) {
			t.Errorf("the log contains %q: %s", secret, d)
		}
	}
}

// TestAlertsArePostedInOrder checks the order and the bodies of posted alerts.
func TestAlertsArePostedInOrder(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d, log := newDiary()
		r := receive(t, func(_ int, w http.ResponseWriter, r *http.Request) {
			user, password, _ := r.BasicAuth()
			if r.URL.String() != "/services/T0/secret-path?token=secret-query" || user != "user" || password != "hunter2" {
				t.Errorf("posted to %s as %q", r.URL, user)
			}
			w.WriteHeader(http.StatusAccepted)
		})
		defer r.close()
		a := New(secretAddress, Mails{}, log, r.transport)
		a.Send(Alert{Line: "main", State: "circuit_open", Cause: "5 failures in a row", At: 1700000000})
		stop := start(a)
		a.Send(Alert{Line: "main", Model: "swift-1", State: "model_out", Cause: "no such model", At: 1700000001})
		a.Send(Alert{Line: "main", State: "in_service", At: 1700000002})
		synctest.Wait()
		want := []string{
			`{"line":"main","model":"","state":"circuit_open","cause":"5 failures in a row","at":1700000000,` +
				`"text":"tollgate: line main is out of service (circuit_open): 5 failures in a row",` +
				`"content":"tollgate: line main is out of service (circuit\\_open): 5 failures in a row","allowed_mentions":{"parse":[]}}`,
			`{"line":"main","model":"swift-1","state":"model_out","cause":"no such model","at":1700000001,` +
				`"text":"tollgate: line main, model swift-1 is out of service (model_out): no such model",` +
				`"content":"tollgate: line main, model swift-1 is out of service (model\\_out): no such model","allowed_mentions":{"parse":[]}}`,
			`{"line":"main","model":"","state":"in_service","cause":"","at":1700000002,"text":"tollgate: line main is back in service",` +
				`"content":"tollgate: line main is back in service","allowed_mentions":{"parse":[]}}`,
		}
		if got := r.got(); strings.Join(got, "\n") != strings.Join(want, "\n") {
			t.Errorf("posted\n%s", strings.Join(got, "\n"))
		}
		stop()
		if d.String() != "" {
			t.Errorf("log %s", d)
		}
	})
}

// TestAlertTries checks that a failed alert is posted three times and then logged.
func TestAlertTries(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		answer func(n int, w http.ResponseWriter, r *http.Request)
		at     []int // seconds of the attempts of the first alert
		log    string
	}{
		{"accepted", func(_ int, w http.ResponseWriter, _ *http.Request) { w.WriteHeader(204) }, []int{0}, ""},
		{"accepted after a failure", func(n int, w http.ResponseWriter, _ *http.Request) {
			if n == 0 {
				w.WriteHeader(500)
			}
		}, []int{0, 1}, ""},
		{"accepted at the last attempt", func(n int, w http.ResponseWriter, _ *http.Request) {
			if n < 2 {
				w.WriteHeader(429)
			}
		}, []int{0, 1, 6}, ""},
		{"never accepted", func(n int, w http.ResponseWriter, _ *http.Request) {
			if n < 3 {
				w.WriteHeader(500)
			}
		}, []int{0, 1, 6}, "status 500"},
		{"a redirect is not an answer", func(n int, w http.ResponseWriter, r *http.Request) {
			if n < 3 {
				http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
			}
		}, []int{0, 1, 6}, "status 307"},
		{"slow", func(n int, _ http.ResponseWriter, r *http.Request) {
			if n < 3 {
				<-r.Context().Done()
			}
		}, []int{0, 11, 26}, "deadline exceeded"},
		{"endless body", func(n int, w http.ResponseWriter, r *http.Request) {
			if n == 0 {
				w.WriteHeader(200)
				_ = http.NewResponseController(w).Flush()
				<-r.Context().Done()
			}
		}, []int{0}, ""},
		{"long body", func(_ int, w http.ResponseWriter, _ *http.Request) {
			for i := 0; i < 1000; i++ {
				if _, err := w.Write(bytes.Repeat([]byte("x"), 1024)); err != nil {
					return
				}
			}
			t.Error("the sender read the whole body")
		}, []int{0}, ""},
		{"not HTTP", func(n int, w http.ResponseWriter, r *http.Request) {
			if n < 3 {
				conn, _, err := http.NewResponseController(w).Hijack()
				if err != nil {
					t.Error(err)
					return
				}
				_, _ = io.WriteString(conn, "POST "+r.URL.String()+"\r\n\r\n")
				conn.Close()
			}
		}, []int{0, 1, 6}, "malformed"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				d, log := newDiary()
				r := receive(t, tt.answer)
				defer r.close()
				a := New(secretAddress, Mails{}, log, r.transport)
				begin := time.Now()
				stop := start(a)
				a.Send(Alert{Line: "first", Model: "swift-1", State: "model_out"})
				a.Send(Alert{Line: "second"})
				time.Sleep(time.Minute) // of fake time
				stop()
				got := r.got()
				var at []int
				for i, body := range got {
					if strings.Contains(body, `"first"`) {
						at = append(at, int(r.times[i].Sub(begin).Seconds()))
					}
				}
				if fmt.Sprint(at) != fmt.Sprint(tt.at) {
					t.Errorf("tried after %v s, want %v", at, tt.at)
				}
				if len(got) == 0 || !strings.Contains(got[len(got)-1], `"second"`) || len(got) != len(tt.at)+1 {
					t.Errorf("posted %v, want %d attempts and then the second alert", got, len(tt.at))
				}
				if text := d.String(); (tt.log == "") != (text == "") || !strings.Contains(text, tt.log) ||
					tt.log != "" && (strings.Count(text, "\n") != 1 || !strings.Contains(text, "line=first model=swift-1 state=model_out tries=3")) {
					t.Errorf("log %s", text)
				}
				checkNoSecrets(t, d)
			})
		})
	}
}

// TestFullAlerts checks that Send never waits, and dropped alerts are counted and logged once.
func TestFullAlerts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d, log := newDiary()
		open := make(chan struct{})
		r := receive(t, func(int, http.ResponseWriter, *http.Request) { <-open })
		defer r.close()
		a := New(secretAddress, Mails{}, log, r.transport)
		stop := start(a)
		a.Send(Alert{Line: "first"})
		synctest.Wait() // until the first alert is being posted
		for range maxQueue + 7 {
			a.Send(Alert{Line: "next"})
		}
		if text := d.String(); strings.Count(text, "\n") != 1 || !strings.Contains(text, "waiting=1000") {
			t.Errorf("log %s", text)
		}
		close(open)
		synctest.Wait()
		stop()
		if got := len(r.got()); got != maxQueue+1 {
			t.Errorf("%d alerts were posted, want %d", got, maxQueue+1)
		}
		if text := d.String(); strings.Count(text, "\n") != 2 || !strings.Contains(text, "alerts=7") {
			t.Errorf("log %s", text)
		}
		checkNoSecrets(t, d)
	})
}

// TestAlertsAtStop checks that queued alerts are posted for at most two seconds.
func TestAlertsAtStop(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		answer func(n int, w http.ResponseWriter, r *http.Request)
		took   time.Duration
		posted int
		log    string
	}{
		{"taken", func(int, http.ResponseWriter, *http.Request) {}, 0, 3, ""},
		{"a fault: no pauses", func(n int, w http.ResponseWriter, _ *http.Request) {
			if n < 2 {
				w.WriteHeader(500)
			}
		}, 0, 5, ""},
		{"slow", func(_ int, _ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, stopWait, 1, "alerts=2"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				d, log := newDiary()
				r := receive(t, tt.answer)
				defer r.close()
				a := New(secretAddress, Mails{}, log, r.transport)
				stop := start(a)
				for range 3 {
					a.Send(Alert{Line: "main"})
				}
				begin := time.Now()
				stop()
				if elapsed := time.Since(begin); elapsed != tt.took {
					t.Errorf("the stop took %v, want %v", elapsed, tt.took)
				}
				if got := len(r.got()); got != tt.posted {
					t.Errorf("%d posts, want %d", got, tt.posted)
				}
				if text := d.String(); (tt.log == "") != (text == "") || !strings.Contains(text, tt.log) {
					t.Errorf("log %s", text)
				}
				checkNoSecrets(t, d)
			})
		})
	}
}

// TestAlertsAtStopWhileWaiting checks that a stop ends the pause between attempts.
func TestAlertsAtStopWhileWaiting(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		_, log := newDiary()
		r := receive(t, func(n int, w http.ResponseWriter, _ *http.Request) {
			if n == 0 {
				w.WriteHeader(503)
			}
		})
		defer r.close()
		a := New(secretAddress, Mails{}, log, r.transport)
		stop := start(a)
		a.Send(Alert{Line: "main"})
		synctest.Wait() // until the pause before the second attempt
		began := time.Now()
		stop()
		if got := len(r.got()); got != 2 || time.Since(began) != 0 {
			t.Errorf("%d posts after %v, want 2 at once", got, time.Since(began))
		}
	})
}

// TestNoAddress checks that a sender without a valid address discards alerts.
func TestNoAddress(t *testing.T) {
	t.Parallel()
	d, log := newDiary()
	a := New("", Mails{}, log, nil)
	for range maxQueue + 1 {
		a.Send(Alert{Line: "main"})
	}
	a.Run(t.Context(), t.Context()) // returns at once
	if len(a.queue) > 0 || d.String() != "" {
		t.Errorf("%d alerts are queued and the log has %s, want neither", len(a.queue), d)
	}
	a = New("http://secret host", Mails{}, log, nil)
	a.Send(Alert{Line: "main"})
	a.Run(t.Context(), t.Context())
	if text := d.String(); strings.Contains(text, secretPart) || !strings.Contains(text, "alert_url") {
		t.Errorf("log %s", text)
	}
}

// TestAlertOverNetwork checks a post with the default transport without a proxy.
func TestAlertOverNetwork(t *testing.T) {
	t.Parallel()
	if own, ok := newTransport().(*http.Transport); !ok || own.Proxy != nil {
		t.Error("the default transport uses a proxy")
	}
	bodies := make(chan string, 1)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		bodies <- string(body)
	}))
	defer server.Close()
	d, log := newDiary()
	a := New(server.URL, Mails{}, log, nil)
	stop := start(a)
	a.Send(Alert{Line: "main", At: 1})
	if got := <-bodies; !strings.HasPrefix(got, `{"line":"main","model":"","state":"","cause":"","at":1,"text":`) {
		t.Errorf("posted %s", got)
	}
	stop()
	if d.String() != "" {
		t.Errorf("log %s", d)
	}
}

// TestAlertErrorsHideTheAddress checks that no part of the address appears in a logged error.
func TestAlertErrorsHideTheAddress(t *testing.T) {
	t.Parallel()
	_, log := newDiary()
	a := New(secretAddress, Mails{}, log, nil)
	for _, err := range []error{
		&url.Error{Op: "Post", URL: secretAddress, Err: errors.New("refused")},
		fmt.Errorf("wrapped: %w", &url.Error{Op: "Post", URL: secretAddress, Err: errors.New("refused " + secretAddress)}),
		errors.New("refused at " + secretAddress),
		errors.New("refused /services/T0/secret-path?token=secret-query"),
		errors.New("refused token=secret-query for user:hunter2"),
		errors.New("refused " + strings.Repeat("é", 1000)),
	} {
		text := a.redact(err)
		if strings.Contains(text, secretPart) || strings.Contains(text, "hunter2") || !strings.Contains(text, "refused") || len(text) > maxCause {
			t.Errorf("redact(%v) = %q, want a short text without the address", err, text)
		}
	}
}
