package bounds

import (
	"strings"
	"testing"

	"tollgate/internal/account"
	"tollgate/internal/gatewaytest/fakeprovider"
	"tollgate/internal/gatewaytest/scene"
	"tollgate/internal/ledger/ledgertest"
	"tollgate/internal/operator"
	"tollgate/internal/store"
	"tollgate/internal/store/storetest"
)

// TestAuditFindsForgedMoney plants credits missing from the operators' log and receipts with a
// wrong charge for their tokens. Redeemed codes and requests of each kind of price are not
// differences.
func TestAuditFindsForgedMoney(t *testing.T) {
	t.Parallel()
	binary := scene.Binary(t)
	storetest.EachURL(t, func(t *testing.T, database string) {
		p := scene.NewNode(t, binary, database, nil)
		whole := fakeprovider.Reply{Body: fakeprovider.ChatBill(
			`{"prompt_tokens":1000,"completion_tokens":500,"total_tokens":1500,"prompt_tokens_details":{"cached_tokens":300}}`)}
		provider := fakeprovider.New(t, whole, whole, whole, whole, whole, whole, whole, whole)
		prices := map[string]any{"input": 1, "output": 2, "cached_input": 0.1, "cache_write": 1.25,
			"options": map[string]any{"service_tier": map[string]any{"flex": 0.5, "priority": 2}}}
		p.Admin("PUT", "/catalog", map[string]any{
			"models": []map[string]any{scene.ChatModel("swift", nil), scene.ChatModel("rich", map[string]any{"price": prices}),
				scene.ChatModel("gift", map[string]any{"price": map[string]any{"input": 0, "output": 0}, "free_daily_requests": 5})},
			"lines": []map[string]any{scene.ChatLine("only", provider.URL(), nil, "swift", "rich", "gift")}}, nil)
		db := storetest.Open(t, database, store.Options{})
		g := scene.GatewayAt(t, p.Process)
		acct, key := p.Account(10, nil)
		p.Admin("POST", "/accounts/"+acct+"/credits", map[string]any{"usd": -1, "note": "by mistake"}, nil)
		p.Admin("POST", "/accounts/"+acct+"/credits", map[string]any{"usd": 2.5, "note": "invoice 2"}, nil)
		if _, diag, code := scene.Run(t, binary, p.Settings, "account", "credit", acct, "3"); code != 0 {
			t.Fatal(diag)
		}
		redeemed, _ := p.Account(0, nil)
		err := db.Update(t.Context(), func(tx *store.Tx) error {
			_, texts, err := account.CreateCodesTx(tx, account.NewCodes{Value: 5, Count: 1})
			if err == nil {
				_, _, err = account.RedeemTx(tx, redeemed, texts[0])
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		credited, _ := p.Account(5, nil)
		ask := func(model string, more map[string]any) string {
			t.Helper()
			a := g.Send(t, scene.Chat, key, scene.Request(scene.Chat, model, false, more))
			if a.Status != 200 {
				t.Fatalf("%s: %d %s", model, a.Status, a.Raw)
			}
			return a.ID
		}
		ask("gift", nil)
		ask("rich", map[string]any{"service_tier": "flex"})
		over := ask("swift", map[string]any{"max_tokens": 10})
		p.Admin("PATCH", "/accounts/"+acct, map[string]any{"price_factor": 0.9}, nil)
		cheaper := ask("swift", nil)
		ask("rich", nil)
		p.Audit(t)
		findings := func(f ledgertest.Fault) string {
			var all []string
			for _, d := range ledgertest.Plant(t, db, f, account.AuditTx, operator.Check()) {
				all = append(all, d.What)
			}
			return strings.Join(all, "; ")
		}
		const credit, charge = "a credit is missing in the operators' log", "a charge differs from the cost of the receipt's counts"
		for name, c := range map[string]struct {
			fault ledgertest.Fault
			want  string
		}{
			"the newest credit and the balance are raised": {ledgertest.CreditMore.Of(credited), credit},
			"a credit without an operator's act":           {ledgertest.CreditInvented.Of(credited), credit},
			"a credit after charges":                       {ledgertest.CreditInvented.Of(acct), credit},
			"a credit of an account with a code":           {ledgertest.CreditInvented.Of(redeemed), credit},
			"a raised code":                                {ledgertest.CreditMore.Of(redeemed), "a redeemed code has no credit of its value"},
			"a raised credit is recorded as a code":        {ledgertest.CreditAsCode.Of(credited), "names a missing code"},
			"another factor":                               {ledgertest.ReceiptFactor.Of(cheaper), charge},
			"a factor on a receipt without one":            {ledgertest.ReceiptFactor.Of(over), charge},
			"a missing revision":                           {ledgertest.ReceiptRevision(cheaper, 99), "does not contain the receipt's model"},
			"an earlier revision":                          {ledgertest.ReceiptRevision(over, 0), "does not contain the receipt's model"},
			"other tokens with matching sums":              {ledgertest.ReceiptTokens.Of(cheaper), charge},
			"other tokens on a receipt above its hold":     {ledgertest.ReceiptTokens.Of(over), charge},
			"a smaller charge with matching sums":          {ledgertest.ReceiptCharge.Of(cheaper), charge},
		} {
			if got := findings(c.fault); !strings.Contains(got, c.want) {
				t.Errorf("%s: the audit reported %q; want %q", name, got, c.want)
			}
		}
		p.Audit(t)
	})
}
