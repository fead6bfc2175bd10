package topup_test

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"tollgate/internal/gatewaytest/fakepayment"
	"tollgate/internal/money"
	"tollgate/internal/store"
	"tollgate/internal/topup"
)

// TestPaymentIsCredited pays two top-ups, one with a bonus.
func TestPaymentIsCredited(t *testing.T) {
	t.Parallel()
	eachShop(t, topup.Options{}, func(t *testing.T, s *shop) {
		row, session := s.begin(2000)
		if got := s.row(row.ID); got.State != topup.Pending || got.Address != s.stripe.URL+"/pay/"+session {
			t.Errorf("after Begin: got %+v, want pending with the address of Stripe's page", got)
		}
		s.wantBalance(0)
		s.stripe.Pay(session)
		s.wantState(row, topup.Paid)
		s.wantBalance(20 * money.USD)
		s.paid(10000)
		s.wantBalance(130 * money.USD)
		s.wantProblems()
	})
}

// TestKeyWithoutPaymentMethods pays with a restricted key that may not read payment methods, which only saved
// cards need.
func TestKeyWithoutPaymentMethods(t *testing.T) {
	t.Parallel()
	eachShop(t, topup.Options{}, func(t *testing.T, s *shop) {
		s.stripe.HideCards()
		s.paid(2000)
		s.wantBalance(20 * money.USD)
	})
}

// TestCreditFollowsRateAndBonus computes credits. The product is rounded once, half up.
func TestCreditFollowsRateAndBonus(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		currency, rate, tier string
		minor                int64
		want                 money.Amount
	}{
		{"usd", "", "50=5", 2000, 20 * money.USD},
		{"usd", "", "50=5", 5000, 52_500_000_000},
		{"cny", "0.138", "1000=10", 10000, 13_800_000_000},
		{"cny", "0.138888889", "50=0.5", 5001, 6_980_562_506}, // 6980562505.5840…
		{"jpy", "0.0067", "1000=5", 1000, 7_035_000_000},
		{"eur", "0.000000001", "5=0.0001", 50, 1}, // 0.5 nano-dollars
		{"eur", "0.000000001", "5=0.0001", 49, 0},
	} {
		p := terms(t, topup.TermsTexts{Currency: c.currency, Rate: c.rate, Minimum: "1", Maximum: "100000", Tiers: []string{c.tier}})
		if q, err := p.Quote(c.minor); err != nil || q.Credit != c.want {
			t.Errorf("%s of %s: got %d nano-USD, %v; want %d", p.Currency.Text(c.minor), c.rate, q.Credit, err, c.want)
		}
	}
}

// TestInvalidPlans checks the field of the error of each invalid plan.
func TestInvalidPlans(t *testing.T) {
	t.Parallel()
	for field, list := range map[string][]topup.TermsTexts{
		"currency": {{Currency: "btc", Minimum: "1", Maximum: "2"}, {Currency: "USD", Minimum: "1", Maximum: "2"}},
		"rate": {{Currency: "eur", Minimum: "1", Maximum: "2"}, {Currency: "eur", Rate: "0", Minimum: "1", Maximum: "2"},
			{Currency: "eur", Rate: "-1", Minimum: "1", Maximum: "2"}, {Currency: "eur", Rate: "1.0000000001", Minimum: "1", Maximum: "2"}},
		"minimum": {{Currency: "usd", Minimum: "0", Maximum: "2"}, {Currency: "usd", Minimum: "1.001", Maximum: "2"},
			{Currency: "jpy", Rate: "1", Minimum: "1.5", Maximum: "2"}},
		"maximum": {{Currency: "usd", Minimum: "3", Maximum: "2"}, {Currency: "usd", Minimum: "3", Maximum: "1000000001"}},
		"amounts": {{Currency: "usd", Minimum: "1", Maximum: "2", Amounts: []string{"3"}},
			{Currency: "usd", Minimum: "1", Maximum: "2", Amounts: []string{""}}},
		"bonus": {{Currency: "usd", Minimum: "1", Maximum: "2", Tiers: []string{"1"}},
			{Currency: "usd", Minimum: "1", Maximum: "2", Tiers: []string{"1=101"}},
			{Currency: "usd", Minimum: "1", Maximum: "2", Tiers: []string{"1=0"}},
			{Currency: "usd", Minimum: "1", Maximum: "2", Tiers: []string{"1=1", "1.00=2"}}},
	} {
		for _, texts := range list {
			_, err := topup.NewTerms(texts)
			var wrong *topup.TermsError
			if !errors.As(err, &wrong) || wrong.Field != field {
				t.Errorf("%+v: got %v, want an error of %s", texts, err, field)
			}
		}
	}
}

// TestOrderIsChecked refuses amounts outside the plan, unknown providers, disabled accounts, and too many
// open top-ups.
func TestOrderIsChecked(t *testing.T) {
	t.Parallel()
	eachShop(t, topup.Options{}, func(t *testing.T, s *shop) {
		for _, o := range []topup.NewOrder{
			{Account: s.account, Provider: "stripe", Minor: 499}, {Account: s.account, Provider: "stripe", Minor: 100001},
			{Account: s.account, Provider: "stripe", Minor: -1}, {Account: s.account, Provider: "epay", Minor: 1000},
			{Account: s.account, Provider: "stripe", Method: "alipay", Minor: 1000}, {Account: "acct_none", Provider: "stripe", Minor: 1000},
		} {
			if _, err := store.Write(t.Context(), s.db, func(tx *store.Tx) (topup.Topup, error) { return s.CreateTx(tx, o) }); err == nil {
				t.Errorf("%+v: got a top-up, want an error", o)
			}
		}
		for range 20 {
			s.create(500)
		}
		_, err := store.Write(t.Context(), s.db, func(tx *store.Tx) (topup.Topup, error) {
			return s.CreateTx(tx, topup.NewOrder{Account: s.account, Provider: "stripe", Minor: 500})
		})
		if err == nil {
			t.Error("the 21st open top-up: got no error, want one")
		}
	})
}

// TestMessagesMayRepeat sends every message of a payment many times, at once on two nodes, and in the
// reverse order. The payment is credited once (danny-avila/LibreChat#13812, theopenco/llmgateway#1713).
func TestMessagesMayRepeat(t *testing.T) {
	t.Parallel()
	eachShop(t, topup.Options{}, func(t *testing.T, s *shop) {
		s.stripe.SendTo("")
		row, session := s.begin(2000)
		s.stripe.Pay(session)
		second := topup.New(s.Options)
		var group sync.WaitGroup
		for i := range 12 {
			for _, e := range s.stripe.Events() {
				group.Go(func() {
					handler := s.handler
					if i%2 == 0 {
						handler = second.Handler()
					}
					// A node that loses a race five times asks Stripe to send the message again.
					if status := s.post(handler, e.Body, s.sign(e.Body)); status != http.StatusOK && status != http.StatusServiceUnavailable {
						t.Errorf("%s: got %d, want 200 or 503", e.Type, status)
					}
				})
			}
		}
		group.Wait()
		for _, e := range s.stripe.Events() {
			if status := s.post(s.handler, e.Body, s.sign(e.Body)); status != http.StatusOK {
				t.Errorf("%s again: got %d, want 200", e.Type, status)
			}
		}
		s.wantState(row, topup.Paid)
		s.wantBalance(20 * money.USD)
	})
}

// TestForgedMessages sends messages with wrong signatures. Nothing is credited, and a paid session is not
// even read (QuantumNous/new-api#4319, #4353).
func TestForgedMessages(t *testing.T) {
	t.Parallel()
	eachShop(t, topup.Options{}, func(t *testing.T, s *shop) {
		s.stripe.SendTo("")
		row, session := s.begin(2000)
		s.stripe.Pay(session)
		body := s.stripe.Events()[1].Body
		now := s.clock.Now()
		for name, header := range map[string]string{
			"no header":       "",
			"no signature":    fmt.Sprintf("t=%d", now.Unix()),
			"another secret":  fakepayment.Sign("whsec_ffffffffffffffffffffffffffffffff", body, now),
			"an empty secret": fakepayment.Sign("", body, now),
			"another body":    s.sign([]byte("{}")),
			"replayed late":   fakepayment.Sign(fakepayment.StripeSecret, body, now.Add(-6*time.Minute)),
			"from the future": fakepayment.Sign(fakepayment.StripeSecret, body, now.Add(6*time.Minute)),
			"scheme v0":       string(bytes.ReplaceAll([]byte(s.sign(body)), []byte("v1="), []byte("v0="))),
		} {
			if status := s.post(s.handler, body, header); status != http.StatusBadRequest {
				t.Errorf("%s: got %d, want 400", name, status)
			}
		}
		empty := topup.New(topup.Options{DB: s.db, Terms: s.Terms, Providers: []topup.PaymentProvider{s.client("", false)}})
		if status := s.post(empty.Handler(), body, fakepayment.Sign("", body, now)); status != http.StatusBadRequest {
			t.Errorf("a node without a secret: got %d, want 400", status)
		}
		s.wantState(row, topup.Pending)
		s.wantBalance(0)
		// During a change of the secret Stripe sends two signatures.
		if status := s.post(s.handler, body, s.sign(body)+",v1=00"); status != http.StatusOK {
			t.Errorf("a valid signature among others: got %d, want 200", status)
		}
		s.wantBalance(20 * money.USD)
	})
}

// TestMessageIsOnlyAHint sends correctly signed messages whose contents are false. The answer of the API
// decides (dujiao-next/dujiao-next#340).
func TestMessageIsOnlyAHint(t *testing.T) {
	t.Parallel()
	eachShop(t, topup.Options{}, func(t *testing.T, s *shop) {
		row, session := s.begin(2000)
		body := fmt.Appendf(nil, `{"type":"checkout.session.completed","livemode":false,"data":{"object":{"id":%q,"object":"checkout.session",
			"client_reference_id":%q,"metadata":{"tollgate-topup":%[2]q},
			"status":"complete","payment_status":"paid","amount_total":2000}}}`, session, row.ID)
		if status := s.post(s.handler, body, s.sign(body)); status != http.StatusOK {
			t.Errorf("a false message: got %d, want 200", status)
		}
		s.wantState(row, topup.Pending)
		s.wantBalance(0)
		// A paid session of another top-up does not pay this one.
		other, otherSession := s.paid(10000)
		s.wantBalance(110 * money.USD)
		body = fmt.Appendf(nil, `{"type":"checkout.session.completed","livemode":false,"data":{"object":{"id":%q,"object":"checkout.session",
			"metadata":{"tollgate-topup":%q}}}}`, otherSession, row.ID)
		if status := s.post(s.handler, body, s.sign(body)); status != http.StatusOK {
			t.Errorf("a message that mixes two top-ups: got %d, want 200", status)
		}
		s.wantState(row, topup.Pending)
		s.wantState(other, topup.Paid)
		s.wantBalance(110 * money.USD)
		s.wantProblems("other_topup")
	})
}

// TestMismatchesAreNotCredited pays less, in another currency, and in the other mode. Each is kept for
// the operator, and the message is not repeated (QuantumNous/new-api#4279, chapter 5).
func TestMismatchesAreNotCredited(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		field string
		value any
		want  string
	}{
		"less":               {"amount_total", int64(1), "amount"},
		"other currency":     {"currency", "jpy", "currency"},
		"live mode":          {"livemode", true, "mode"},
		"for nobody":         {"client_reference_id", "", "other_topup"},
		"less without a tax": {"total_details", object{"amount_tax": int64(1)}, "amount"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			eachShop(t, topup.Options{}, func(t *testing.T, s *shop) {
				row, session := s.begin(2000)
				s.stripe.SendTo("")
				s.stripe.Pay(session)
				s.stripe.Set(session, c.field, c.value)
				e := s.stripe.Events()[1]
				for range 2 {
					if status := s.post(s.handler, e.Body, s.sign(e.Body)); status != http.StatusOK {
						t.Errorf("got %d, want 200", status)
					}
				}
				s.wantState(row, topup.Pending)
				s.wantBalance(0)
				s.wantProblems(c.want)
			})
		})
	}
}

type object = map[string]any

// TestUnknownTopupsAreKept sends a message about a top-up that does not exist here, for example after a
// restore of an old backup, and messages of another program with the same Stripe account
// (theopenco/llmgateway#1360).
func TestUnknownTopupsAreKept(t *testing.T) {
	t.Parallel()
	eachShop(t, topup.Options{}, func(t *testing.T, s *shop) {
		for _, body := range []string{
			`{"type":"checkout.session.completed","livemode":false,"data":{"object":{"id":"cs_1","object":"checkout.session",
				"client_reference_id":"their-order"}}}`,
			`{"type":"charge.refunded","livemode":false,"data":{"object":{"id":"ch_1","object":"charge","payment_intent":"pi_1"}}}`,
			`{"type":"customer.subscription.deleted","livemode":false,"data":{"object":{"id":"sub_1","object":"subscription"}}}`,
			`{"type":"invoice.paid","livemode":false,"data":{"object":null}}`,
		} {
			if status := s.post(s.handler, []byte(body), s.sign([]byte(body))); status != http.StatusOK {
				t.Errorf("%s: got %d, want 200", body, status)
			}
		}
		s.wantProblems()
		body := []byte(`{"type":"checkout.session.completed","livemode":false,"data":{"object":{"id":"cs_2","object":"checkout.session",
			"metadata":{"tollgate-topup":"topup_gone"}}}}`)
		if status := s.post(s.handler, body, s.sign(body)); status != http.StatusOK {
			t.Errorf("an unknown top-up: got %d, want 200", status)
		}
		s.wantProblems("unknown_topup")
	})
}

// TestFailureIsNotAcknowledged makes the API of Stripe fail. The message is answered with 503, so that
// Stripe repeats it (QuantumNous/new-api#4179, #5105).
func TestFailureIsNotAcknowledged(t *testing.T) {
	t.Parallel()
	eachShop(t, topup.Options{}, func(t *testing.T, s *shop) {
		s.stripe.SendTo("")
		row, session := s.begin(2000)
		s.stripe.Pay(session)
		e := s.stripe.Events()[1]
		for _, status := range []int{500, 429, 401} {
			s.stripe.SetDown(status)
			if got := s.post(s.handler, e.Body, s.sign(e.Body)); got != http.StatusServiceUnavailable {
				t.Errorf("Stripe answers %d: got %d, want 503", status, got)
			}
		}
		s.stripe.SetDown(0)
		s.wantState(row, topup.Pending)
		if got := s.post(s.handler, e.Body, s.sign(e.Body)); got != http.StatusOK {
			t.Errorf("got %d, want 200", got)
		}
		s.wantBalance(20 * money.USD)
	})
}

// TestDelayedPayments completes sessions whose payment comes days later, or never.
func TestDelayedPayments(t *testing.T) {
	t.Parallel()
	eachShop(t, topup.Options{}, func(t *testing.T, s *shop) {
		row, session := s.begin(2000)
		failing, failingSession := s.begin(2000)
		s.stripe.PayLater(session)
		s.stripe.PayLater(failingSession)
		s.wantState(row, topup.Pending)
		s.wantBalance(0)
		s.clock.Advance(5 * 24 * time.Hour)
		s.sweepOK()
		s.wantState(row, topup.Pending)
		s.stripe.EndDelay(session, true)
		s.stripe.EndDelay(failingSession, false)
		s.wantState(row, topup.Paid)
		s.wantState(failing, topup.Failed)
		s.wantBalance(20 * money.USD)
	})
}

// TestLatePaymentWinsOverExpiry sends the message of the end of a session after the payment, and pays a
// session whose top-up has failed (QuantumNous/new-api: expiry overwrites a state).
func TestLatePaymentWinsOverExpiry(t *testing.T) {
	t.Parallel()
	eachShop(t, topup.Options{}, func(t *testing.T, s *shop) {
		row, session := s.begin(2000)
		expired, expiredSession := s.begin(2000)
		s.stripe.Expire(expiredSession)
		s.wantState(expired, topup.Expired)
		s.stripe.Pay(session)
		body := bytes.ReplaceAll(s.stripe.Events()[0].Body, []byte(expiredSession), []byte(session))
		body = bytes.ReplaceAll(body, []byte(expired.ID), []byte(row.ID))
		if status := s.post(s.handler, body, s.sign(body)); status != http.StatusOK {
			t.Errorf("got %d, want 200", status)
		}
		s.wantState(row, topup.Paid)
		s.stripe.Set(expiredSession, "status", "open")
		s.stripe.Pay(expiredSession)
		s.wantState(expired, topup.Paid)
		s.wantBalance(40 * money.USD)
	})
}

// TestSweepFindsLostMessages loses every message. The sweep credits payments, ends expired sessions, and
// finds refunds and disputes.
func TestSweepFindsLostMessages(t *testing.T) {
	t.Parallel()
	eachShop(t, topup.Options{}, func(t *testing.T, s *shop) {
		s.stripe.SendTo("")
		row, session := s.begin(2000)
		expired, expiredSession := s.begin(2000)
		s.sweepOK()
		s.wantState(row, topup.Pending)
		s.stripe.Pay(session)
		s.clock.Advance(time.Minute)
		s.sweepOK()
		s.wantState(row, topup.Paid)
		s.wantBalance(20 * money.USD)
		s.stripe.Expire(expiredSession)
		s.stripe.RefundElsewhere(session, 500)
		s.clock.Advance(25 * time.Hour)
		s.sweepOK()
		s.wantState(expired, topup.Expired)
		s.wantState(row, topup.PartlyRefunded)
		s.wantBalance(15 * money.USD)
		s.stripe.Dispute(session, "needs_response")
		s.clock.Advance(14 * 24 * time.Hour)
		s.sweepOK()
		s.wantState(row, topup.Disputed)
		s.wantBalance(0)
		calls := s.stripe.Calls("GET /v1/checkout/sessions/{id}")
		s.clock.Advance(400 * 24 * time.Hour)
		s.sweepOK()
		s.clock.Advance(400 * 24 * time.Hour)
		s.sweepOK()
		if got := s.stripe.Calls("GET /v1/checkout/sessions/{id}") - calls; got > 2 {
			t.Errorf("calls about top-ups that are a year old: got %d, want at most one for each", got)
		}
	})
}

// TestSweepBeginsWhatWasNotBegun leaves rows without a session, as after a crash before, during and after
// the call of Stripe. No second session is created for a top-up.
func TestSweepBeginsWhatWasNotBegun(t *testing.T) {
	t.Parallel()
	eachShop(t, topup.Options{}, func(t *testing.T, s *shop) {
		row := s.create(2000)
		s.stripe.SetDown(500)
		if err := s.Begin(t.Context(), row.ID); !isNoAnswer(err) {
			t.Errorf("Begin without Stripe: got %v, want ErrNoAnswer", err)
		}
		s.wantState(row, topup.Created)
		s.stripe.SetDown(0)
		s.clock.Advance(time.Minute)
		s.sweepOK()
		s.wantState(row, topup.Pending)
		if got := s.stripe.Sessions(); got != 1 {
			t.Errorf("got %d sessions, want 1", got)
		}
		// The row is lost after the call: the session has no row, and the customer pays nevertheless.
		lost, session := s.begin(2000)
		storeForget(s, lost.ID)
		s.stripe.Pay(session)
		s.wantState(lost, topup.Paid)
		s.wantBalance(20 * money.USD)
		// Stripe refuses a late call. The order expires without a problem.
		late := s.create(2000)
		s.clock.Advance(100 * time.Minute)
		s.sweepOK()
		s.wantState(late, topup.Expired)
		s.wantProblems()
	})
}

// storeForget takes the session from a row, as if the process had died before it was saved.
func storeForget(s *shop, id string) {
	s.t.Helper()
	err := s.db.Update(s.t.Context(), func(tx *store.Tx) error {
		_, err := tx.Exec(`UPDATE topup SET state = 'created', session = '', address = '' WHERE id = $1`, id)
		return err
	})
	if err != nil {
		s.t.Fatal(err)
	}
}

// TestSecondPaymentIsKept pays a top-up twice, by two sessions. The second payment is not credited, but
// kept for the operator.
func TestSecondPaymentIsKept(t *testing.T) {
	t.Parallel()
	eachShop(t, topup.Options{}, func(t *testing.T, s *shop) {
		row, session := s.paid(2000)
		s.stripe.Set(session, "payment_intent", nil)
		s.stripe.Set(session, "status", "open")
		s.stripe.Pay(session)
		s.wantState(row, topup.Paid)
		s.wantBalance(20 * money.USD)
		s.wantProblems("second_payment")
	})
}

// TestTaxIsNotCredited pays with Stripe Tax. A refund of the whole takes back the credit exactly.
func TestTaxIsNotCredited(t *testing.T) {
	t.Parallel()
	eachShop(t, topup.Options{}, func(t *testing.T, s *shop) {
		s.Providers[0] = s.client(fakepayment.StripeSecret, true)
		row, session := s.begin(2000)
		s.stripe.Pay(session)
		if got := s.row(row.ID); got.Total != 2400 || got.State != topup.Paid {
			t.Errorf("got %d and %s, want 2400 and paid", got.Total, got.State)
		}
		s.wantBalance(20 * money.USD)
		s.stripe.RefundElsewhere(session, 1200)
		s.wantBalance(10 * money.USD)
		s.stripe.RefundElsewhere(session, 1200)
		s.wantState(row, topup.Refunded)
		s.wantBalance(0)
	})
}

// TestStaleAnswerIsAskedAgain books a payment while another question about it is on its way. The older answer, in
// which the payment is open, neither changes the top-up nor is a problem.
func TestStaleAnswerIsAskedAgain(t *testing.T) {
	t.Parallel()
	eachShop(t, topup.Options{}, func(t *testing.T, s *shop) {
		s.stripe.SendTo("")
		row, session := s.begin(2000)
		s.stripe.Expire(session) // the answer that is on its way
		var questions atomic.Int64
		s.stripe.OnCall(func(_, path string) {
			if strings.HasPrefix(path, "/v1/checkout/sessions/") && questions.Add(1) == 1 {
				s.stripe.Set(session, "status", "open")
				s.stripe.Pay(session)
				if err := s.Sync(t.Context(), row.ID, ""); err != nil {
					t.Error(err)
				}
			}
		})
		if err := s.Sync(t.Context(), row.ID, ""); err != nil {
			t.Error(err)
		}
		if n := questions.Load(); n != 3 {
			t.Errorf("got %d questions, want 3: the stale one, the one meanwhile and the repeated one", n)
		}
		s.wantState(row, topup.Paid)
		s.wantBalance(20 * money.USD)
		s.wantProblems()
	})
}
