package console_test

import (
	"net/http"
	"strings"
	"testing"

	"tollgate/internal/account"
	"tollgate/internal/ledger"
	"tollgate/internal/money"
	"tollgate/internal/store"
)

func TestBilling(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *scene) {
		var texts []string
		s.update(func(tx *store.Tx) (err error) {
			_, texts, err = account.CreateCodesTx(tx, account.NewCodes{Value: 5 * money.USD, Count: 1})
			return err
		})
		ada, bob := s.signedIn("ada@example.com"), s.signedIn("bob@example.com")
		want(t, ada.get("/console/billing"), http.StatusOK, "$10.00", "2,000 credits", "invoice 1")
		want(t, ada.post("/console/billing/redeem", "code", "no<b>code"), http.StatusUnprocessableEntity, "There is no such code.",
			`value="no&lt;b&gt;code"`)
		want(t, ada.post("/console/billing/redeem", "code", strings.ToLower(texts[0])), http.StatusSeeOther, "done=redeemed")
		want(t, ada.get("/console/billing?done=redeemed"), http.StatusOK, "The code is redeemed", "$15.00", "code code_")
		want(t, ada.post("/console/billing/redeem", "code", texts[0]), http.StatusUnprocessableEntity, "You redeemed this code already")
		want(t, bob.post("/console/billing/redeem", "code", texts[0]), http.StatusUnprocessableEntity, "was redeemed already")
		want(t, bob.get("/console/billing"), http.StatusOK, "$10.00")

		s.update(func(tx *store.Tx) error {
			for range 600 {
				if _, err := ledger.CreditTx(tx, s.accounts["bob"].ID, 1, "=1+1"); err != nil {
					return err
				}
			}
			return nil
		})
		got := bob.get("/console/billing/movements")
		want(t, got, http.StatusOK, "Time,Kind,Amount,Balance,For\n", ",credit,0.000000001,10.0000006,'=1+1\n", ",credit,10,10,invoice 1\n")
		if n := strings.Count(got.Body.String(), "\n"); n != 602 || !strings.HasPrefix(got.Header().Get("Content-Type"), "text/csv") {
			t.Errorf("%d lines of %s", n, got.Header().Get("Content-Type"))
		}
		want(t, bob.get("/console/billing"), http.StatusOK, "Next page")
	})
}
