package operatorpages_test

import (
	"net/http"
	"testing"

	"tollgate/internal/console/consoletest"
	"tollgate/internal/ledger"
)

func TestRequestsOfAllAccounts(t *testing.T) {
	t.Parallel()
	consoletest.Each(t, func(t *testing.T, s *consoletest.Scene) {
		b := s.Operator()
		b.Get("/console/operator/requests").Want(t, http.StatusOK, "No requests yet")
		k := s.Key("ada", "ci")
		s.Books.Refused(ledger.Refusal{Request: "req_00000000000000000000000001", Account: k.Account, Key: k.ID, Model: "sandbox-chat",
			Endpoint: "/v1/chat/completions", Status: 429, Code: "rate_limit_exceeded"})
		s.CloseBooks()
		b.Get("/console/operator/requests?status=429").Want(t, http.StatusOK, "rate_limit_exceeded", "req_00000000000000000000000001")
		b.Get("/console/operator/requests?status=500").Want(t, http.StatusOK, "Nothing matches")
		b.Get("/console/operator/requests?status=many").Want(t, http.StatusOK, "A status is a number")
		b.Get("/console/operator/requests/req_00000000000000000000000001").Want(t, http.StatusOK, "No line was asked", k.Account)
		b.Get("/console/operator/requests/req_00000000000000000000000002").Want(t, http.StatusNotFound)
		b.Get("/console/operator/jobs").Want(t, http.StatusOK, "No jobs")
		b.Get("/console/operator/jobs?status=queued").Want(t, http.StatusOK, "Nothing matches")
		b.Get("/console/operator/jobs?status=lost").Want(t, http.StatusBadRequest)
	})
}
