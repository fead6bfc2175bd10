package operatorpages_test

import (
	"net/http"
	"strings"
	"testing"

	"tollgate/internal/account"
	"tollgate/internal/console/consoletest"
	"tollgate/internal/money"
	"tollgate/internal/operator"
	"tollgate/internal/store"
)

// TestCodes checks that codes are created only with the operator's secret, shown once, redeemed by
// a customer, and voided. The log must name the operator and contain no code.
func TestCodes(t *testing.T) {
	t.Parallel()
	consoletest.Each(t, func(t *testing.T, s *consoletest.Scene) {
		const path = "/console/operator/codes"
		b := s.Operator()
		b.Get(path).Want(t, http.StatusOK, "No codes yet", "Create codes")
		once := b.Get(path + "/new").Once(t)
		send := func(once string, change ...string) consoletest.Answer {
			fields := map[string]string{"usd": "2.50", "count": "3", "expires": "2999-12-31", "as": "page", "secret": consoletest.AdminToken}
			for i := 0; i < len(change); i += 2 {
				fields[change[i]] = change[i+1]
			}
			all := []string{"once", once}
			for name, value := range fields {
				all = append(all, name, value)
			}
			return b.Post(path+"/new", all...)
		}
		for field, wrong := range map[string]string{"usd": "much", "count": "few", "expires": "soon", "secret": "guess"} {
			got := send(once, field, wrong)
			got.Want(t, http.StatusUnprocessableEntity, `id="f-`+field+`-wrong"`)
			got.Without(t, consoletest.AdminToken)
		}
		send(once, "count", "1001").Want(t, http.StatusUnprocessableEntity, `id="f-count-wrong"`)
		send(once, "expires", "1999-12-31").Want(t, http.StatusUnprocessableEntity, `id="f-expires-wrong"`)
		created := send(once)
		created.Want(t, http.StatusOK, "3 codes of $2.50 created", "Copy the codes now", "code,usd,expires,id,batch", "3000-01-01T00:00:00Z")
		texts := created.Codes()
		if len(texts) != 6 { // as a list, and as CSV
			t.Fatalf("the page has %d codes, want 6: %s", len(texts), created.Body)
		}
		if again := send(once); len(again.Codes()) > 0 || again.Code != http.StatusOK {
			t.Errorf("the repeated form: status %d, want 200 without codes: %s", again.Code, again.Body)
		}
		s.SignedIn("ada@example.com").Post("/console/billing/redeem", "code", texts[0]).Want(t, http.StatusSeeOther, "done=redeemed")
		list := b.Get(path)
		list.Want(t, http.StatusOK, "used", "unused", ">ada<", "3000-01-01", "Void the code that ends in "+texts[1][18:])
		list.Without(t, texts[1])
		var codes []account.RedeemCode
		s.Update(func(tx *store.Tx) (err error) { codes, _, err = account.ListCodesTx(tx, "", 10); return err })
		for _, code := range codes {
			want := http.StatusSeeOther
			if code.RedeemedMS != 0 {
				want = http.StatusBadRequest
			}
			for range 2 {
				b.Post(path+"/"+code.ID+"/void").Want(t, want)
			}
		}
		b.Post(path+"/code_none/void").Want(t, http.StatusNotFound)
		b.Get(path+"?done=void").Want(t, http.StatusOK, "The code is void")
		if rows := logged(t, s, operator.CodeVoid, 2); rows[0].Before["state"] != account.CodeUnused {
			t.Errorf("the log has %+v, want the state before as unused", rows)
		}
		if rows := logged(t, s, operator.CodeCreate, 1); rows[0].Object != codes[0].Batch || rows[0].After["count"] != 3.0 {
			t.Errorf("the log has %+v, want 3 codes of batch %s", rows, codes[0].Batch)
		}
		b.Get("/console/operator/log").Want(t, http.StatusOK, "create code", "void code", `href="/console/operator/codes"`)

		file := send(b.Get(path+"/new").Once(t), "as", "csv", "count", "2", "expires", "")
		file.Want(t, http.StatusOK, "code,usd,expires,id,batch\n", ",2.5,,code_")
		if got := file.Codes(); len(got) != 2 || !strings.HasPrefix(file.Header().Get("Content-Type"), "text/csv") {
			t.Errorf("got headers %v and body %s, want a CSV file with 2 codes", file.Header(), file.Body)
		}
		if balance(s, s.Accounts["ada"].ID) != 12*money.USD+money.USD/2 {
			t.Errorf("the balance of ada is %s, want $12.50", balance(s, s.Accounts["ada"].ID))
		}
	})
}
