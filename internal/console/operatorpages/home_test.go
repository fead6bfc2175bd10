package operatorpages_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"tollgate/internal/console"
	"tollgate/internal/console/consoletest"
	"tollgate/internal/ledger/spending"
	"tollgate/internal/money"
	"tollgate/internal/store"
)

// TestIsAllWell: what needs the operator stands on the first page, and nothing
// else does.
func TestIsAllWell(t *testing.T) {
	t.Parallel()
	consoletest.Each(t, func(t *testing.T, s *consoletest.Scene) {
		b := s.Operator()
		b.Get("/console/operator/lines") // which makes this node's report a fresh one
		b.Get("/console/operator").Want(t, http.StatusOK, "All is well", "1 of 1", "not run yet")
		broken := s.Browser()
		broken.Cookies = b.Cookies
		broken.Handler = s.Console(func(o *console.Options) { o.Writable = func() error { return errors.New("disk full") } })
		s.Update(func(tx *store.Tx) error {
			for _, text := range []string{
				`INSERT INTO webhook_receiver (id, account, failing, ready_ms) VALUES ('r', 'acct_x', 1, 0)`,
				`INSERT INTO webhook_delivery (id, account, event, type, url, receiver, body, state, created_ms)
					VALUES ('dlv_1', 'acct_x', 'evt_1', 'image.failed', 'https://hooks.example/in', 'r', '', 0, 1)`,
				`INSERT INTO webhook_queue (delivery, account, receiver, due_ms, tries, fresh, lease, epoch, until_ms)
					VALUES ('dlv_1', 'acct_x', 'r', 0, 2, 0, '', '', 0)`,
				`INSERT INTO operator_audit (id, began_ms, ended_ms, name, fault, findings)
					VALUES ('audit_1', 1, 2, 'ada', '', '{"ok":false,"checked":{},"differences":[{"what":"balance","recorded":"1","computed":"2"}]}')`,
			} {
				if _, err := tx.Exec(text); err != nil {
					return err
				}
			}
			return nil
		})
		broken.Get("/console/operator").Want(t, http.StatusOK, "3 things need you", "takes no writes", "disk full", "https://hooks.example/in",
			"The books do not agree", "1 difference")
		b.Get("/console/operator/find?q=evt_1").Want(t, http.StatusSeeOther, "acct_x?view=webhook")
		b.Get("/console/operator/books").Want(t, http.StatusOK, "Differences", "balance")
	})
}

// TestFirstPageChanges: what changes by itself has an address of its own, the charts
// of the month in it, and how the database does.
func TestFirstPageChanges(t *testing.T) {
	t.Parallel()
	consoletest.Each(t, func(t *testing.T, s *consoletest.Scene) {
		s.Spent("ada", 3, spending.Spent{Model: "swift-1", Sums: spending.Sums{Requests: 2, Failed: 1, Charged: 7 * money.USD}})
		b := s.Operator()
		b.Get("/console/operator").Want(t, http.StatusOK, `data-live="/console/operator/live" data-calm`, `id="charges"`,
			"$7.00", `id="requests"`)
		name := map[store.Dialect]string{store.SQLite: "SQLite", store.PostgreSQL: "PostgreSQL"}[s.DB.Dialect()]
		live := b.Get("/console/operator/live")
		live.Want(t, http.StatusOK, `id="now"`, name, "B, last commit in ", "$7.00")
		if strings.Contains(live.Body.String(), "<html") {
			t.Error("it is a whole page")
		}
	})
}
