package operatorpages_test

import (
	"html"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"tollgate/internal/console/consoletest"
	"tollgate/internal/ledger"
	"tollgate/internal/store/id"
)

// TestRequestsOfAllAccounts checks the list of requests with each filter.
func TestRequestsOfAllAccounts(t *testing.T) {
	t.Parallel()
	consoletest.Each(t, func(t *testing.T, s *consoletest.Scene) {
		b := s.Operator()
		b.Get("/console/operator/requests").Want(t, http.StatusOK, "No requests yet")
		k, request := s.Key("ada", "ci"), id.New("req_")
		s.Books.Refused(ledger.Refusal{Request: request, Account: k.Account, Key: k.ID, Model: "sandbox-chat",
			Endpoint: "/v1/chat/completions", Received: time.Now(), Status: 429, Code: "rate_limit_exceeded"})
		s.CloseBooks()
		b.Get("/console/operator/requests?status=429").Want(t, http.StatusOK, "rate_limit_exceeded", request)
		b.Get("/console/operator/requests?status=500").Want(t, http.StatusOK, "Nothing matches")
		b.Get("/console/operator/requests?status=many").Want(t, http.StatusOK, "The status must be a number")
		for query, want := range map[string]bool{
			"account=" + k.Account: true, "account=" + s.Accounts["bob"].ID: false, "key=" + k.ID: true, "key=" + k.Hint: true, "key=none": false,
			"model=sandbox-chat": true, "model=gone": false, "code=rate_limit_exceeded": true, "code=other": false, "line=sandbox": false,
			"since=2026-01-01": true, "until=2026-01-01": false, "since=2026-01-01&until=2100-12-31": true, "min_duration_ms=0": true,
			"min_duration_ms=5": false, "min_duration_ms=-1": false, "since=yesterday": false,
		} {
			page := b.Get("/console/operator/requests?" + query)
			page.Want(t, http.StatusOK, `<option value="`+k.Account+`"`, "Clear filters")
			if got := strings.Contains(page.Body.String(), request); got != want {
				t.Errorf("%s: the list has the request: %v, want %v: %s", query, got, want, page.Body)
			}
		}
		b.Get("/console/operator/requests?key=none").Want(t, http.StatusOK, "No single key has this hint.")
		b.Get("/console/operator/requests?since=yesterday").Want(t, http.StatusOK, "A day such as 2026-05-31.")
		b.Get("/console/operator/requests").Want(t, http.StatusOK, `title="`+k.Account+`">ada</span>`)
		b.Get("/console/operator/requests/"+request).Want(t, http.StatusOK, "No line was called", k.Account)
		b.Get("/console/operator/requests/req_00000000000000000000000002").Want(t, http.StatusNotFound)
		b.Get("/console/operator/jobs").Want(t, http.StatusOK, "No jobs")
		b.Get("/console/operator/jobs?status=queued").Want(t, http.StatusOK, "Nothing matches")
		b.Get("/console/operator/jobs?status=lost").Want(t, http.StatusBadRequest)
	})
}

// TestRequestIsExplained checks that a request's page shows its account, its charge, a text for the
// customer without lines and providers' words, and a link to a filled-in credit form for a refund.
func TestRequestIsExplained(t *testing.T) {
	t.Parallel()
	consoletest.Each(t, func(t *testing.T, s *consoletest.Scene) {
		b, ada := s.Operator(), s.Accounts["ada"].ID
		done, broken := s.Request("ada", http.StatusOK, ""), s.Request("ada", http.StatusOK, "upstream_timeout")
		page := b.Get("/console/operator/requests/" + done)
		page.Want(t, http.StatusOK, `/console/operator/accounts/`+ada+`">ada</a>`, "secret cause", "To answer the customer",
			"about your request "+done+" of 2027-01-15 08:00:00 UTC (model swift-1):", "It was answered after 1.4 s.",
			"You were charged $0.000875, for 1,000 tokens of prompt (200 of them from the cache) and 310 of answer.")
		if _, reply, _ := strings.Cut(page.Body.String(), "To answer the customer"); strings.Contains(reply, "secret") {
			t.Errorf("the text for the customer names a line or a cause: %s", reply)
		}
		refund := html.UnescapeString(regexp.MustCompile(`href="([^"]+)"[^>]*>Give \$0.000875 back`).FindStringSubmatch(page.Body.String())[1])
		b.Get(strings.TrimSuffix(refund, "#f-usd")).Want(t, http.StatusOK, `value="0.000875"`, `value="refund of `+done+`"`)
		b.Get("/console/operator/requests/"+broken).Want(t, http.StatusOK, "broke off (upstream_timeout)",
			"You pay for the part of the stream that was sent before it broke off")

		s.Books.Refused(ledger.Refusal{Request: "req_00000000000000000000000001", Account: ada, Model: "swift-1",
			Endpoint: "/v1/chat/completions", Status: 402, Code: "insufficient_quota"})
		s.CloseBooks()
		b.Get("/console/operator/requests/req_00000000000000000000000001").Want(t, http.StatusOK,
			"It was refused with 402 insufficient_quota. Balance, daily budget or total limit do not allow", "a lower max_tokens",
			"You were not charged.")
	})
}

// TestDeletedRequestHasItsCharge checks that the charge of a request is shown after the log's row was
// deleted.
func TestDeletedRequestHasItsCharge(t *testing.T) {
	t.Parallel()
	consoletest.Each(t, func(t *testing.T, s *consoletest.Scene) {
		const request = "req_01m8a12xxmhyxm897xgps661nj"
		s.Exec(`INSERT INTO ledger_word (id, word) VALUES (1, $1), (2, 'swift-1')`, s.Accounts["ada"].ID)
		s.Exec(`INSERT INTO ledger_charge (account, model, seq, amount_nano, balance_nano, ended_ms, request, job)
			VALUES (1, 2, 7, 875000, 9000000000, 1800000000000, $1, $2)`, id.Pack("req_", request), []byte{})
		b := s.Operator()
		b.Get("/console/operator/requests/"+request).Want(t, http.StatusOK, "Only the charge is kept.", ">ada</a>", "$0.000875", "$9.00",
			"You were charged $0.000875 for it.", "Give $0.000875 back")
		b.Get("/console/operator/requests/req_01m8a12xxmhyxm897xgps661nk").Want(t, http.StatusNotFound, "and charges forever")
	})
}
