package topup_test

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"tollgate/internal/fault"
	"tollgate/internal/gatewaytest/fakepayment"
	"tollgate/internal/money"
	"tollgate/internal/store"
	"tollgate/internal/store/storetest"
	"tollgate/internal/topup"
	"tollgate/internal/topup/stripe"
)

// automatic is usd with automatic top-ups.
func automatic() topup.TermsTexts {
	texts := usd
	texts.Automatic = "100"
	return texts
}

// saver runs test with a shop whose account has saved a card with a top-up of 20 USD, and switched automatic
// top-ups on: 30 USD below 15 USD, at most 90 USD in a month. Messages of Stripe are lost.
func saver(t *testing.T, test func(t *testing.T, s *shop)) {
	t.Helper()
	eachShop(t, topup.Options{Terms: terms(t, automatic())}, func(t *testing.T, s *shop) {
		row, err := store.Write(t.Context(), s.db, func(tx *store.Tx) (topup.Topup, error) {
			return s.CreateTx(tx, topup.NewOrder{Account: s.account, Provider: "stripe", Minor: 2000, SaveCard: true})
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Begin(t.Context(), row.ID); err != nil {
			t.Fatal(err)
		}
		s.stripe.Pay(s.stripe.Session(row.ID))
		s.wantBalance(20 * money.USD)
		s.stripe.SendTo("")
		if err := s.switchOn(15*money.USD, 3000, 9000); err != nil {
			t.Fatal(err)
		}
		test(t, s)
	})
}

func (s *shop) switchOn(level money.Amount, minor, monthly int64) error {
	return s.db.Update(s.t.Context(), func(tx *store.Tx) error {
		return s.SwitchOnTx(tx, s.account, topup.AutomaticSettings{Level: level, Minor: minor, Monthly: monthly})
	})
}

func (s *shop) automatic() topup.Automatic {
	s.t.Helper()
	a, err := store.Read(s.t.Context(), s.db, func(tx *store.Tx) (topup.Automatic, error) {
		a, _, err := topup.AutomaticTx(tx, s.account)
		return a, err
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return a
}

func (s *shop) beginAutomatic() {
	s.t.Helper()
	if err := s.BeginAutomatic(s.t.Context()); err != nil {
		s.t.Fatal(err)
	}
}

// TestAutomaticTopup charges the saved card below the level, up to the monthly maximum, and again in the
// next month.
func TestAutomaticTopup(t *testing.T) {
	t.Parallel()
	saver(t, func(t *testing.T, s *shop) {
		if a := s.automatic(); a.Card.Brand != "visa" || a.Card.Last != "4242" || !a.On {
			t.Errorf("the saved card: got %+v, want visa 4242, switched on", a)
		}
		s.addUser("ann@example.com")
		s.beginAutomatic()
		s.wantBalance(20 * money.USD) // not below the level
		want := 20 * money.USD
		for range 3 {
			spend(s, want-10*money.USD)
			s.beginAutomatic()
			s.beginAutomatic()
			want = 40 * money.USD
			s.wantBalance(want)
		}
		spend(s, 30*money.USD)
		s.beginAutomatic()
		s.wantBalance(10 * money.USD) // the monthly maximum is reached
		s.clock.Advance(32 * 24 * time.Hour)
		s.beginAutomatic()
		s.wantBalance(40 * money.USD)
		if got := s.stripe.Charges(); got != 4 {
			t.Errorf("charges: got %d, want 4", got)
		}
		mail := "automatic_topup ann@example.com"
		s.wantMails(mail, mail, mail, mail)
		s.wantProblems()
		s.clock.Advance(time.Minute)
		r, err := s.Reconcile(t.Context(), "stripe", 0)
		if err != nil || r.Payments != 5 || r.Topups != 5 || len(r.Differences) != 0 {
			t.Errorf("reconciliation: got %+v, %v; want 5 payments, 5 top-ups and no difference", r, err)
		}
	})
}

// TestAutomaticOnTwoNodes begins automatic top-ups at once on two nodes, many times. The card is charged
// once.
func TestAutomaticOnTwoNodes(t *testing.T) {
	t.Parallel()
	saver(t, func(t *testing.T, s *shop) {
		spend(s, 10*money.USD)
		nodes := []*topup.Topups{s.Topups, topup.New(s.Options)}
		var group sync.WaitGroup
		for i := range 10 {
			// A call that finds the top-up of another one changed meanwhile is repeated by the sweep.
			group.Go(func() { _ = nodes[i%2].BeginAutomatic(t.Context()) })
			group.Go(func() { _ = nodes[i%2].Sweep(t.Context()) })
		}
		group.Wait()
		s.clock.Advance(time.Minute)
		s.sweepOK()
		s.wantBalance(40 * money.USD)
		if got := s.stripe.Charges(); got != 1 {
			t.Errorf("charges: got %d, want 1", got)
		}
	})
}

// TestAutomaticAfterLostAnswers loses the answer to each call in turn, as a crash does. The sweep continues
// with the row, also after Stripe has forgotten the idempotency key, and the card is charged once.
func TestAutomaticAfterLostAnswers(t *testing.T) {
	t.Parallel()
	saver(t, func(t *testing.T, s *shop) {
		want := 40 * money.USD
		for lost := 1; lost <= 3; lost++ {
			spend(s, s.state().Balance-10*money.USD)
			var calls atomic.Int64
			s.stripe.OnCall(func(string, string) {
				if calls.Add(1) == int64(lost) {
					s.stripe.SetDown(500)       // for the calls after this one
					panic(http.ErrAbortHandler) // the call has had its effect
				}
			})
			if err := s.BeginAutomatic(t.Context()); err == nil {
				t.Errorf("round %d: got no error, want one", lost)
			}
			s.stripe.OnCall(nil)
			s.stripe.SetDown(0)
			s.stripe.ForgetKeys()
			s.clock.Advance(time.Hour)
			s.sweepOK()
			s.beginAutomatic()
			s.wantBalance(want)
			if got := s.stripe.Charges(); got != lost {
				t.Errorf("round %d: got %d charges, want %d", lost, got, lost)
			}
		}
		// A row that was never charged ends after its time. That is no fault of the card, so the next one follows.
		s.clock.Advance(32 * 24 * time.Hour)
		spend(s, 30*money.USD)
		s.stripe.SetDown(500)
		_ = s.BeginAutomatic(t.Context())
		s.clock.Advance(3 * time.Hour)
		s.stripe.SetDown(0)
		s.sweepOK()
		if got := s.stripe.Charges(); got != 3 {
			t.Errorf("after the end of the order: got %d charges, want 3", got)
		}
		s.beginAutomatic()
		if got, pause := s.stripe.Charges(), s.automatic().Pause; got != 4 || pause != "" {
			t.Errorf("after the outage: got %d charges and the pause %q, want 4 and none", got, pause)
		}
	})
}

// TestSwitchOffDuringOutage switches automatic top-ups off while Stripe does not answer. The waiting top-up ends
// without a charge.
func TestSwitchOffDuringOutage(t *testing.T) {
	t.Parallel()
	saver(t, func(t *testing.T, s *shop) {
		spend(s, 10*money.USD)
		s.stripe.SetDown(http.StatusInternalServerError)
		if err := s.BeginAutomatic(t.Context()); !isNoAnswer(err) {
			t.Errorf("an automatic top-up without Stripe: got %v, want ErrNoAnswer", err)
		}
		storetest.Update(t, s.db, func(tx *store.Tx) error { return topup.SwitchOffTx(tx, s.account) })
		s.stripe.SetDown(0)
		s.clock.Advance(time.Minute)
		s.sweepOK()
		if got := s.stripe.Charges(); got != 0 {
			t.Errorf("got %d charges after the switch, want none", got)
		}
		s.wantBalance(10 * money.USD)
	})
}

// TestAutomaticPauses declines charges, and disputes a payment. No further top-up begins until the customer
// switches them on again.
func TestAutomaticPauses(t *testing.T) {
	t.Parallel()
	saver(t, func(t *testing.T, s *shop) {
		s.addUser("ann@example.com")
		paused := func() (n int) {
			for _, m := range s.mails() {
				if m == "automatic_topup_paused ann@example.com" {
					n++
				}
			}
			return n
		}
		spend(s, 10*money.USD)
		for code, want := range map[string]topup.Pause{"card_declined": topup.PauseDeclined,
			"authentication_required": topup.PauseAuthentication} {
			s.stripe.FailCharges(code)
			if err := s.switchOn(15*money.USD, 3000, 9000); err != nil {
				t.Fatal(err)
			}
			s.beginAutomatic()
			if got := s.automatic(); got.Pause != want || !got.On {
				t.Errorf("%s: got %+v, want the pause %s", code, got, want)
			}
			s.stripe.FailCharges("")
			s.beginAutomatic()
			s.wantBalance(10 * money.USD)
		}
		if got := paused(); got != 2 {
			t.Errorf("got %d mails about two pauses, want 2", got)
		}
		if err := s.switchOn(15*money.USD, 3000, 9000); err != nil {
			t.Fatal(err)
		}
		s.beginAutomatic()
		s.wantBalance(40 * money.USD)
		row := s.paidAutomatic()
		s.stripe.DisputeIntent(row.Payment, "needs_response")
		if err := s.Sync(t.Context(), row.ID, ""); err != nil {
			t.Fatal(err)
		}
		s.wantBalance(10 * money.USD)
		s.beginAutomatic()
		s.wantBalance(10 * money.USD)
		if got := s.automatic().Pause; got != topup.PauseDispute {
			t.Errorf("after a dispute: got the pause %q, want %q", got, topup.PauseDispute)
		}
		if got := paused(); got != 3 {
			t.Errorf("got %d mails about three pauses, want 3", got)
		}
		s.wantWords("automatic_topup_paused", "The balance is $10.00", "/console/billing/automatic")
	})
}

// TestAutomaticAfterNewSettings changes the settings of the shop so that it cannot charge the saved card. Customers see
// why and get a mail when a top-up is due, operators get a problem, and top-ups go on with the old settings.
func TestAutomaticAfterNewSettings(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		pause  topup.Pause
		detail string
		change func(s *shop, o *topup.Options)
	}{
		"Stripe Tax": {topup.PauseUnavailable, "for example with stripe_tax", func(s *shop, o *topup.Options) {
			o.Providers = []topup.PaymentProvider{s.client(fakepayment.StripeSecret, true)}
		}},
		"no maximum":  {topup.PauseUnavailable, "topup_automatic_maximum is not set", func(_ *shop, o *topup.Options) { o.Terms.Automatic = 0 }},
		"no provider": {topup.PauseUnavailable, "stripe charges no saved cards", func(_ *shop, o *topup.Options) { o.Providers = nil }},
		"live mode": {topup.PauseMode, "saved in the other mode of Stripe", func(s *shop, o *topup.Options) {
			o.Providers = []topup.PaymentProvider{stripe.New(stripe.Options{URL: s.stripe.URL, Key: "sk_live_1", HTTP: http.DefaultClient})}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			saver(t, func(t *testing.T, s *shop) {
				s.addUser("ann@example.com")
				before, o := s.Topups, s.Options
				c.change(s, &o)
				s.Topups = topup.New(o)
				if got := s.PauseOf(s.automatic()); got != c.pause {
					t.Errorf("got the pause %q, want %q", got, c.pause)
				}
				if err := s.switchOn(15*money.USD, 3000, 9000); err == nil {
					t.Error("switching on: got no error, want one")
				}
				s.beginAutomatic()
				s.wantProblems()
				spend(s, 10*money.USD)
				for range 3 {
					s.beginAutomatic()
				}
				s.wantBalance(10 * money.USD)
				list := s.problems()
				if len(list) != 1 || list[0].Count != 1 || !strings.Contains(list[0].Detail, c.detail) ||
					!strings.Contains(list[0].Detail, "switched them on: 1") {
					t.Errorf("got the problems %+v, want one, seen once, with %q and one account", list, c.detail)
				}
				if got := s.mails(); !slices.Contains(got, "automatic_topup_paused ann@example.com") {
					t.Errorf("got the mails %q, want one about the pause", got)
				}
				s.Topups = before
				if got := s.PauseOf(s.automatic()); got != "" {
					t.Errorf("with the old settings: got the pause %q, want none", got)
				}
				s.beginAutomatic()
				s.wantBalance(40 * money.USD)
			})
		})
	}
}

// TestAutomaticInOtherMode leaves an unpaid automatic top-up of the other mode (test or live). The card is charged
// nevertheless.
func TestAutomaticInOtherMode(t *testing.T) {
	t.Parallel()
	saver(t, func(t *testing.T, s *shop) {
		spend(s, 10*money.USD)
		s.stripe.SetDown(http.StatusInternalServerError)
		if err := s.BeginAutomatic(t.Context()); !isNoAnswer(err) {
			t.Errorf("an automatic top-up without Stripe: got %v, want ErrNoAnswer", err)
		}
		s.stripe.SetDown(0)
		storetest.Update(t, s.db, func(tx *store.Tx) error {
			_, err := tx.Exec(`UPDATE topup SET live = 1 WHERE state = 'created'`)
			return err
		})
		s.beginAutomatic()
		s.wantBalance(40 * money.USD)
	})
}

// paidAutomatic returns the automatic top-up that is paid.
func (s *shop) paidAutomatic() topup.Topup {
	s.t.Helper()
	list, err := store.Read(s.t.Context(), s.db, func(tx *store.Tx) ([]topup.Topup, error) {
		list, _, err := topup.ListTx(tx, topup.ListFilter{Account: s.account, State: topup.Paid, Limit: 10})
		return list, err
	})
	if err != nil {
		s.t.Fatal(err)
	}
	for _, row := range list {
		if row.IsAutomatic() {
			return row
		}
	}
	s.t.Fatal("no automatic top-up is paid")
	return topup.Topup{}
}

// TestAutomaticSettings checks the customer's settings, and removes the card while Stripe does not answer.
func TestAutomaticSettings(t *testing.T) {
	t.Parallel()
	saver(t, func(t *testing.T, s *shop) {
		for _, c := range []struct {
			level          money.Amount
			minor, monthly int64
			field          string
		}{{0, 3000, 9000, "level"}, {money.USD, 499, 9000, "amount"}, {money.USD, 100001, 100001, "amount"}, {money.USD, 3000, 2999, "monthly"},
			{money.USD, 3000, 10001, "monthly"}} {
			err := s.switchOn(c.level, c.minor, c.monthly)
			var f *fault.Error
			if !errors.As(err, &f) || f.Param != c.field {
				t.Errorf("%+v: got %v, want an error at %s", c, err, c.field)
			}
		}
		s.stripe.SetDown(500)
		if err := s.RemoveCard(t.Context(), s.account); !isNoAnswer(err) {
			t.Errorf("removing without Stripe: got %v, want ErrNoAnswer", err)
		}
		s.stripe.SetDown(0)
		spend(s, 10*money.USD)
		s.beginAutomatic()
		s.wantBalance(10 * money.USD) // switched off
		for range 2 {
			if err := s.RemoveCard(t.Context(), s.account); err != nil {
				t.Fatal(err)
			}
		}
		if s.stripe.Cards() != 0 || s.automatic().Card.ID != "" {
			t.Errorf("after removing: got %d cards at Stripe and %+v here, want none", s.stripe.Cards(), s.automatic())
		}
		if err := s.switchOn(15*money.USD, 3000, 9000); err == nil {
			t.Error("switching on without a card: got no error, want one")
		}
	})
}
