// Package payments owns the tests of payments with the real process: kills between every two steps, COMMITs
// without an answer, frozen nodes, full disks, and nodes without payments.
//
// Invariants of the tests: after each fault, people and the provider repeat their requests and messages. Then each
// payment has one session, one credit, one take-back for each refund and dispute, and one document and one mail
// for each of them.
package payments

import (
	"database/sql"
	"errors"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"testing"

	"tollgate/internal/gatewaytest/fakepayment"
	"tollgate/internal/gatewaytest/scene"
	"tollgate/internal/topup/stripe"
)

// customer is a browser of a customer. Its requests are repeated until they are answered, as people do.
type customer struct {
	t      *testing.T
	n      *scene.Node
	client *http.Client
	id     string  // of the account
	db     *sql.DB // if not nil, the newest top-up is due when the process starts again

	starting sync.Mutex // held until a new process is ready
	restarts int
}

const password = "right horse battery"

func newCustomer(t *testing.T, n *scene.Node) *customer {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	c := &customer{t: t, n: n, client: &http.Client{Jar: jar}}
	var account struct{ ID string }
	n.Admin("POST", "/accounts", map[string]any{"name": "ada", "email": "ada@example.com", "password": password}, &account)
	c.id = account.ID
	c.post("/console/sign-in", url.Values{"email": {"ada@example.com"}, "password": {password}})
	return c
}

// errUnanswered reports a message of a provider without an answer.
var errUnanswered = errors.New("the message is not answered")

// revive starts the process again if it was killed.
func (c *customer) revive(err error) {
	c.t.Helper()
	if err == nil {
		return
	}
	c.restarts++
	c.restart()
}

// restart kills the process and starts it again.
func (c *customer) restart() {
	c.t.Helper()
	c.starting.Lock()
	defer c.starting.Unlock()
	c.n.Kill()
	c.makeDue()
	c.n.Restart()
}

// kill kills the process once it is ready.
func (c *customer) kill() {
	c.starting.Lock()
	defer c.starting.Unlock()
	c.n.Kill()
}

// makeDue makes the next sweep ask about the newest top-up, if db is set.
func (c *customer) makeDue() {
	c.t.Helper()
	if c.db == nil {
		return
	}
	if _, err := c.db.Exec(`UPDATE topup SET check_ms = 1 WHERE id = (SELECT MAX(id) FROM topup)`); err != nil {
		c.t.Fatal(err)
	}
}

func (c *customer) get(path string) (body string) {
	c.t.Helper()
	_, body = c.do(func() (*http.Request, error) { return http.NewRequest(http.MethodGet, c.n.URL+path, nil) })
	return body
}

// post sends a form and returns the path of the next page.
func (c *customer) post(path string, form url.Values) (page string) {
	c.t.Helper()
	page, _ = c.do(func() (*http.Request, error) {
		r, err := http.NewRequest(http.MethodPost, c.n.URL+path, strings.NewReader(form.Encode()))
		if err == nil {
			r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		}
		return r, err
	})
	return page
}

func (c *customer) do(newRequest func() (*http.Request, error)) (page, body string) {
	c.t.Helper()
	for range 5 {
		r, err := newRequest()
		if err != nil {
			c.t.Fatal(err)
		}
		resp, err := c.client.Do(r)
		if err != nil {
			c.revive(err)
			continue
		}
		raw, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if err != nil {
			c.revive(err)
			continue
		}
		if resp.StatusCode == http.StatusServiceUnavailable {
			continue
		}
		if resp.StatusCode != http.StatusOK {
			c.t.Fatalf("%s %s: got %d, want 200: %s", r.Method, r.URL.Path, resp.StatusCode, raw)
		}
		return resp.Request.URL.Path, string(raw)
	}
	c.t.Fatal("no answer after five attempts")
	return "", ""
}

var (
	onceValue = regexp.MustCompile(`name="once"[^>]*value="([^"]+)"`)
	topupID   = regexp.MustCompile(`topup_\w{26}`)
)

// newOnce returns the once-value of a new form for an order.
func (c *customer) newOnce() string {
	c.t.Helper()
	once := onceValue.FindStringSubmatch(c.get("/console/billing/top-ups/new"))
	if once == nil {
		c.t.Fatal("the form has no once-value")
	}
	return once[1]
}

// TestWithoutPayments checks the addresses of a node without a provider. Half of
// the settings of a provider is an error.
func TestWithoutPayments(t *testing.T) {
	binary := scene.Binary(t)
	database := "sqlite:" + t.TempDir() + "/a.db"
	n := scene.NewNode(t, binary, database, nil)
	for _, path := range []string{stripe.Path, "/payments/epay/notify", "/payments"} {
		resp, err := http.Post(n.URL+path, "application/json", strings.NewReader(`{}`))
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode != http.StatusNotFound {
			t.Errorf("POST %s: got %d, want 404", path, resp.StatusCode)
		}
	}
	n.Stop()
	for _, c := range []struct {
		settings map[string]string
		want     string
	}{
		{map[string]string{"stripe_key": fakepayment.StripeKey}, "stripe_webhook_secret: must be set"},
		{map[string]string{"stripe_webhook_secret": fakepayment.StripeSecret}, "stripe_key: must be set"},
		{map[string]string{"stripe_key": "pk_live_1"}, "stripe_key (TOLLGATE_STRIPE_KEY): must be a secret or restricted key"},
		{map[string]string{"stripe_key": fakepayment.StripeKey, "stripe_webhook_secret": "whsec_"}, "must be the signing secret"},
		{map[string]string{"epay_key": fakepayment.EPayKey, "epay_pid": fakepayment.EPayPID}, "epay_url: must be set"},
		{map[string]string{"epay_url": "https://pay.example", "epay_pid": fakepayment.EPayPID}, "epay_key: must be set"},
		{map[string]string{"epay_url": "https://pay.example", "epay_key": fakepayment.EPayKey}, "epay_pid: must be set"},
		{map[string]string{"epay_url": "https://pay.example", "epay_pid": fakepayment.EPayPID, "epay_key": fakepayment.EPayKey},
			"topup_currency: must be cny"},
		{map[string]string{"epay_key": "short"}, "epay_key (TOLLGATE_EPAY_KEY): must be your key"},
		{map[string]string{"epay_methods": "douyin"}, "epay_methods (TOLLGATE_EPAY_METHODS): "},
		{map[string]string{"topup_currency": "eur"}, "topup_rate: must be set"},
		{map[string]string{"topup_amounts": "1"}, "topup_amounts:"},
		{map[string]string{"topup_bonus": "much"}, "topup_bonus:"},
	} {
		c.settings["database"] = database
		_, stderr, code := scene.Run(t, binary, c.settings, "serve")
		if code != 2 || !strings.Contains(stderr, c.want) || strings.Contains(stderr, "whsec_0") {
			t.Errorf("%v: got exit code %d and %q, want 2 and %q", c.settings, code, stderr, c.want)
		}
	}
}
