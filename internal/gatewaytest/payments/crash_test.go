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
	"sync/atomic"
	"testing"

	"tollgate/internal/gatewaytest/fakepayment"
	"tollgate/internal/gatewaytest/scene"
	"tollgate/internal/money"
	"tollgate/internal/store/storetest"
	"tollgate/internal/topup/stripe"
)

// settings configure payments by the fake.
func settings(s *fakepayment.Stripe) map[string]string {
	return map[string]string{"stripe_url": s.URL, "stripe_key": fakepayment.StripeKey, "stripe_webhook_secret": fakepayment.StripeSecret,
		"topup_bonus": "50=10", "invoice_seller_name": "Lumen", "invoice_seller_address": "Ring 1", "invoice_seller_country": "DE",
		"private_networks": "127.0.0.0/8", "node_lease": "1s"}
}

// customer is a browser of a customer. Its requests are repeated until they are answered, as people do.
type customer struct {
	t      *testing.T
	n      *scene.Node
	client *http.Client
	id     string  // of the account
	db     *sql.DB // if not nil, the newest top-up is due when the process starts again

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
	c.n.Kill()
	c.makeDue()
	c.n.Restart()
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

// deliver sends all messages of Stripe until each one is acknowledged.
func (c *customer) deliver(s *fakepayment.Stripe) {
	c.t.Helper()
	for _, e := range s.Events() {
		status := 0
		for range 5 {
			s.SendTo(c.n.URL + stripe.Path)
			if status = s.Send(e); status == http.StatusOK {
				break
			}
			if status == 0 {
				c.revive(errUnanswered)
			}
		}
		if status != http.StatusOK {
			c.t.Errorf("%s: got %d, want 200", e.Type, status)
		}
		s.SendTo("")
	}
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

// TestKillBetweenSteps orders a top-up, pays it, and refunds a part. In each round the process is killed
// at another call of Stripe's API, after the call has had its effect and before its answer. The last
// rounds are without a kill. Each round ends with one session, one credit and one take-back.
func TestKillBetweenSteps(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, database string) {
		s := fakepayment.NewStripe(t)
		n := scene.NewNode(t, scene.Binary(t), database, settings(s))
		c := newCustomer(t, n)
		var calls, killAt atomic.Int64
		s.OnCall(func(string, string) {
			if calls.Add(1) == killAt.Load() {
				n.Kill()
			}
		})
		want := money.Amount(0)
		for round, killed := int64(1), true; killed; round++ {
			calls.Store(0)
			killAt.Store(round)
			sessions := s.Sessions()
			once := c.newOnce()
			page := c.post("/console/billing/top-ups/new", url.Values{"amount": {"50.00"}, "provider": {"stripe"}, "other": {""}, "once": {once}})
			id := topupID.FindString(page)
			if s.Session(id) == "" || !strings.Contains(c.get(page), "/pay/") {
				page = c.post(page+"/check", nil)
			}
			s.Pay(s.Session(id))
			c.deliver(s)
			if body := c.get(page); !strings.Contains(body, "Receipt") {
				t.Fatalf("round %d: the page of the top-up is no receipt:\n%s", round, body)
			}
			s.RefundElsewhere(s.Session(id), 2500)
			c.deliver(s)
			want += 27_500_000_000
			if got := n.FundsOf(c.id).Balance; got != want {
				t.Errorf("round %d: balance: got %s, want %s", round, got, want)
			}
			if got := s.Sessions() - sessions; got != 1 {
				t.Errorf("round %d: got %d sessions, want 1", round, got)
			}
			n.Audit(t)
			killed = calls.Load() >= round && round < 12
		}
		n.CheckStop(t)
		scene.CheckBooks(t, n.Binary, n.Settings)
	})
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

// TestKillDuringAutomaticTopup lets the balance fall below its level. In each round the process is killed
// at another of the first calls of Stripe's API, after the call has had its effect and before its answer.
// Each round ends with one charge of the card and one credit.
func TestKillDuringAutomaticTopup(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, database string) {
		s := fakepayment.NewStripe(t)
		with := settings(s)
		with["topup_automatic_maximum"] = "1000"
		n := scene.NewNode(t, scene.Binary(t), database, with)
		c := newCustomer(t, n)
		once := c.newOnce()
		page := c.post("/console/billing/top-ups/new", url.Values{"amount": {"50.00"}, "provider": {"stripe"}, "other": {""}, "save": {"on"},
			"once": {once}})
		s.Pay(s.Session(topupID.FindString(page)))
		c.deliver(s)
		c.post("/console/billing/automatic", url.Values{"level": {"50"}, "amount": {"20"}, "monthly": {"1000"}})

		var calls, killAt atomic.Int64
		var dead atomic.Bool
		s.OnCall(func(string, string) {
			if calls.Add(1) == killAt.Load() {
				n.Kill()
				dead.Store(true)
			}
		})
		want := n.FundsOf(c.id).Balance
		for round, killed := int64(1), true; killed; round++ {
			killAt.Store(0)
			n.Admin("POST", "/accounts/"+c.id+"/credits", map[string]any{"usd": "-20", "note": "spent elsewhere"}, nil)
			charges := s.Charges()
			calls.Store(0)
			killAt.Store(round)
			c.revive(errUnanswered) // the loop of a new process begins at once
			scene.Eventually(t, "the card is charged", func() bool {
				if dead.Swap(false) {
					c.revive(errUnanswered)
					c.post("/console/billing/top-ups/"+topupID.FindString(c.get("/console/billing/top-ups"))+"/check", nil)
				}
				return s.Charges() > charges
			})
			c.deliver(s)
			killAt.Store(0)
			if dead.Swap(false) {
				c.revive(errUnanswered)
			}
			c.deliver(s)
			if got := s.Charges() - charges; got != 1 {
				t.Errorf("round %d: got %d charges, want 1", round, got)
			}
			if got := n.FundsOf(c.id).Balance; got != want {
				t.Errorf("round %d: balance: got %s, want %s", round, got, want)
			}
			n.Audit(t)
			killed = calls.Load() >= round && round < 6
		}
		n.CheckStop(t)
		scene.CheckBooks(t, n.Binary, n.Settings)
	})
}

// TestKillDuringRefund refunds a part of a payment as an operator. In each round the process is killed at another
// call of Stripe's API, after the call has had its effect and before its answer. The last round is without a kill.
// Each round ends with one refund at Stripe and one take-back. At the end all messages come again.
func TestKillDuringRefund(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, database string) {
		s := fakepayment.NewStripe(t)
		n := scene.NewNode(t, scene.Binary(t), database, settings(s))
		c, db := newCustomer(t, n), scene.OpenDatabase(t, database)
		once := c.newOnce()
		id := topupID.FindString(c.post("/console/billing/top-ups/new", url.Values{"amount": {"50.00"}, "provider": {"stripe"}, "other": {""},
			"once": {once}}))
		s.Pay(s.Session(id))
		c.deliver(s)
		var calls, killAt atomic.Int64
		s.OnCall(func(string, string) {
			if calls.Add(1) == killAt.Load() {
				n.Kill()
			}
		})
		want := n.FundsOf(c.id).Balance
		for round, killed := int64(1), true; killed; round++ {
			calls.Store(0)
			killAt.Store(round)
			refunds := s.Refunds()
			res, err := scene.Do(t.Context(), http.DefaultClient, "POST", n.URL+"/admin/v1/top-ups/"+id+"/refunds",
				`{"amount":"1.00","reason":"asked for it"}`, "Authorization", "Bearer "+scene.AdminToken, "Content-Type", "application/json")
			if err == nil {
				_ = res.Body.Close()
			}
			killed = calls.Load() >= round
			killAt.Store(0)
			want -= 1_100_000_000
			if killed {
				if _, err := db.Exec(`UPDATE topup SET check_ms = 1`); err != nil { // the sweep at the start asks at once
					t.Fatal(err)
				}
				c.revive(errUnanswered)
			}
			scene.Eventually(t, "the refund is made and confirmed", func() bool {
				var open int
				err := db.QueryRow(`SELECT COUNT(*) FROM topup_reversal WHERE requested <> 0`).Scan(&open)
				return err == nil && open == 0 && s.Refunds() > refunds
			})
			c.deliver(s)
			if got := s.Refunds() - refunds; got != 1 {
				t.Errorf("round %d: got %d refunds, want 1", round, got)
			}
			if got := n.FundsOf(c.id).Balance; got != want {
				t.Errorf("round %d: balance: got %s, want %s", round, got, want)
			}
			n.Audit(t)
		}
		c.revive(errUnanswered) // killed after the answers to all messages
		c.deliver(s)
		if got := n.FundsOf(c.id).Balance; got != want {
			t.Errorf("after the messages again: balance: got %s, want %s", got, want)
		}
		n.CheckStop(t)
		scene.CheckBooks(t, n.Binary, n.Settings)
	})
}
