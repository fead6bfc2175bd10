package operatorpages_test

import (
	"net/http"
	"regexp"
	"testing"

	"tollgate/internal/console/consoletest"
)

// TestStatements credits an account without payment, reads the statement, and marks the credit as paid.
func TestStatements(t *testing.T) {
	t.Parallel()
	consoletest.Each(t, func(t *testing.T, s *consoletest.Scene) {
		b := s.Operator()
		const path = "/console/operator/statements"
		account := "/console/operator/accounts/" + s.Accounts["ada"].ID
		fields := []string{"usd", "40", "note", "invoice 7", "once", b.Get(account).Once(t), "sure", "yes"}
		b.Post(account+"/credit", fields...)
		b.Get(path).Want(t, http.StatusOK, "Statement of all accounts", "ada", "$50.00")
		money := b.Get(account + "?view=money")
		money.Want(t, http.StatusOK, "Mark as paid", "invoice 7")
		action := regexp.MustCompile(`/console/operator/entries/ent_\w+/paid`).FindString(money.Body.String())
		if got := b.Post(action).Header().Get("Location"); got != account+"?view=money&done=marked" {
			t.Errorf("marking: got %s, want the account's money", got)
		}
		b.Get(account+"?view=money&done=marked").Want(t, http.StatusOK, "Mark as unpaid", "The statements show the change")
		money = b.Get(account + "?view=money")
		money.Want(t, http.StatusOK, "Issue invoice", "The customer on the invoice is ada")
		action = regexp.MustCompile(`/console/operator/entries/ent_\w+/invoice`).FindString(money.Body.String())
		page := b.Post(action).Header().Get("Location")
		if again := b.Post(action).Header().Get("Location"); again != page {
			t.Errorf("a second invoice: got %s, want %s", again, page)
		}
		b.Get(page).Want(t, http.StatusOK, "Invoice INVOICE-", "40 USD")
		b.Get(account+"?view=money").Want(t, http.StatusOK, "INVOICE-")
		b.Get("/console/operator/invoices").Want(t, http.StatusOK, "INVOICE-")
		b.Get(path+"/table").Want(t, http.StatusOK, "ada", "40", "Total")
		b.Post(account+"/credit", "usd", "-40", "paid", "yes", "secret", consoletest.AdminToken, "sure", "yes", "once", b.Get(account).Once(t)).
			Want(t, http.StatusSeeOther)
		b.Get(account+"?view=money").Want(t, http.StatusOK, "Issue credit note", "INVOICE-", ", 40.00 USD</option>")
		b.Get(path+"/file").Want(t, http.StatusOK, "%PDF-")
		b.Get(path+"?month=2999-01").Want(t, http.StatusNotFound)
		preview := b.Post(account+"/credit", "usd", "5", "paid", "yes", "once", b.Get(account).Once(t))
		preview.Want(t, http.StatusOK, `name="paid"`, `value="yes"`)
	})
}
