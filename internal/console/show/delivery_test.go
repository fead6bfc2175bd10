package show

import (
	"reflect"
	"testing"

	"tollgate/internal/console/ui"
	"tollgate/internal/webhook"
)

// TestDeliveries checks the state and the last answer in the table of deliveries.
func TestDeliveries(t *testing.T) {
	t.Parallel()
	list := func(attempts ...webhook.DeliveryAttempt) []webhook.DeliveryAttempt { return attempts }
	for _, c := range []struct {
		d     webhook.Delivery
		state ui.Badge
		last  ui.Text
	}{
		{webhook.Delivery{State: "pending"}, ui.Badge{Tone: ui.Info, Label: "waiting"}, ui.Text{Text: "not sent yet", Muted: true}},
		{webhook.Delivery{State: "pending", Attempts: list(webhook.DeliveryAttempt{Error: "connection refused", TookMS: 3})},
			ui.Badge{Tone: ui.Info, Label: "waiting"}, ui.Text{Text: "connection refused"}},
		{webhook.Delivery{State: "failed", Attempts: list(webhook.DeliveryAttempt{Status: 204},
			webhook.DeliveryAttempt{Status: 410, Error: "is gone", TookMS: 7})},
			ui.Badge{Tone: ui.Bad, Label: "failed"}, ui.Text{Text: "410 in 7 ms: is gone (attempt 2)"}},
		{webhook.Delivery{State: "failed", Attempts: list(webhook.DeliveryAttempt{Status: 500, Error: "the receiver answered 500", TookMS: 7})},
			ui.Badge{Tone: ui.Bad, Label: "failed"}, ui.Text{Text: "500 in 7 ms"}},
		{webhook.Delivery{State: "failed", Attempts: list(webhook.DeliveryAttempt{Status: 301, TookMS: 7,
			Error: "the receiver answered 301: redirects are not followed"})},
			ui.Badge{Tone: ui.Bad, Label: "failed"}, ui.Text{Text: "301 in 7 ms: redirects are not followed"}},
		{webhook.Delivery{State: "delivered", Attempts: list(webhook.DeliveryAttempt{Status: 204, TookMS: 1400})},
			ui.Badge{Tone: ui.OK, Label: "delivered"}, ui.Text{Text: "204 in 1.4 s"}},
	} {
		table := Deliveries([]webhook.Delivery{c.d})
		cells := table.Rows[0].Cells
		cells[3] = inEnglish(cells[3])
		if len(cells) != len(table.Columns) || !reflect.DeepEqual(cells[2:4], []any{c.state, c.last}) {
			t.Errorf("%+v has the cells %v, want the state %v and the answer %v", c.d, cells, c.state, c.last)
		}
	}
}

// inEnglish returns a component with its text in English, so that a test can compare it with a constant.
func inEnglish(component any) any {
	if t, ok := component.(ui.Text); ok {
		t.Text = ui.Words(t.Text.String())
		return t
	}
	return component
}
