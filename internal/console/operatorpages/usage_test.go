package operatorpages_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"tollgate/internal/account"
	"tollgate/internal/console/consoletest"
	"tollgate/internal/ledger/spending"
	"tollgate/internal/money"
	"tollgate/internal/store"
)

// TestUsage checks the earnings over all accounts, by account and by line.
func TestUsage(t *testing.T) {
	t.Parallel()
	consoletest.Each(t, func(t *testing.T, s *consoletest.Scene) {
		o := s.Operator()
		o.Get("/console/operator/usage").Want(t, http.StatusOK, "No requests in these days")
		o.Get("/console/operator").Want(t, http.StatusOK, "Status")
		key := s.Key("ada", "backend")
		s.AddUsage("ada", 1, spending.UsageRow{Key: key.ID, Model: "swift-1", Line: "main", Endpoint: "/v1/responses",
			Sums: spending.Sums{Requests: 4, Failed: 1, Charged: 4 * money.USD, LineCost: 3 * money.USD, LineCosts: 3,
				KnownCost: 2 * money.USD}})
		s.AddUsage("bob", 2, spending.UsageRow{Model: "swift-1", Line: "loss", Sums: spending.Sums{Requests: 1, Charged: money.USD,
			LineCost: 3 * money.USD, LineCosts: 1, KnownCost: money.USD}})
		o.Get("/console/operator/usage").Want(t, http.StatusOK, ">ada<", ">bob<", "$5.00", "$6.00", "-$3.00",
			"known of 4 requests", "4 of 5 requests have a known cost", "-50 %", "-200 %", "-100 %")
		o.Get("/console/operator/usage?by=line").Want(t, http.StatusOK, "main", "loss")
		o.Get("/console/operator/usage?by=key").Want(t, http.StatusOK, ">backend<", ">none<")
		page := o.Get("/console/operator/usage?account=" + s.Accounts["bob"].ID + "&by=model")
		page.Want(t, http.StatusOK, "swift-1", "-$2.00")
		page.Without(t, "$4.00")
		o.Get("/console/operator/usage/table?by=line").Want(t, http.StatusOK, "line,requests,",
			"\nloss,1,0,0,0,0,0,0,0,0,0,0,0,1,3,1,-2\n")
	})
}

// TestUsageFilters checks that filters offer the existing groups. If there are many accounts, a filter
// searches by name and proposes the matching accounts.
func TestUsageFilters(t *testing.T) {
	t.Parallel()
	consoletest.Each(t, func(t *testing.T, s *consoletest.Scene) {
		o, ada := s.Operator(), s.Accounts["ada"].ID
		key := s.Key("ada", "backend")
		s.AddUsage("ada", 1, spending.UsageRow{Key: key.ID, Model: "sandbox-chat", Line: "sandbox", Endpoint: "/v1/responses",
			Sums: spending.Sums{Requests: 4, Charged: 4 * money.USD}})
		s.AddUsage("bob", 1, spending.UsageRow{Model: "sandbox-chat", Sums: spending.Sums{Requests: 1, Charged: 7 * money.USD}})
		s.Request("ada", http.StatusOK, "")
		o.Get("/console/operator/usage").Want(t, http.StatusOK, `<option value="`+ada+`">ada</option>`, `<option value="sandbox-chat">`,
			`<option value="sandbox">`, `<option value="/v1/responses">`, "Key (hint or id)")
		wantFiltered := func(address, want string) {
			t.Helper()
			page := o.Get("/console/operator/usage?by=account&" + address)
			page.Want(t, http.StatusOK, want, "Clear filters")
			page.Without(t, "$11.00")
		}
		wantFiltered("account="+ada, "$4.00")
		wantFiltered("account=ADA@example", "$4.00")
		wantFiltered("key="+key.Hint, "$4.00")
		wantFiltered("key=none", "No single key has this hint.")
		wantFiltered("line=sandbox", "$4.00")
		wantFiltered("endpoint=/v1/images/edits", "Nothing matches these filters")
		wantFiltered("account=nobody", "No account has this text in its name, email or id.")
		wantFiltered("account=example.com", "Several accounts have this.")
		o.Get("/console/operator/usage?by=account").Want(t, http.StatusOK, "$11.00")
		o.Get("/console/operator/usage/table?account=nobody").Want(t, http.StatusBadRequest, "No account has this")
		o.Get("/console/operator/usage/table?by=model&account=bob").Want(t, http.StatusOK, "\nsandbox-chat,1,")

		s.Update(func(tx *store.Tx) error {
			for i := range 100 {
				if _, err := account.CreateTx(tx, account.NewAccount{Name: fmt.Sprintf("tenant-%02d", i)}); err != nil {
					return err
				}
			}
			return nil
		})
		for _, path := range []string{"usage", "requests", "jobs", "deliveries", "log"} {
			page := "/console/operator/" + path
			got := o.Get(page)
			got.Want(t, http.StatusOK, "Account (name or id)")
			got.Without(t, `<option value="acct_`)
			o.Get(page+"?account=nobody").Want(t, http.StatusOK, "No account has this text in its name, email or id.")
			o.Get(page+"?account=tenant-1").Want(t, http.StatusOK, "Several accounts have this. Choose one.",
				">tenant-10</option>", ">tenant-19</option>")
			if path != "deliveries" { // deliveries have a single filter
				o.Get(page+"?account=tenant-1").Want(t, http.StatusOK, `<details class="folder" open>`)
			}
			if path == "usage" || path == "requests" {
				o.Get(page+"?account=ada").Want(t, http.StatusOK, ">ada<", `value="ada"`)
			}
			o.Get(page+"?account=tenant-07").Without(t, "Several", "No account")
		}
	})
}

// TestSandboxStaysOutOfTotals checks that the operator's figures leave out the requests to sandbox
// lines, with a note, as soon as a real line is enabled. The usage of the sandbox line includes these
// requests.
func TestSandboxStaysOutOfTotals(t *testing.T) {
	t.Parallel()
	consoletest.Each(t, func(t *testing.T, s *consoletest.Scene) {
		o := s.Operator()
		s.AddUsage("ada", 0, spending.UsageRow{Model: "sandbox-chat", Line: "sandbox",
			Sums: spending.Sums{Requests: 7, Failed: 3, Charged: 70 * money.USD}})
		s.AddUsage("bob", 0, spending.UsageRow{Model: "both", Line: "second", Sums: spending.Sums{Requests: 2, Charged: 5 * money.USD}})
		s.AddUsage("bob", 0, spending.UsageRow{Model: "sold", Line: "main", Sums: spending.Sums{Requests: 4, Charged: 11 * money.USD,
			LineCost: 3 * money.USD, LineCosts: 4, KnownCost: 11 * money.USD}})
		s.AddUsage("bob", 1, spending.UsageRow{Model: "sold", Line: "main", Sums: spending.Sums{Requests: 1, Charged: 2 * money.USD}})
		total := []string{"$86.00", "13 requests"}
		for path, want := range map[string][]string{"/console/operator": total, "/console/operator/usage": {"$88.00", "14 requests"}} {
			o.Get(path).Want(t, http.StatusOK, want...)
		}
		s.SellReal()
		const note = "Not counted: 9 requests to the sandbox, charged $75.00."
		for path, want := range map[string][]string{
			"/console/operator":                         {"$11.00", "4 requests", "$8.00", "0 %", note},
			"/console/operator/usage":                   {"$13.00", "5 requests", note, `href="/console/operator/usage?line=second"`},
			"/console/operator/usage?by=line":           {"$13.00", note},
			"/console/operator/usage?by=model&span=7":   {"$13.00", note},
			"/console/operator/usage?model=sold&by=day": {"$13.00"},
			"/console/operator/usage?model=both":        {"No", "Not counted: 2 requests"},
			"/console/operator/usage?line=sandbox":      {"$70.00", "7 requests"},
			"/console/operator/usage?line=main":         {"$13.00"},
			"/console/operator/usage/table?by=line":     {"\nmain,5,", "\n"},
		} {
			page := o.Get(path)
			page.Want(t, http.StatusOK, want...)
			page.Without(t, "$88.00", "$86.00", "$75.00</span>", "\nsandbox,", "\nsecond,")
			if strings.Contains(path, "line=") || strings.Contains(path, "model=sold") {
				page.Without(t, "Not counted")
			}
		}
		s.SignedIn("ada@example.com").Get("/console/usage").Want(t, http.StatusOK, "$70.00")
	})
}
