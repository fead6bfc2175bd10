package userpages_test

import (
	"net/http"
	"strings"
	"testing"

	"tollgate/internal/account"
	"tollgate/internal/console/consoletest"
	"tollgate/internal/ledger"
	"tollgate/internal/money"
	"tollgate/internal/store"
)

func TestBilling(t *testing.T) {
	t.Parallel()
	consoletest.Each(t, func(t *testing.T, s *consoletest.Scene) {
		var texts []string
		s.Update(func(tx *store.Tx) (err error) {
			_, texts, err = account.CreateCodesTx(tx, account.NewCodes{Value: 5 * money.USD, Count: 1})
			return err
		})
		ada, bob := s.SignedIn("ada@example.com"), s.SignedIn("bob@example.com")
		ada.Get("/console/billing").Want(t, http.StatusOK, "$10.00", "2,000 credits", "invoice 1")
		ada.Post("/console/billing/redeem", "code", "no<b>code").Want(t, http.StatusUnprocessableEntity, "There is no such code.",
			`value="no&lt;b&gt;code"`)
		ada.Post("/console/billing/redeem", "code", strings.ToLower(texts[0])).Want(t, http.StatusSeeOther, "done=redeemed")
		ada.Get("/console/billing?done=redeemed").Want(t, http.StatusOK, "The code is redeemed", "$15.00", "code code_")
		ada.Post("/console/billing/redeem", "code", texts[0]).Want(t, http.StatusUnprocessableEntity, "You redeemed this code already")
		bob.Post("/console/billing/redeem", "code", texts[0]).Want(t, http.StatusUnprocessableEntity, "was redeemed already")
		bob.Get("/console/billing").Want(t, http.StatusOK, "$10.00")

		s.Update(func(tx *store.Tx) error {
			for range 600 {
				if _, err := ledger.CreditTx(tx, s.Accounts["bob"].ID, 1, "=1+1"); err != nil {
					return err
				}
			}
			return nil
		})
		got := bob.Get("/console/billing/movements")
		got.Want(t, http.StatusOK, "Time,Kind,Amount,Balance,For\n", ",credit,0.000000001,10.0000006,'=1+1\n", ",credit,10,10,invoice 1\n")
		if n := strings.Count(got.Body.String(), "\n"); n != 602 || !strings.HasPrefix(got.Header().Get("Content-Type"), "text/csv") {
			t.Errorf("%d lines of %s", n, got.Header().Get("Content-Type"))
		}
		bob.Get("/console/billing").Want(t, http.StatusOK, "Next page")
	})
}
