package payments

import (
	"testing"

	"tollgate/internal/gatewaytest/faultproxy"
	"tollgate/internal/store/storetest"
)

// TestLostCommits loses COMMITs of a purchase, or the answers to them, and breaks their connections. The process
// continues.
func TestLostCommits(t *testing.T) {
	t.Parallel()
	database := storetest.PostgreSQL(t)
	proxy := faultproxy.New(t, database)
	s := newShop(t, proxy.URL(), database)
	for _, c := range []struct {
		name     string
		purchase purchase
		during   string
		begins   []string // a statement of the transaction begins with each of these
	}{
		{"the order", s.purchase, ordering, []string{"INSERT INTO topup"}},
		{"the page of the order", s.purchase, ordering, []string{"UPDATE topup SET state"}},
		{"the payment", s.purchase, paying, []string{"UPDATE topup SET state", "INSERT INTO ledger_entry", "INSERT INTO invoice_document"}},
		{"the refund", s.purchase, refunding, []string{"INSERT INTO topup_reversal", "INSERT INTO ledger_entry"}},
		{"the confirmation of the refund", s.purchase, refunding, []string{"INSERT INTO topup_reversal", "INSERT INTO invoice_document"}},
		{"the dispute", s.purchase, disputing, []string{"INSERT INTO topup_reversal", "INSERT INTO ledger_entry"}},
		{"the order at the site", s.purchaseAtSite, ordering, []string{"INSERT INTO topup"}},
		{"the payment at the site", s.purchaseAtSite, paying, []string{"UPDATE topup SET state", "INSERT INTO ledger_entry"}},
		{"the refund at the site", s.purchaseAtSite, refunding, []string{"INSERT INTO topup_reversal", "INSERT INTO ledger_entry"}},
	} {
		for effect, what := range []string{faultproxy.DropCommit: "COMMIT", faultproxy.DropAnswer: "answer"} {
			effect := faultproxy.Effect(effect)
			var hit *faultproxy.Hit
			pid := 0
			c.purchase(func(step string, do func()) {
				if step != c.during {
					do()
					return
				}
				pid = s.n.Pid()
				hit = proxy.Arm(faultproxy.Fault{Effect: effect, Match: func(commit faultproxy.Commit) bool {
					for _, words := range c.begins {
						if !commit.Has(words) {
							return false
						}
					}
					return true
				}})
				do()
			})
			if !hit.Happened() {
				t.Fatalf("%s: no COMMIT was lost", c.name)
			}
			if hit.Committed() != (effect == faultproxy.DropAnswer) {
				t.Errorf("%s: %s lost: committed: %t", c.name, what, hit.Committed())
			}
			if c.during != refunding && s.n.Pid() != pid {
				t.Errorf("%s: %s lost: the process has ended", c.name, what)
			}
		}
	}
	s.loseInvoices(proxy)
	s.checkEnd()
}

// loseInvoices loses the COMMIT, and then the answer to the COMMIT, of the invoice of an operator's credit.
func (s *shop) loseInvoices(proxy *faultproxy.Proxy) {
	s.t.Helper()
	account, _ := s.n.Account(0, nil)
	for i, effect := range []faultproxy.Effect{faultproxy.DropCommit, faultproxy.DropAnswer} {
		s.n.Admin("POST", "/accounts/"+account+"/credits", map[string]any{"usd": 1, "paid": true}, nil)
		var entries struct{ Data []struct{ ID string } }
		s.n.Admin("GET", "/accounts/"+account+"/entries", nil, &entries)
		hit := proxy.Arm(faultproxy.Fault{Effect: effect, Match: faultproxy.Having("INSERT INTO invoice_document")})
		s.insist("invoice", func() (int, error) {
			return s.operator("/entries/"+entries.Data[0].ID+"/invoice", "{}")
		})
		if !hit.Happened() {
			s.t.Fatal("no COMMIT of an invoice was lost")
		}
		if got := s.count(`SELECT COUNT(*) FROM invoice_document WHERE account = $1`, account); got != i+1 {
			s.t.Errorf("got %d invoices of %d credits", got, i+1)
		}
		if got := s.count(missingNumbers); got != 0 {
			s.t.Errorf("after %d credits: got %d missing numbers, want 0", i+1, got)
		}
	}
}
