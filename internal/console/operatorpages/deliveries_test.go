package operatorpages_test

import (
	"net/http"
	"testing"

	"tollgate/internal/console/consoletest"
)

// TestDeliveries checks the list of all accounts' deliveries, the filters for state and account, and
// the button to resend.
func TestDeliveries(t *testing.T) {
	t.Parallel()
	consoletest.Each(t, func(t *testing.T, s *consoletest.Scene) {
		const path = "/console/operator/deliveries"
		b := s.Operator()
		b.Get(path).Want(t, http.StatusOK, "Nothing was delivered yet")
		id := s.Delivery("ada")
		s.Delivery("bob")
		s.Exec(`INSERT INTO webhook_delivery (id, account, event, type, url, receiver, body, state, created_ms)
			SELECT 'dlv_failed', account, 'evt_x', 'image.failed', 'https://failing.example/in', 'r', '', 2, created_ms FROM webhook_delivery
			WHERE id = $1`, id)
		s.Exec(`INSERT INTO webhook_delivery (id, account, event, type, url, receiver, body, state, created_ms)
			SELECT 'dlv_waits', account, 'evt_y', 'image.failed', 'https://waiting.example/in', 'r', '', 0, created_ms FROM webhook_delivery
			WHERE id = $1`, id)
		s.Exec(`INSERT INTO webhook_queue (delivery, account, receiver, due_ms, tries, fresh, lease, epoch, until_ms)
			VALUES ('dlv_waits', 'a', 'r', 4000000000000, 2, 0, '', '', 0)`)
		b.Get(path).Want(t, http.StatusOK, ">ada</a>", ">bob</a>", "failing.example", "waiting.example",
			"/console/operator/deliveries/"+id+"/resend")
		for query, want := range map[string][2]string{
			"?state=failed":                                 {"failing.example", "waiting.example"},
			"?state=pending":                                {"waiting.example", "failing.example"},
			"?state=delivered":                              {">bob</a>", "failing.example"},
			"?account=" + s.Accounts["bob"].ID:              {">bob</a>", ">ada</a>"},
			"?state=failed&account=" + s.Accounts["bob"].ID: {"Nothing matches these filters", "failing.example"},
		} {
			got := b.Get(path + query)
			got.Want(t, http.StatusOK, want[0])
			got.Without(t, want[1])
		}
		b.Get(path+"?state=lost").Want(t, http.StatusBadRequest, "is not a state")
		b.Post(path+"/"+id+"/resend").Want(t, http.StatusSeeOther)
	})
}
