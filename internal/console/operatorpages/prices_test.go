package operatorpages_test

import (
	"net/http"
	"testing"

	"tollgate/internal/account"
	"tollgate/internal/console/consoletest"
)

// TestPricesOfAnAccount checks that operators can set factors, that the log names the operator, and
// that the account's users see their prices.
func TestPricesOfAnAccount(t *testing.T) {
	t.Parallel()
	consoletest.Each(t, func(t *testing.T, s *consoletest.Scene) {
		op := s.User("bob", account.SignIn{Email: "op@example.com", Operator: true})
		b := s.Session(account.OperatorSession, op.Email)
		path := "/console/operator/accounts/" + s.Accounts["ada"].ID
		b.Post(path+"/prices", "price_factor", "0.9", "prices", "easel-1 1.333333\r\n\r\n other\t2 ").
			Want(t, http.StatusSeeOther, path+"?done=priced")
		b.Get(path+"?done=priced").Want(t, http.StatusOK, `value="0.9"`, "easel-1 1.333333\nother 2\n", "apply to new requests")
		b.Get(path+"?view=log").Want(t, http.StatusOK, "op@example.com, 192.0.2.7", "price factor: 1 → 0.9", "prices:")
		for _, form := range [][2]string{{"0", ""}, {"x", ""}, {"1001", ""}, {"1", "m"},
			{"1", "m 0"}, {"1", "m 1\nm 2"}, {"1", "m x"}, {"1", "m 1 2"}} {
			b.Post(path+"/prices", "price_factor", form[0], "prices", form[1]).Want(t, http.StatusUnprocessableEntity, "aria-invalid")
		}
		b.Get(path).Want(t, http.StatusOK, `value="0.9"`)
		b.Post(path+"/prices", "price_factor", "", "prices", "").Want(t, http.StatusSeeOther)
		b.Get(path).Want(t, http.StatusOK, `name="price_factor"`, `value="1"`)
	})
}
