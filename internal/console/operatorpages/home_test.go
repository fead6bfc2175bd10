package operatorpages_test

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"tollgate/internal/account"
	"tollgate/internal/console"
	"tollgate/internal/console/consoletest"
	"tollgate/internal/ledger"
	"tollgate/internal/ledger/spending"
	"tollgate/internal/money"
	"tollgate/internal/operator"
	"tollgate/internal/store"
)

// TestOverviewShowsProblems checks that the first page shows each problem for the operator, and no other.
func TestOverviewShowsProblems(t *testing.T) {
	t.Parallel()
	consoletest.Each(t, func(t *testing.T, s *consoletest.Scene) {
		b := s.Operator()
		b.Get("/console/operator/lines") // refreshes this node's report
		b.Get("/console/operator").Want(t, http.StatusOK, "All is well", "1 / 1", "running / seen in 24 h", "not run yet")
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := s.Books.Beat(ctx); err == nil {
			t.Fatal("Beat with a canceled context returned no error")
		}
		s.Exec(`INSERT INTO webhook_receiver (id, account, failing, ready_ms) VALUES ('r', 'acct_x', 1, 0)`)
		s.Exec(`INSERT INTO webhook_delivery (id, account, event, type, url, receiver, body, state, created_ms)
			VALUES ('dlv_1', 'acct_x', 'evt_1', 'image.failed', 'https://hooks.example/in', 'r', '', 0, 1)`)
		s.Exec(`INSERT INTO webhook_queue (delivery, account, receiver, due_ms, tries, fresh, lease, epoch, until_ms)
			VALUES ('dlv_1', 'acct_x', 'r', 0, 2, 0, '', '', 0)`)
		s.Exec(`INSERT INTO operator_audit (id, epoch, began_ms, ended_ms, name, fault, findings)
			VALUES ('audit_1', '', 1, 2, 'ada', '', '{"ok":false,"checked":{},"differences":[{"what":"balance","recorded":"1","computed":"2"}]}')`)
		b.Get("/console/operator").Want(t, http.StatusOK, "3 things need you", "does not accept writes", "context canceled",
			"https://hooks.example/in",
			"The books do not agree", "1 difference")
		b.Get("/console/operator/find?q=evt_1").Want(t, http.StatusSeeOther, "acct_x?view=webhook")
		b.Get("/console/operator/books").Want(t, http.StatusOK, "Differences", "balance")
	})
}

// TestOverviewShowsFailedChange checks that the first page shows a scheduled change that was not applied.
func TestOverviewShowsFailedChange(t *testing.T) {
	t.Parallel()
	consoletest.Each(t, func(t *testing.T, s *consoletest.Scene) {
		s.Exec(`INSERT INTO catalog_change (id, base, document, changes, note, at_ms, state, revision, reason, announced, mailed_to, mailed,
			created_ms, ended_ms) SELECT 'chg_1', 1, document, '["a"]', '', applied_ms + 5, 2, 0, 'model a was changed', 0, '', 1, applied_ms,
			applied_ms + 5 FROM catalog_revision WHERE revision = 1`)
		b := s.Operator()
		b.Get("/console/operator/lines") // refreshes this node's report
		b.Get("/console/operator").Want(t, http.StatusOK, "1 thing needs you", "A scheduled change of the catalog was not applied",
			"model a was changed. Apply it", "/console/operator/catalog/changes/chg_1")
	})
}

// TestOverviewShowsDifferentSettings checks that the first page names the settings that differ and their nodes,
// until a node with other settings has ended.
func TestOverviewShowsDifferentSettings(t *testing.T) {
	t.Parallel()
	consoletest.Each(t, func(t *testing.T, s *consoletest.Scene) {
		b := s.Operator()
		b.Get("/console/operator/lines") // refreshes this node's report
		for _, n := range []string{"1", "2", "3"} {
			s.Exec(`INSERT INTO node (epoch, host, beat, dead, started_ms, schema) VALUES ('node_` + n + `', 'web-` + n + `', 0, 0, 0, 1)`)
			s.Exec(`INSERT INTO node_settings (epoch, digests)
				VALUES ('node_` + n + `', '{"low_balance":"` + n + `","smtp_password@k":"` + n + `","sign_up":"1"}')`)
		}
		b.Get("/console/operator").Want(t, http.StatusOK, "1 thing needs you", "Nodes run with different settings.",
			"low_balance, smtp_password: one value on web-1, another on web-2, another on web-3. Start all nodes with the same settings.")
		s.Exec(`DELETE FROM node WHERE epoch = 'node_3'`)
		s.Exec(`UPDATE node_settings SET digests = '{"low_balance":"1","sign_up":"1"}' WHERE epoch = 'node_2'`)
		b.Get("/console/operator").Want(t, http.StatusOK, "All is well")
	})
}

// TestOverviewWarnsOfFailingRequests checks that the first page warns if requests of the last minutes
// fail at a rate noticeable for users. Requests rejected for errors of the client do not count.
func TestOverviewWarnsOfFailingRequests(t *testing.T) {
	t.Parallel()
	consoletest.Each(t, func(t *testing.T, s *consoletest.Scene) {
		b := s.Operator()
		b.Get("/console/operator/lines")
		for range 8 {
			s.Request("ada", 200, "")
		}
		s.Request("ada", 400, "invalid_request")
		s.Request("ada", 502, "upstream_error")
		b.Get("/console/operator").Want(t, http.StatusOK, "All is well", `href="/console/operator/books">not run yet</a>`)
		s.Request("ada", 503, "no_line_available")
		b.Get("/console/operator").Want(t, http.StatusOK, "1 thing needs you", "2 of 11 requests failed in the last 10 minutes")
		for range 30 {
			s.Request("ada", 200, "")
		}
		b.Get("/console/operator").Want(t, http.StatusOK, "All is well") // 2 of 41 is less than one in twenty
	})
}

// TestUnsetPublicURL checks that without public_url the first page, and each page with a text to
// send, shows a warning with the address in use, and that texts name the service.
func TestUnsetPublicURL(t *testing.T) {
	t.Parallel()
	consoletest.Each(t, func(t *testing.T, s *consoletest.Scene) {
		b, path := s.Operator(), "/console/operator/accounts/"+s.Accounts["ada"].ID
		const unset = "The setting public_url is not set."
		for _, page := range []string{"/console/operator", path} {
			b.Get(page).Without(t, unset)
		}
		b.Get(path).Want(t, http.StatusOK, "your account ada is ready at console.example.")
		b.Handler = s.Console(func(o *console.Options) { o.NoPublicURL = true })
		b.Get("/console/operator").Want(t, http.StatusOK, unset, "name "+consoletest.PublicURL+", which customers may not reach")
		b.Get(path).Want(t, http.StatusOK, unset)
		b.Post(path+"/users", "email", "eve@example.com", "password", "").Want(t, http.StatusOK, unset,
			"set your password for the console of console.example")
	})
}

// TestOverviewUpdates checks that the live update of the first page has the charts of the month, with
// the current values of today, and the state of the database.
func TestOverviewUpdates(t *testing.T) {
	t.Parallel()
	consoletest.Each(t, func(t *testing.T, s *consoletest.Scene) {
		s.AddUsage("ada", 3, spending.UsageRow{Model: "swift-1", Sums: spending.Sums{Requests: 2, Failed: 1, Charged: 7 * money.USD}})
		b := s.Operator()
		b.Get("/console/operator").Want(t, http.StatusOK, `data-live="/console/operator/live" data-calm`, `id="charges"`,
			"$7.00", `id="requests"`)
		name := map[store.Dialect]string{store.SQLite: "SQLite", store.PostgreSQL: "PostgreSQL"}[s.DB.Dialect()]
		s.Request("ada", 200, "")
		live := b.Get("/console/operator/live")
		live.Want(t, http.StatusOK, `id="now"`, name, "B, last commit in ", "$7.00", `id="latency"`, "UTC: 1.4 s.")
		live.Without(t, "<html")
		s.AddUsage("ada", 0, spending.UsageRow{Model: "swift-1", Sums: spending.Sums{Requests: 1, Charged: 4 * money.USD}})
		b.Get("/console/operator/live").Want(t, http.StatusOK, ": $4.00</title>", "0 of 1 request that ran") // today's values are not cached
	})
}

// TestOverviewShowsHolds checks that the first page shows the holds of requests and jobs.
func TestOverviewShowsHolds(t *testing.T) {
	t.Parallel()
	consoletest.Each(t, func(t *testing.T, s *consoletest.Scene) {
		s.Job("ada", "a boat")
		s.Operator().Get("/console/operator").Want(t, http.StatusOK, "On hold", "$0.03", "0 requests, 1 job")
	})
}

// TestFirstSteps checks that the first page leads step by step from a first start to a
// customer with a charged request, and shows no steps afterwards. The sandbox and the demo account
// of a first start do not count.
func TestFirstSteps(t *testing.T) {
	t.Parallel()
	consoletest.Each(t, func(t *testing.T, s *consoletest.Scene) {
		s.Exec(`DELETE FROM ledger_entry`)
		s.Exec(`DELETE FROM account WHERE name = 'bob'`)
		s.Exec(`UPDATE account SET email = 'demo@example.com' WHERE name = 'ada'`)
		b := s.Operator()
		b.Handler = s.Console(func(o *console.Options) { o.SignUps = operator.SignUps{} })
		wantDone := func(want int, links ...string) {
			t.Helper()
			page := b.Get("/console/operator")
			page.Want(t, http.StatusOK, append(links, "Steps to your first paying customer")...)
			if n := strings.Count(page.Body.String(), `<span class="badge ok">done</span>`); n != want {
				t.Errorf("%d steps are marked as done, want %d: %s", n, want, page.Body)
			}
		}
		wantDone(0, "Add a provider", "Create an account", "Customers cannot sign up", "sign_up: open")
		b.Get("/console/operator").Without(t, "Customers cannot pay yet") // the scene takes payments
		s.Sell("", `  - {id: main, provider: openai, models: {sandbox-chat: x}, api_key: "${X}"}`+"\n")
		wantDone(1)
		s.Update(func(tx *store.Tx) error {
			a, err := account.CreateTx(tx, account.NewAccount{Name: "Acme"})
			s.Accounts["Acme"] = a
			return err
		})
		path := "/console/operator/accounts/" + s.Accounts["Acme"].ID
		wantDone(2, path+`" class="button main">Credit it`, path+"?view=keys")
		s.Key("Acme", "backend")
		wantDone(3)
		s.Update(func(tx *store.Tx) error {
			_, err := ledger.CreditTx(tx, s.Accounts["Acme"].ID, money.USD, "invoice 1")
			return err
		})
		b.Get("/console/operator").Without(t, "Customers cannot sign up") // credit by hand works too
		s.AddUsage("Acme", 0, spending.UsageRow{Model: "m", Sums: spending.Sums{Requests: 1, Charged: 1}})
		b.Get("/console/operator").Without(t, "Steps to your first paying customer")
	})
}

// TestStartAudit checks that an operator can start one audit at a time, and that the page follows it.
func TestStartAudit(t *testing.T) {
	t.Parallel()
	consoletest.Each(t, func(t *testing.T, s *consoletest.Scene) {
		b := s.Operator()
		b.Get("/console/operator/books").Want(t, http.StatusOK, "Not run yet")
		b.Post("/console/operator/books/run").Want(t, http.StatusSeeOther, "done=begun")
		b.Post("/console/operator/books/run").Want(t, http.StatusSeeOther, "done=runs")
		b.Get("/console/operator/books").Want(t, http.StatusOK, "audit running", `data-live="/console/operator/live/books" data-announce`)
		row := logged(t, s, operator.AuditRun, 1)[0]
		if err := s.Options.Audits.Step(t.Context(), row.Object); err != nil {
			t.Fatal(err)
		}
		b.Get("/console/operator/books").Want(t, http.StatusOK, "agree", "Accounts", "operator")
		b.Get("/console/operator/live/books").Want(t, http.StatusOK, "data-final", `data-announce="The books agree."`)
	})
}
