package userpages_test

import (
	"html"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"tollgate/internal/console"
	"tollgate/internal/console/consoletest"
	"tollgate/internal/gatewaytest/fakepayment"
	"tollgate/internal/topup"
)

// TestTopup orders a top-up, pays it on Stripe's page, and reads the receipt.
func TestTopup(t *testing.T) {
	t.Parallel()
	consoletest.Each(t, func(t *testing.T, s *consoletest.Scene) {
		b := s.SignedIn("ada@example.com")
		b.Get("/console/billing").Want(t, http.StatusOK, "/console/billing/top-ups/new")
		b.Get("/console/billing/top-ups").Want(t, http.StatusOK, "No top-ups yet")
		const path = "/console/billing/top-ups/new"
		form := b.Get(path)
		form.Want(t, http.StatusOK, "50.00 USD for $55.00 of credit, with a bonus of 10 %", "From 5.00 to 500.00 USD.")
		for _, c := range [][2]string{{"4.99", "from 5.00 to 500.00 USD"}, {"500.01", "from 5.00"},
			{"5.001", "at most 2 decimals"}, {"-5", "must be an amount"},
			{"1e2", "must be an amount"}, {"", "must be an amount"}} {
			b.Post(path, "amount", "other", "other", c[0], "provider", "stripe", "once", form.Once(t)).
				Want(t, http.StatusUnprocessableEntity, c[1])
		}
		b.Post(path, "amount", "10.00", "provider", "paypal", "once", form.Once(t)).
			Want(t, http.StatusUnprocessableEntity, "Choose one of the ways")
		fields := []string{"amount", "other", "other", "50", "provider", "stripe", "once", form.Once(t)}
		address := b.Post(path, fields...).Header().Get("Location")
		if again := b.Post(path, fields...).Header().Get("Location"); again != address || s.Stripe.Sessions() != 1 {
			t.Errorf("the form again: got %s and %d sessions, want %s and one", again, s.Stripe.Sessions(), address)
		}
		id := regexp.MustCompile(`topup_\w+`).FindString(address)
		session := s.Stripe.Session(id)
		b.Get(address).Want(t, http.StatusOK, "waiting for the payment", "Pay 50.00 USD with Stripe", s.Stripe.URL+"/pay/"+session,
			"no real money", "10 %")
		b.Get(address+"?done=back").Want(t, http.StatusOK, "If you have paid")
		s.Stripe.Pay(session) // the message is lost
		b.Get(address+"?done=back&session_id="+session+"&trade_status=TRADE_SUCCESS&out_trade_no="+id+"&money=50.00").
			Want(t, http.StatusOK, "waiting for the payment") // the way back of the browser credits nothing
		if got := b.Post(address + "/check").Header().Get("Location"); got != address+"?done=checked" {
			t.Errorf("check: got %s, want the page of the top-up", got)
		}
		receipt := b.Get(address)
		receipt.Want(t, http.StatusOK, "Receipt", "paid", "50.00 USD", "$55.00", "ada@example.com", "pi_")
		if strings.Contains(receipt.Body.String(), "/check") {
			t.Error("the receipt has a button to check the payment, want none")
		}
		b.Get("/console/billing").Want(t, http.StatusOK, "$65.00", "top-up · stripe:pi_")
		s.Stripe.RefundElsewhere(session, 2500)
		if err := s.Options.Topups.Sync(t.Context(), id, ""); err != nil {
			t.Fatal(err)
		}
		b.Get(address).Want(t, http.StatusOK, "partly refunded", "Refunds and disputes", "25.00 USD", "$27.50")
		b.Get("/console/billing/top-ups").Want(t, http.StatusOK, "partly refunded", "50.00 USD")
	})
}

// TestTopupWithoutAnswer orders while Stripe does not answer. The page has a button to try again.
func TestTopupWithoutAnswer(t *testing.T) {
	t.Parallel()
	consoletest.Each(t, func(t *testing.T, s *consoletest.Scene) {
		b := s.SignedIn("ada@example.com")
		s.Stripe.SetDown(http.StatusInternalServerError)
		const path = "/console/billing/top-ups/new"
		address := b.Post(path, "amount", "10.00", "provider", "stripe", "once", b.Get(path).Once(t)).
			Header().Get("Location")
		b.Get(address).Want(t, http.StatusOK, "does not answer", "Try again")
		s.Stripe.SetDown(0)
		address = b.Post(strings.TrimSuffix(address, "?done=unanswered") + "/check").Header().Get("Location")
		b.Get(address).Want(t, http.StatusOK, "Pay 10.00 USD with Stripe")
	})
}

// TestRefusedTopup orders while Stripe refuses payments. The page says so, names the contact of the shop, and has no
// button to try again.
func TestRefusedTopup(t *testing.T) {
	t.Parallel()
	consoletest.Each(t, func(t *testing.T, s *consoletest.Scene) {
		b := s.SignedIn("ada@example.com")
		s.Stripe.RefuseSessions(http.StatusForbidden, "")
		const path = "/console/billing/top-ups/new"
		address := b.Post(path, "amount", "10.00", "provider", "stripe", "once", b.Get(path).Once(t)).Header().Get("Location")
		b.Get(address).Want(t, http.StatusOK, "The payment could not be started.", "Nothing was charged", "Ask your operator if it fails again.")
		if body := b.Get(address).Body.String(); strings.Contains(body, "/check") {
			t.Error("the page has a button to check the payment, want none")
		}
		b.Handler = s.Console(func(o *console.Options) { o.Brand.Contact = "mailto:help@shop.example" })
		b.Get(address).Want(t, http.StatusOK, "Ask help@shop.example if it fails again.", "mailto:help@shop.example")
		s.Operator().Get("/console/operator/top-ups").Want(t, http.StatusOK, "the payment could not be started", "Stripe says why.")
	})
}

// TestAutomaticTopup saves a card with a top-up, switches automatic top-ups on, sees a pause, switches them
// off, and removes the card.
func TestAutomaticTopup(t *testing.T) {
	t.Parallel()
	consoletest.Each(t, func(t *testing.T, s *consoletest.Scene) {
		b := s.SignedIn("ada@example.com")
		const path, order = "/console/billing/automatic", "/console/billing/top-ups/new"
		b.Get("/console/billing").Want(t, http.StatusOK, path)
		b.Get(path).Want(t, http.StatusOK, "No saved card", order+"?save=yes")
		address := b.Post(order, "amount", "10.00", "provider", "stripe", "save", "yes", "once", b.Get(order).Once(t)).Header().Get("Location")
		id := regexp.MustCompile(`topup_\w+`).FindString(address)
		s.Stripe.Pay(s.Stripe.Session(id))
		b.Post(address + "/check")
		b.Get(path).Want(t, http.StatusOK, "visa ending in 4242", "Up to 300.00 USD", "Switch on")
		for _, c := range [][4]string{{"x", "20", "100", "must be an amount in USD"}, {"0", "20", "100", "above 0"},
			{"10", "4", "100", "from 5.00"},
			{"10", "20", "301", "at most 300.00 USD"}, {"10", "20", "1e3", "must be an amount"}} {
			b.Post(path, "level", c[0], "amount", c[1], "monthly", c[2]).Want(t, http.StatusUnprocessableEntity, c[3])
		}
		if got := b.Post(path, "level", "500", "amount", "20", "monthly", "100").Header().Get("Location"); got != path+"?done=on" {
			t.Errorf("switching on: got %s, want the page", got)
		}
		b.Get(path).Want(t, http.StatusOK, `value="500"`, `value="20.00"`, "Switch off", ">on<")
		s.Stripe.FailCharges("authentication_required")
		if err := s.Options.Topups.BeginAutomatic(t.Context()); err != nil {
			t.Fatal(err)
		}
		for _, page := range []string{path, "/console/billing"} {
			b.Get(page).Want(t, http.StatusOK, "Automatic top-ups are paused", "wants you to confirm", order)
		}
		b.Get(path).Want(t, http.StatusOK, "Switch on again")
		with := b.Handler
		b.Handler = s.Console(func(o *console.Options) {
			changed := o.Topups.Options
			changed.Terms.Automatic = 0
			o.Topups = topup.New(changed)
		})
		b.Get("/console/billing").Want(t, http.StatusOK, "charges no saved cards at the moment", path)
		page := b.Get(path).Body.String()
		if !strings.Contains(page, "charges no saved cards at the moment") || !strings.Contains(page, "Remove card") ||
			strings.Contains(page, "Switch on again") {
			t.Error("without saved cards in the shop: want the cause and the button to remove the card, and no form")
		}
		b.Post(path, "level", "500", "amount", "20", "monthly", "100").Want(t, http.StatusNotFound, "There is no such page")
		b.Handler = with
		b.Get("/console/billing/top-ups").Want(t, http.StatusOK, "failed", "20.00 USD")
		b.Post(path + "/off")
		b.Get(path).Want(t, http.StatusOK, ">off<", "Switch on")
		s.Stripe.SetDown(http.StatusBadGateway)
		if got := b.Post(path + "/remove").Header().Get("Location"); got != path+"?done=unanswered" {
			t.Errorf("removing without Stripe: got %s, want the notice", got)
		}
		s.Stripe.SetDown(0)
		b.Post(path + "/remove")
		b.Get(path+"?done=removed").Want(t, http.StatusOK, "Your card is removed", "No saved card")
		b.Handler = s.Console(func(o *console.Options) {
			off := o.Topups.Options.Providers
			o.Topups = topup.New(topup.Options{DB: s.DB, Providers: off})
		})
		b.Get(path).Want(t, http.StatusNotFound, "There is no such page")
	})
}

// TestTopupMethods chooses one of the ways to pay at an EPay site, next to Stripe.
func TestTopupMethods(t *testing.T) {
	t.Parallel()
	consoletest.Each(t, func(t *testing.T, s *consoletest.Scene) {
		site := fakepayment.NewEPay(t)
		b := s.SignedIn("ada@example.com")
		b.Handler = s.Console(func(o *console.Options) { o.Topups = s.TakeCNY(site) })
		const path = "/console/billing/top-ups/new"
		form := b.Get(path)
		form.Want(t, http.StatusOK, "50.00 CNY for $5.00 of credit", "1 CNY buys 0.1 USD", "Stripe", "Alipay", "WeChat Pay")
		b.Post(path, "amount", "50.00", "provider", "epay/bank", "once", form.Once(t)).
			Want(t, http.StatusUnprocessableEntity, "Choose one of the ways")
		address := b.Post(path, "amount", "50.00", "provider", "epay/wxpay", "once", form.Once(t)).Header().Get("Location")
		b.Get(address).Want(t, http.StatusOK, "Pay 50.00 CNY with WeChat Pay", site.URL+"/submit.php")
		id := regexp.MustCompile(`topup_\w+`).FindString(address)
		link := regexp.MustCompile(`href="(` + site.URL + `/submit.php[^"]+)"`).FindStringSubmatch(b.Get(address).Body.String())
		site.Visit(html.UnescapeString(link[1]))
		site.Pay(id) // the message is lost
		b.Post(address + "/check")
		b.Get(address).Want(t, http.StatusOK, "Receipt", "WeChat Pay", "50.00 CNY", "$5.00")
		b.Get("/console/billing/top-ups").Want(t, http.StatusOK, "WeChat Pay")
		op := s.Operator()
		op.Handler = b.Handler
		op.Get("/console/operator/top-ups/"+id).Want(t, http.StatusOK, "Pay the money back at EPay first")
	})
}

// TestWithoutPayments checks that a shop without payments has neither their pages nor links to them.
func TestWithoutPayments(t *testing.T) {
	t.Parallel()
	consoletest.Each(t, func(t *testing.T, s *consoletest.Scene) {
		row := s.Topup("ada")
		b := s.SignedIn("ada@example.com")
		b.Handler = s.Console(func(o *console.Options) { o.Topups = (*topup.Topups)(nil) })
		if body := b.Get("/console/billing").Body.String(); strings.Contains(body, "top-up") {
			t.Error("the page Billing mentions top-ups, want none")
		}
		for _, path := range []string{"", "/new", "/" + row.ID} {
			b.Get("/console/billing/top-ups"+path).Want(t, http.StatusNotFound, "There is no such page")
		}
	})
}
