package operatorpages_test

import (
	"net/http"
	"strings"
	"testing"

	"tollgate/internal/console"
	"tollgate/internal/console/consoletest"
)

// TestTopups lists, refunds and exports a top-up as an operator, and closes a problem.
func TestTopups(t *testing.T) {
	t.Parallel()
	consoletest.Each(t, func(t *testing.T, s *consoletest.Scene) {
		b := s.Operator()
		const path = "/console/operator/top-ups"
		b.Get(path).Want(t, http.StatusOK, "No top-ups yet")
		row := s.Topup("ada")
		session := s.Stripe.Session(row.ID)
		address := path + "/" + row.ID
		b.Get(address).Want(t, http.StatusOK, "waiting for the payment", "ada")
		s.Stripe.Pay(session)
		if got := b.Post(address + "/check").Header().Get("Location"); got != address+"?done=checked" {
			t.Errorf("check: got %s, want the page of the top-up", got)
		}
		b.Get(path+"?state=paid").Want(t, http.StatusOK, "paid", "ada", row.ID)
		b.Get(path+"?state=failed").Want(t, http.StatusOK, "Nothing matches")
		b.Get(path+"/table").Want(t, http.StatusOK, "50.00,USD,55,", "stripe")
		const reconciliation = path + "/reconciliation"
		b.Get(reconciliation).Want(t, http.StatusOK, "No differences", "1 payment at Stripe and 1 credited top-up here")
		s.Exec(`UPDATE topup SET total_minor = 6000 WHERE id = $1`, row.ID)
		b.Get(reconciliation+"?provider=stripe&days=90").Want(t, http.StatusOK, "1 difference.", "the amounts differ", "60.00 with tax", address)
		s.Exec(`UPDATE topup SET total_minor = 5000 WHERE id = $1`, row.ID)
		s.Stripe.SetDown(http.StatusBadGateway)
		b.Get(reconciliation).Want(t, http.StatusOK, "could not be compared")
		s.Stripe.SetDown(0)
		once := b.Get(address).Once(t)
		refund := func(amount, reason, secret string) consoletest.Answer {
			return b.Post(address+"/refund", "amount", amount, "reason", reason, "secret", secret, "once", once)
		}
		refund("20", "asked", "wrong").Want(t, http.StatusUnprocessableEntity, "nothing was refunded")
		refund("50.01", "asked", consoletest.AdminToken).Want(t, http.StatusUnprocessableEntity, "at most 50.00 USD")
		refund("20", " ", consoletest.AdminToken).Want(t, http.StatusUnprocessableEntity, "Give a reason")
		for range 2 { // the form is sent twice
			if got := refund("20", "asked", consoletest.AdminToken).Header().Get("Location"); got != address+"?done=refunded" {
				t.Errorf("refund: got %s, want the page of the top-up", got)
			}
		}
		if got := s.Stripe.Refunds(); got != 1 {
			t.Errorf("got %d refunds at Stripe, want 1", got)
		}
		b.Get(address).Want(t, http.StatusOK, "partly refunded", "20.00 USD", "$22.00", `value="30.00"`)
		b.Get("/console/operator/log").Want(t, http.StatusOK, "refund topup", "asked", `href="`+address)
		s.Stripe.Set(session, "amount_total", int64(1)) // no effect on a paid top-up
		s.Exec(`INSERT INTO topup_problem (id, provider, kind, object, topup, account, detail, seen, first_ms, last_ms, closed_ms, due_ms, mailed)
			VALUES ('problem_1', 'stripe', 'amount', 'pi_1', $1, '', 'paid was less', 1, 1, 1, 0, 0, 0)`, row.ID)
		b.Get(path).Want(t, http.StatusOK, "paid was less", "/problems/problem_1/close")
		if got := b.Post(path + "/problems/problem_1/close").Header().Get("Location"); got != path+"?done=closed" {
			t.Errorf("close: got %s, want the list", got)
		}
		if body := b.Get(path).Body.String(); strings.Contains(body, "paid was less") {
			t.Error("the closed problem is still listed")
		}
		b.Handler = s.Console(func(o *console.Options) { o.Topups = nil })
		b.Get(path).Want(t, http.StatusNotFound, "There is no such page")
		if body := b.Get("/console/operator").Body.String(); strings.Contains(body, "top-ups") {
			t.Error("the menu of a shop without payments has top-ups, want none")
		}
	})
}
