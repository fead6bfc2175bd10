package userpages_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"tollgate/internal/console/consoletest"
	"tollgate/internal/ledger"
	"tollgate/internal/ledger/spending"
	"tollgate/internal/money"
	"tollgate/internal/store"
)

// TestBilling checks the redemption of a code, and the movements on the page and as a CSV file.
func TestBilling(t *testing.T) {
	t.Parallel()
	consoletest.Each(t, func(t *testing.T, s *consoletest.Scene) {
		_, code := s.Code()
		ada, bob := s.SignedIn("ada@example.com"), s.SignedIn("bob@example.com")
		ada.Get("/console/billing").Want(t, http.StatusOK, "$10.00", "2,000 credits", "invoice 1")
		ada.Post("/console/billing/redeem", "code", "no<b>code").Want(t, http.StatusUnprocessableEntity, "There is no such code.",
			`value="no&lt;b&gt;code"`)
		ada.Post("/console/billing/redeem", "code", strings.ToLower(code)).Want(t, http.StatusSeeOther, "done=redeemed")
		ada.Get("/console/billing?done=redeemed").Want(t, http.StatusOK, "The code is redeemed", "$11.00", "redeemed code_")
		ada.Post("/console/billing/redeem", "code", code).Want(t, http.StatusUnprocessableEntity, "You redeemed this code already")
		bob.Post("/console/billing/redeem", "code", code).Want(t, http.StatusUnprocessableEntity, "was redeemed already")
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
		got.Want(t, http.StatusOK, "Time,Kind,Amount,Balance,For,Model\n", ",credit,0.000000001,10.0000006,'=1+1,\n",
			",credit,10,10,invoice 1,\n")
		if n := strings.Count(got.Body.String(), "\n"); n != 602 || !strings.HasPrefix(got.Header().Get("Content-Type"), "text/csv") {
			t.Errorf("the file has %d lines of %s, want 602 of text/csv", n, got.Header().Get("Content-Type"))
		}
		bob.Get("/console/billing").Want(t, http.StatusOK, "Next page")
	})
}

// TestMovementFilters checks the filters for kind and month, on the page and as CSV.
func TestMovementFilters(t *testing.T) {
	t.Parallel()
	consoletest.Each(t, func(t *testing.T, s *consoletest.Scene) {
		ada := s.SignedIn("ada@example.com")
		request := s.Request("ada", http.StatusOK, "") // in January 2027
		ada.Get("/console/billing?kind=charge&month=2027-01").Want(t, http.StatusOK, request, "2027-01")
		ada.Get("/console/billing?kind=credit&month=2001-02").Want(t, http.StatusOK, "Nothing matches these filters", "2001-02")
		for query, want := range map[string]bool{"": true, "?kind=charge": true, "?kind=credit": false,
			"?month=soon": true, "?month=2001-02": false} {
			for _, path := range []string{"/console/billing", "/console/billing/movements"} {
				got := ada.Get(path + query)
				if got.Want(t, http.StatusOK); strings.Contains(got.Body.String(), request) != want {
					t.Errorf("%s%s has the charge: %t, want %t", path, query, !want, want)
				}
			}
		}
	})
}

// TestStatements checks that a month's opening balance, credits and charges by model add up to its
// closing balance, and that the next month opens with the same balance.
func TestStatements(t *testing.T) {
	t.Parallel()
	consoletest.Each(t, func(t *testing.T, s *consoletest.Scene) {
		ada := s.SignedIn("ada@example.com")
		now := time.Now().UTC()
		month, previous := now.Format("2006-01"), now.AddDate(0, 0, -now.Day()).Format("2006-01")
		s.AddUsage("ada", 0, spending.UsageRow{Model: "swift-1", Sums: spending.Sums{Requests: 4, Billed: 3, Failed: 1, Charged: 2 * money.USD}})
		s.AddUsage("ada", 0, spending.UsageRow{Model: "=reel", Sums: spending.Sums{Requests: 1, Billed: 1, Charged: money.USD}})
		s.AddUsage("ada", 0, spending.UsageRow{Model: "failing", Sums: spending.Sums{Requests: 2, Failed: 2}})
		s.AddUsage("ada", int64(now.Day()), spending.UsageRow{Model: "swift-1", Sums: spending.Sums{Requests: 5, Charged: 4 * money.USD}})
		s.Update(func(tx *store.Tx) error {
			_, err := ledger.CreditTx(tx, s.Accounts["ada"].ID, -money.USD/2, "by mistake")
			return err
		})
		s.Exec(`UPDATE account SET created_ms = $1 WHERE id = $2`, now.AddDate(0, -2, 0).UnixMilli(), s.Accounts["ada"].ID)
		ada.Get("/console/billing").Want(t, http.StatusOK, "/console/billing/statements")
		ada.Get("/console/billing/statements").Want(t, http.StatusOK, "/console/billing/statements/"+month,
			"/console/billing/statements/"+previous,
			"$3.00", "$7.00", "-$4.00")
		ada.Get("/console/billing/statements/"+month).Want(t, http.StatusOK, "so far", "$3.00", "invoice 1", "by mistake", "-$2.00",
			"$9.50")
		got := ada.Get("/console/billing/statements/" + month + "/table")
		got.Want(t, http.StatusOK, "What,For,Charged requests,Amount\nOpening balance,"+month+"-01,,3\n",
			",invoice 1,,10\n", ",by mistake,,-0.5\n",
			"Charges,swift-1,3,-2\nCharges,'=reel,1,-1\nClosing balance,\""+time.Now().UTC().Format("2006-01-02")+", so far\",,9.5\n")
		got.Without(t, "failing")
		ada.Get("/console/billing/statements/"+previous).Want(t, http.StatusOK, "$7.00", "-$4.00", "$3.00")
		for _, none := range []string{"1999-01", "2999-01", "soon"} {
			ada.Get("/console/billing/statements/"+none).Want(t, http.StatusNotFound, "no statement of this month")
			ada.Get("/console/billing/statements/"+none+"/table").Want(t, http.StatusNotFound)
		}
		s.SignedIn("bob@example.com").Get("/console/billing/statements/"+previous).Want(t, http.StatusNotFound)
	})
}
