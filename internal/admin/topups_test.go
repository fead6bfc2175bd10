package admin

import (
	"testing"

	"tollgate/internal/fault"
)

// TestTopupsWithoutPayments checks the routes of top-ups in a service that takes no payments.
func TestTopupsWithoutPayments(t *testing.T) {
	t.Parallel()
	eachDB(t, func(t *testing.T, c *caller) {
		if list, _ := c.ok("GET", "/top-ups?state=paid", "").list(); len(list) != 0 {
			t.Errorf("the top-ups are %v, want none", list)
		}
		if got := c.do("GET", "/top-ups?format=csv", ""); got.status != 200 {
			t.Errorf("the CSV file of no top-ups: status %d, want 200", got.status)
		}
		if list, _ := c.ok("GET", "/top-ups/problems", "").list(); len(list) != 0 {
			t.Errorf("the problems are %v, want none", list)
		}
		c.do("GET", "/top-ups?state=lost", "").wantFault(fault.InvalidRequest, "state")
		c.do("GET", "/top-ups?format=xml", "").wantFault(fault.InvalidRequest, "format")
		c.do("GET", "/top-ups/topup_none", "").wantFault(fault.NotFound, "")
		c.do("GET", "/top-ups/reconciliation", "").wantFault(fault.InvalidRequest, "")
		c.do("POST", "/top-ups/topup_none/check", "").wantFault(fault.InvalidRequest, "")
		c.do("POST", "/top-ups/topup_none/refunds", `{"amount":"1","reason":"r"}`).wantFault(fault.InvalidRequest, "")
	})
}
