package admin

import (
	"strings"
	"testing"

	"tollgate/internal/account"
	"tollgate/internal/fault"
	"tollgate/internal/store"
	"tollgate/internal/store/storetest"
)

func TestCodes(t *testing.T) {
	t.Parallel()
	eachDB(t, func(t *testing.T, c *caller) {
		id := c.ok("POST", "/accounts", `{"name":"a"}`).text("id")
		first := c.ok("POST", "/codes", `{"usd":"2.5","count":3,"expires":4102444800}`, "Idempotency-Key", "k")
		codes, more := first.list()
		if len(codes) != 3 || more || codes[0]["state"] != "unused" ||
			strings.Count(first.body, `"usd":2.5,`) != 3 || strings.Count(first.body, `"expires":4102444800,`) != 3 {
			t.Fatalf("created %s, want 3 unused codes of 2.5 USD with the expiry", first.body)
		}
		text := codes[0]["code"].(string)
		repeated := c.ok("POST", "/codes", `{"usd":"2.5","count":3,"expires":4102444800}`, "Idempotency-Key", "k")
		if list, _ := repeated.list(); len(list) != 3 || strings.Contains(repeated.body, `"code"`) || strings.Contains(repeated.body, text) {
			t.Errorf("the repetition got %s, want the 3 codes without their texts", repeated.body)
		}
		storetest.Update(t, c.db, func(tx *store.Tx) error {
			_, _, err := account.RedeemTx(tx, id, text)
			return err
		})
		c.ok("GET", "/accounts/"+id, "").want(`{"balance_usd":2.5}`)
		c.do("DELETE", "/codes/"+codes[0]["id"].(string), "").wantFault(fault.InvalidRequest, "")
		c.ok("DELETE", "/codes/"+codes[1]["id"].(string), "").want(`{"deleted":true}`)
		c.do("DELETE", "/codes/code_none", "").wantFault(fault.NotFound, "")
		states := map[string]string{}
		for after, more := "", true; more; {
			var page []map[string]any
			page, more = c.ok("GET", "/codes?limit=2&after="+after, "").list()
			for _, code := range page {
				after = code["id"].(string)
				states[after] = code["state"].(string)
				if code["code"] != nil {
					t.Errorf("the list has %v, want no text of a code", code)
				}
				if code["state"] == "used" && (code["account"] != id || code["redeemed"] == nil) {
					t.Errorf("the used code is %v, want account %s and the time", code, id)
				}
			}
		}
		for i, want := range []string{"used", "void", "unused"} {
			if got := states[codes[i]["id"].(string)]; got != want {
				t.Errorf("code %d is %s, want %s", i, got, want)
			}
		}
		c.ok("GET", "/audit", "").want(`{"ok":true,"differences":[]}`)
		for body, param := range map[string]string{
			`{}`: "usd", `{"usd":0}`: "usd", `{"usd":-1}`: "usd", `{"usd":1,"count":0}`: "count", `{"usd":1,"count":1001}`: "count",
			`{"usd":1,"count":1.5}`: "count", `{"usd":1,"expires":1}`: "expires", `{"usd":1,"expires":"soon"}`: "expires",
			`{"usd":1,"code":"A"}`: "code",
		} {
			c.do("POST", "/codes", body).wantFault(fault.InvalidRequest, param)
		}
	})
}
