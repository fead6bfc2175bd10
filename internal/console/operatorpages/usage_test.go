package operatorpages_test

import (
	"net/http"
	"strings"
	"testing"

	"tollgate/internal/console/consoletest"
	"tollgate/internal/ledger/spending"
	"tollgate/internal/money"
)

// TestUsage: what is earned, over all accounts, with whom, on which line.
func TestUsage(t *testing.T) {
	t.Parallel()
	consoletest.Each(t, func(t *testing.T, s *consoletest.Scene) {
		o := s.Operator()
		o.Get("/console/operator/usage").Want(t, http.StatusOK, "No requests in these days")
		o.Get("/console/operator").Want(t, http.StatusOK, "Is all well")
		key := s.Key("ada", "backend")
		s.Spent("ada", 1, spending.Spent{Key: key.ID, Model: "swift-1", Line: "main", Endpoint: "/v1/responses",
			Sums: spending.Sums{Requests: 4, Failed: 1, Charged: 4 * money.USD, LineCost: 3 * money.USD, LineCosts: 4}})
		s.Spent("bob", 2, spending.Spent{Model: "swift-1", Line: "loss", Sums: spending.Sums{Requests: 1, Charged: money.USD,
			LineCost: 3 * money.USD, LineCosts: 1}})
		o.Get("/console/operator/usage").Want(t, http.StatusOK, ">ada<", ">bob<", "$5.00", "$6.00", "-$1.00", "known of 5 requests")
		o.Get("/console/operator/usage?by=line").Want(t, http.StatusOK, "main", "loss")
		o.Get("/console/operator/usage?by=key").Want(t, http.StatusOK, ">backend<", ">none<")
		one := o.Get("/console/operator/usage?account=" + s.Accounts["bob"].ID + "&by=model")
		one.Want(t, http.StatusOK, "swift-1", "-$2.00")
		if strings.Contains(one.Body.String(), "$4.00") {
			t.Error("a filter lets another account's charges through")
		}
		o.Get("/console/operator/usage/table?by=line").Want(t, http.StatusOK, "line,requests,",
			"\nloss,1,0,0,0,0,0,0,0,0,1,3,1,-2\n")
	})
}
