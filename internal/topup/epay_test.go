package topup_test

import (
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"tollgate/internal/fault"
	"tollgate/internal/gatewaytest/fakepayment"
	"tollgate/internal/money"
	"tollgate/internal/store"
	"tollgate/internal/topup"
	"tollgate/internal/topup/epay"
)

// site is a shop that takes payments in CNY, by an EPay site and by Stripe.
type site struct {
	*shop
	epay *fakepayment.EPay
}

// cny sells 1 CNY at 0.1 USD.
var cny = topup.TermsTexts{Currency: "cny", Rate: "0.1", Amounts: []string{"10", "100"}, Minimum: "5", Maximum: "1000"}

// eachSite runs test with a shop on each database. The address of the site's messages is served.
func eachSite(t *testing.T, test func(t *testing.T, s *site)) {
	t.Helper()
	eachShop(t, topup.Options{Terms: terms(t, cny)}, func(t *testing.T, sh *shop) {
		s := &site{sh, fakepayment.NewEPay(t)}
		s.epay.Now = sh.clock.Now
		s.Providers = append(s.Providers, s.service(fakepayment.EPayKey, true))
		s.handler = s.Handler()
		server := httptest.NewServer(s.handler)
		t.Cleanup(server.Close)
		s.epay.SendTo(server.URL + epay.Path)
		test(t, s)
	})
}

func (s *site) service(key string, refunds bool) *epay.Service {
	methods, err := epay.ParseMethods([]string{"alipay", "wxpay"})
	if err != nil {
		s.t.Fatal(err)
	}
	return epay.New(epay.Options{URL: s.epay.URL, PID: fakepayment.EPayPID, Key: key, Methods: methods, Refunds: refunds,
		HTTP: http.DefaultClient})
}

// order creates a top-up of the site and visits its page.
func (s *site) order(minor int64) topup.Topup {
	s.t.Helper()
	row, err := store.Write(s.t.Context(), s.db, func(tx *store.Tx) (topup.Topup, error) {
		return s.CreateTx(tx, topup.NewOrder{Account: s.account, Provider: epay.Name, Method: "alipay", Minor: minor})
	})
	if err != nil {
		s.t.Fatal(err)
	}
	if err := s.Begin(s.t.Context(), row.ID); err != nil {
		s.t.Fatal(err)
	}
	row = s.row(row.ID)
	s.epay.Visit(row.Address)
	return row
}

// bought returns a paid top-up of the site.
func (s *site) bought(minor int64) topup.Topup {
	s.t.Helper()
	row := s.order(minor)
	s.epay.Pay(row.ID)
	s.wantState(row, topup.Paid)
	return s.row(row.ID)
}

// deliver sends a message to a node and returns status and body of the answer.
func deliver(handler http.Handler, method string, q url.Values) (int, string) {
	r := httptest.NewRequest(http.MethodGet, epay.Path+"?"+q.Encode(), nil)
	if method == http.MethodPost {
		r = httptest.NewRequest(http.MethodPost, epay.Path, strings.NewReader(q.Encode()))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, r)
	return w.Code, w.Body.String()
}

// signed returns a message about a top-up, with some parameters changed, signed with the key.
func (s *site) signed(row topup.Topup, changes ...string) url.Values {
	q := url.Values{"pid": {fakepayment.EPayPID}, "trade_no": {"1"}, "out_trade_no": {row.ID}, "type": {"alipay"}, "name": {"API credit"},
		"money": {row.Currency.Decimal(row.Minor)}, "trade_status": {"TRADE_SUCCESS"}}
	for i := 0; i < len(changes); i += 2 {
		q.Set(changes[i], changes[i+1])
	}
	return fakepayment.SignEPay(q, fakepayment.EPayKey)
}

// TestEPayIsCredited pays by GET and by POST. The way back of the browser credits nothing.
func TestEPayIsCredited(t *testing.T) {
	t.Parallel()
	for _, post := range []bool{false, true} {
		eachSite(t, func(t *testing.T, s *site) {
			s.epay.Post = post
			row := s.bought(10000)
			s.wantBalance(10 * money.USD)
			if row.Method != "alipay" || row.Payment == "" || row.Total != 10000 || !row.Live {
				t.Errorf("the paid top-up: got %+v, want the method alipay, a payment, 10000 and live", row)
			}
			s.epay.SendTo("")
			late := s.order(5000)
			s.epay.Pay(late.ID)
			s.wantState(late, topup.Pending)
			s.clock.Advance(time.Minute)
			s.sweepOK() // the message is lost
			s.wantState(late, topup.Paid)
			s.wantBalance(15 * money.USD)
			s.wantProblems()
		})
	}
}

// TestEPayOrderIsChecked refuses orders without a way to pay of the site, and other ways to pay at Stripe.
func TestEPayOrderIsChecked(t *testing.T) {
	t.Parallel()
	eachSite(t, func(t *testing.T, s *site) {
		for _, o := range []topup.NewOrder{{Provider: epay.Name}, {Provider: epay.Name, Method: "qqpay"},
			{Provider: "stripe", Method: "alipay"}} {
			o.Account, o.Minor = s.account, 1000
			if _, err := store.Write(t.Context(), s.db, func(tx *store.Tx) (topup.Topup, error) { return s.CreateTx(tx, o) }); err == nil {
				t.Errorf("%+v: got a top-up, want an error", o)
			}
		}
	})
}

// TestEPayMessagesMayRepeat sends a message many times, at once on two nodes and by both methods. The
// payment is credited once, and every message is acknowledged with the text that ends its repetition.
func TestEPayMessagesMayRepeat(t *testing.T) {
	t.Parallel()
	eachSite(t, func(t *testing.T, s *site) {
		s.epay.SendTo("")
		row := s.order(10000)
		s.epay.Pay(row.ID)
		q := s.epay.Messages()[0]
		second := topup.New(s.Options).Handler()
		var group sync.WaitGroup
		for i := range 12 {
			group.Go(func() {
				handler, method := s.handler, http.MethodGet
				if i%2 == 0 {
					handler = second
				}
				if i%3 == 0 {
					method = http.MethodPost
				}
				// A node that loses a race five times makes the site repeat the message.
				status, body := deliver(handler, method, q)
				if status != http.StatusServiceUnavailable && (status != http.StatusOK || body != "success") {
					t.Errorf("got %d %q, want 200 and success, or 503", status, body)
				}
			})
		}
		group.Wait()
		s.clock.Advance(30 * 24 * time.Hour) // a replay after a month
		if status, body := deliver(s.handler, http.MethodGet, q); status != http.StatusOK || body != "success" {
			t.Errorf("again: got %d %q, want 200 and success", status, body)
		}
		s.wantState(row, topup.Paid)
		s.wantBalance(10 * money.USD)
	})
}

// TestEPayForgedMessages sends messages that the site has not signed, or whose signature is valid for
// another reading of the parameters. The site is not even asked (QuantumNous/new-api#4353).
func TestEPayForgedMessages(t *testing.T) {
	t.Parallel()
	eachSite(t, func(t *testing.T, s *site) {
		s.epay.SendTo("")
		row := s.order(10000)
		s.epay.Pay(row.ID)
		valid := s.epay.Messages()[0]
		with := func(changes ...string) url.Values {
			q := maps.Clone(valid)
			for i := 0; i < len(changes); i += 2 {
				q.Set(changes[i], changes[i+1])
			}
			return q
		}
		without := func(name string) url.Values { q := maps.Clone(valid); q.Del(name); return q }
		// The signed text of this message is that of the valid one.
		merged := without("name")
		merged.Set("money", "100.00&name=API credit")
		named := without("name")
		named.Set("money=100.00&name", "API credit")
		named.Del("money")
		twice := with()
		twice["out_trade_no"] = []string{row.ID, "topup_other"}
		many := with()
		for i := range 60 {
			many.Set(fmt.Sprintf("p%d", i), "")
		}
		for name, q := range map[string]url.Values{
			"no parameters":           {},
			"no signature":            without("sign"),
			"an empty signature":      with("sign", ""),
			"another signature":       with("sign", strings.Repeat("0", 32)),
			"half a signature":        with("sign", valid.Get("sign")[:16]),
			"another key":             fakepayment.SignEPay(with(), "another key of a site"),
			"an empty key":            fakepayment.SignEPay(with(), ""),
			"another money":           with("money", "1000.00"),
			"another order":           with("out_trade_no", "topup_other"),
			"one more parameter":      with("param", "x"),
			"one parameter less":      without("type"),
			"another pid":             s.signed(row, "pid", "1002"),
			"a smuggled separator":    merged,
			"a name with a separator": named,
			"a parameter twice":       twice,
			"RSA":                     with("sign_type", "RSA"),
			"too many parameters":     many,
		} {
			for _, method := range []string{http.MethodGet, http.MethodPost} {
				if status, body := deliver(s.handler, method, q); status != http.StatusBadRequest || strings.Contains(body, "success") {
					t.Errorf("%s by %s: got %d %q, want 400", name, method, status, body)
				}
			}
		}
		keyless := topup.New(topup.Options{DB: s.db, Terms: s.Terms, Providers: []topup.PaymentProvider{s.service("", false)}}).Handler()
		if status, _ := deliver(keyless, http.MethodGet, fakepayment.SignEPay(with(), "")); status != http.StatusBadRequest {
			t.Errorf("a node without a key: got %d, want 400", status)
		}
		if got := s.epay.Calls("order"); got != 0 {
			t.Errorf("questions to the site: got %d, want none", got)
		}
		s.wantState(row, topup.Pending)
		// The parameters of a POST request count, not those of its address.
		r := httptest.NewRequest(http.MethodPost, epay.Path+"?"+valid.Encode(), strings.NewReader("pid=1"))
		w := httptest.NewRecorder()
		if s.handler.ServeHTTP(w, r); w.Code != http.StatusBadRequest {
			t.Errorf("a signed address with another form: got %d, want 400", w.Code)
		}
		s.wantBalance(0)
	})
}

// TestEPayMessageIsOnlyAHint sends correctly signed messages whose contents are false, as after a leak of
// the key. The answer of the site decides (dujiao-next/dujiao-next#340).
func TestEPayMessageIsOnlyAHint(t *testing.T) {
	t.Parallel()
	eachSite(t, func(t *testing.T, s *site) {
		row := s.order(10000)
		paid := s.bought(1000)
		s.wantBalance(money.USD)
		for name, q := range map[string]url.Values{
			"not paid":                     s.signed(row),
			"the payment of another order": s.signed(row, "trade_no", paid.Payment),
			"another state":                s.signed(row, "trade_status", "WAIT_BUYER_PAY"),
			"of another program":           s.signed(row, "out_trade_no", "their-order"),
		} {
			if status, body := deliver(s.handler, http.MethodGet, q); status != http.StatusOK || body != "success" {
				t.Errorf("%s: got %d %q, want 200 and success", name, status, body)
			}
		}
		s.wantState(row, topup.Pending)
		s.wantBalance(money.USD)
		s.wantProblems()
	})
}

// TestEPayReplayAsksOnce repeats the valid message of a credited payment. The site is not asked again.
func TestEPayReplayAsksOnce(t *testing.T) {
	t.Parallel()
	eachSite(t, func(t *testing.T, s *site) {
		row := s.bought(10000)
		asked := s.epay.Calls("order")
		for range 5 {
			if _, body := deliver(s.handler, http.MethodGet, s.signed(row, "trade_no", row.Payment)); body != "success" {
				t.Errorf("got %q, want success", body)
			}
		}
		if got := s.epay.Calls("order") - asked; got != 0 {
			t.Errorf("got %d questions to the site, want none", got)
		}
		// A message about another payment of the order is worth a question.
		deliver(s.handler, http.MethodGet, s.signed(row, "trade_no", "9999"))
		if got := s.epay.Calls("order") - asked; got != 1 {
			t.Errorf("after a message about another payment: got %d questions to the site, want 1", got)
		}
	})
}

// TestProvidersDoNotCompleteOrdersOfOthers sends signed messages of each provider about an order at the
// other one, which is paid or not. Nothing is credited by them (QuantumNous/new-api#4353).
func TestProvidersDoNotCompleteOrdersOfOthers(t *testing.T) {
	t.Parallel()
	eachSite(t, func(t *testing.T, s *site) {
		row, session := s.begin(1000) // at Stripe
		s.stripe.SendTo("")
		s.stripe.Pay(session)
		if status, body := deliver(s.handler, http.MethodGet, s.signed(row)); status != http.StatusOK || body != "success" {
			t.Errorf("a message of EPay about an order at Stripe: got %d %q, want 200 and success", status, body)
		}
		s.wantState(row, topup.Pending)
		other := s.order(1000)
		body := fmt.Appendf(nil, `{"type":"checkout.session.completed","livemode":false,"data":{"object":{"id":%q,"object":"checkout.session",
			"status":"complete","payment_status":"paid","metadata":{"tollgate-topup":%q}}}}`, session, other.ID)
		if status := s.post(s.handler, body, s.sign(body)); status != http.StatusOK {
			t.Errorf("a message of Stripe about an order at EPay: got %d, want 200", status)
		}
		s.wantState(other, topup.Pending)
		s.wantBalance(0)
		s.wantProblems("provider", "provider")
	})
}

// TestSilentProviderStopsNoOther leaves many top-ups open at a silent Stripe. The sweep still asks the EPay site.
func TestSilentProviderStopsNoOther(t *testing.T) {
	t.Parallel()
	eachSite(t, func(t *testing.T, s *site) {
		for range 4 {
			s.begin(1000) // at Stripe
		}
		row := s.order(1000)
		s.epay.SendTo("")
		s.epay.Pay(row.ID)
		s.stripe.SetDown(http.StatusInternalServerError)
		s.clock.Advance(time.Minute)
		if err := s.Sweep(t.Context()); err == nil {
			t.Error("a sweep of a silent provider succeeds")
		}
		s.wantState(row, topup.Paid)
		s.wantBalance(money.USD)
	})
}

// TestEPayMismatches pays another amount than ordered, as after a change of the address in the browser,
// in another way, and for another order. Nothing is credited, and the site stops repeating
// (QuantumNous/new-api#4279, chapter 5).
func TestEPayMismatches(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ field, value, want string }{
		{"money", "0.01", "amount"}, {"money", "1000.00", "amount"}, {"type", "wxpay", "method"}, {"status", "2", "refunded"},
	} {
		eachSite(t, func(t *testing.T, s *site) {
			s.epay.SendTo("")
			row := s.order(10000)
			s.epay.Pay(row.ID)
			s.epay.Change(row.ID, c.field, c.value)
			for range 2 {
				if status, body := deliver(s.handler, http.MethodGet, s.signed(row)); status != http.StatusOK || body != "success" {
					t.Errorf("%s %s: got %d %q, want 200 and success", c.field, c.value, status, body)
				}
			}
			s.wantState(row, topup.Pending)
			s.wantBalance(0)
			s.wantProblems(c.want)
		})
	}
}

// TestEPayAddressIsSigned changes the amount in the address of the site's page.
func TestEPayAddressIsSigned(t *testing.T) {
	t.Parallel()
	eachSite(t, func(t *testing.T, s *site) {
		row := s.order(10000)
		resp, err := http.Get(strings.Replace(row.Address, "money=100.00", "money=0.01", 1))
		if err != nil {
			t.Fatal(err)
		}
		if _ = resp.Body.Close(); resp.StatusCode != http.StatusBadRequest {
			t.Errorf("a changed amount: got %d, want 400", resp.StatusCode)
		}
		if strings.Contains(row.Address, fakepayment.EPayKey) {
			t.Error("the address has the key, want it only in the signature")
		}
	})
}

// TestEPayFailureIsNotAcknowledged makes the site fail, and its key wrong. The message is not
// acknowledged, so that the site repeats it, and no error has the key.
func TestEPayFailureIsNotAcknowledged(t *testing.T) {
	t.Parallel()
	eachSite(t, func(t *testing.T, s *site) {
		s.epay.SendTo("")
		row := s.order(10000)
		s.epay.Pay(row.ID)
		for _, status := range []int{500, 403} {
			s.epay.SetDown(status)
			got, body := deliver(s.handler, http.MethodGet, s.signed(row))
			if got != http.StatusServiceUnavailable || strings.Contains(body, "success") {
				t.Errorf("the site answers %d: got %d %q, want 503", status, got, body)
			}
		}
		s.epay.SetDown(0)
		wrong := s.service("another key of a site", false)
		if _, err := wrong.Query(t.Context(), row); err == nil || strings.Contains(err.Error(), "another key") {
			t.Errorf("a wrong key: got %v, want an error without the key", err)
		}
		gone := epay.New(epay.Options{URL: "http://127.0.0.1:1", PID: "1", Key: "another key of a site", HTTP: http.DefaultClient})
		if _, err := gone.Query(t.Context(), row); err == nil || strings.Contains(err.Error(), "another") {
			t.Errorf("no site: got %v, want an error without the key", err)
		}
		s.wantBalance(0)
		if _, body := deliver(s.handler, http.MethodGet, s.signed(row)); body != "success" {
			t.Errorf("got %q, want success", body)
		}
		s.wantBalance(10 * money.USD)
	})
}

// TestEPayExpiry ends orders that were never opened or not paid. A late payment is credited.
func TestEPayExpiry(t *testing.T) {
	t.Parallel()
	eachSite(t, func(t *testing.T, s *site) {
		row := s.order(1000)
		s.clock.Advance(4 * time.Hour)
		s.sweepOK()
		s.wantState(row, topup.Expired)
		s.epay.Pay(row.ID)
		s.wantState(row, topup.Paid)
		s.wantBalance(money.USD)
	})
}

// TestEPayRefunds refunds a whole payment by a call whose answer is lost, and a part of another by hand.
// Refunds at the site are problems, because it does not say how much was paid back.
func TestEPayRefunds(t *testing.T) {
	t.Parallel()
	eachSite(t, func(t *testing.T, s *site) {
		row := s.bought(10000)
		s.epay.OnCall(func(act string) {
			if act == "refund" {
				panic(http.ErrAbortHandler) // it had its effect
			}
		})
		if _, err := s.refund(row, 10000); !isNoAnswer(err) {
			t.Errorf("a refund without an answer: got %v, want ErrNoAnswer", err)
		}
		s.wantBalance(0)
		s.epay.OnCall(nil)
		for range 3 {
			s.clock.Advance(25 * time.Hour)
			s.sweepOK()
		}
		if got := s.epay.Calls("refund"); got != 1 {
			t.Errorf("calls for a refund that had its effect: got %d, want 1", got)
		}
		s.wantState(row, topup.Refunded)

		part := s.bought(10000)
		if _, err := s.refund(part, 2500); err != nil {
			t.Fatal(err)
		}
		s.wantState(part, topup.PartlyRefunded)
		s.wantBalance(7_500_000_000)
		if got := s.epay.Calls("refund"); got != 1 {
			t.Errorf("calls after a part: got %d, want the 1 before it", got)
		}

		whole := s.bought(1000)
		c, err := s.refund(whole, 1000)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.PayBack(t.Context(), c); err != nil { // as another node that has read the refund before
			t.Errorf("a repetition: got %v, want none", err)
		}
		s.wantState(whole, topup.Refunded)
		if got := s.epay.Calls("refund"); got != 2 {
			t.Errorf("calls after a whole payment: got %d, want 2", got)
		}
		s.wantProblems()

		elsewhere := s.bought(1000)
		s.epay.Change(elsewhere.ID, "status", "2")
		if err := s.Sync(t.Context(), elsewhere.ID, ""); err != nil {
			t.Fatal(err)
		}
		s.wantState(elsewhere, topup.Paid)
		s.wantProblems("refunded")

		s.epay.Refunds = false
		refused := s.bought(1000)
		if _, err := s.refund(refused, 1000); err == nil {
			t.Error("a refund that the site refuses: got no error, want one")
		}
		s.wantState(refused, topup.Paid)
		s.wantBalance(9_500_000_000)
		s.Providers[1] = s.service(fakepayment.EPayKey, false)
		if _, err := s.refund(refused, 1000); err != nil {
			t.Errorf("a refund by hand: got %v, want none", err)
		}
		s.wantState(refused, topup.Refunded)
	})
}

// TestEPayRefundAfterPartThere checks that a refund of the whole payment by a call takes no credit back if the
// operator has paid back a part on the site's pages, and that the part can then be entered, without a call.
func TestEPayRefundAfterPartThere(t *testing.T) {
	t.Parallel()
	eachSite(t, func(t *testing.T, s *site) {
		row := s.bought(10000)
		s.epay.Change(row.ID, "status", "2") // a quarter was paid back there
		if _, err := s.refund(row, 10000); !fault.Is(err, fault.InvalidRequest) {
			t.Errorf("a refund of the whole payment: got %v, want invalid_request", err)
		}
		s.wantState(row, topup.Paid)
		s.wantBalance(10 * money.USD)
		s.wantProblems("refunded", "refund")
		if _, err := s.refund(row, 2500); err != nil {
			t.Fatal(err)
		}
		s.wantState(row, topup.PartlyRefunded)
		s.wantBalance(7_500_000_000)
		whole := s.bought(1000)
		s.epay.Change(whole.ID, "status", "2") // all of it was paid back there
		if err := s.Sync(t.Context(), whole.ID, ""); err != nil {
			t.Fatal(err)
		}
		if _, err := s.refund(whole, 1000); err != nil {
			t.Errorf("a whole refund that was made there: got %v, want none", err)
		}
		s.wantState(whole, topup.Refunded)
		if got := s.epay.Calls("refund"); got != 0 {
			t.Errorf("calls: got %d, want none", got)
		}
	})
}

// TestEPayReconcile compares the orders of the site, on several pages, with the top-ups.
func TestEPayReconcile(t *testing.T) {
	t.Parallel()
	eachSite(t, func(t *testing.T, s *site) {
		since := s.clock.Now().UnixMilli()
		s.bought(1000)
		for range 3 {
			s.clock.Advance(4 * time.Hour)
			s.sweepOK()
			for range 18 {
				s.order(500)
			}
		}
		s.clock.Advance(time.Minute)
		r, err := s.Reconcile(t.Context(), epay.Name, since)
		if err != nil || r.Payments != 1 || r.Topups != 1 || len(r.Differences) != 0 {
			t.Errorf("got %+v, %v; want one payment, one top-up and no difference", r, err)
		}
		if got := s.epay.Calls("orders"); got != 2 {
			t.Errorf("pages: got %d, want 2", got)
		}
	})
}
