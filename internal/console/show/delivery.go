package show

import (
	"fmt"
	"strings"

	"tollgate/internal/console/page"
	"tollgate/internal/console/ui"
	"tollgate/internal/fault"
	"tollgate/internal/webhook"
)

// Deliveries returns a table of deliveries.
func Deliveries(list []webhook.Delivery) ui.DataTable {
	t := ui.DataTable{Caption: "Deliveries", Columns: []ui.Column{
		{Title: "Time"}, {Title: "Event"}, {Title: "State"}, {Title: "Answer"}, {Title: "Event id", Fold: true}}}
	for _, d := range list {
		t.Rows = append(t.Rows, ui.DataRow{Cells: []any{ui.Moment{MS: d.CreatedMS}, d.Type, DeliveryState(d), lastAnswer(d),
			ui.Ident{ID: d.Event, Cut: true}}})
	}
	return t
}

// DeliveryTabs returns the tabs for the states of deliveries on the page at path. It returns an error if
// the visit's address has an unknown state.
func DeliveryTabs(v *page.Visit, path string) (ui.Tabs, error) {
	tabs := v.Tabs(path, "State", "state", []ui.Option{{Label: "All"}, {Value: "failed", Label: "Failed"},
		{Value: "pending", Label: "Waiting"}, {Value: "delivered", Label: "Delivered"}})
	if !tabs.HasCurrent() {
		return tabs, fault.New(fault.InvalidRequest, "%q is not a state of deliveries.", fault.Excerpt(v.Query("state")))
	}
	return tabs, nil
}

// DeliveryState returns the badge of a delivery's state.
func DeliveryState(d webhook.Delivery) ui.Badge {
	switch d.State {
	case "delivered":
		return ui.Badge{Tone: ui.OK, Label: "delivered"}
	case "failed":
		return ui.Badge{Tone: ui.Bad, Label: "failed"}
	}
	return ui.Badge{Tone: ui.Info, Label: "waiting"}
}

// AttemptError returns the error of a delivery attempt, for translation.
func AttemptError(a webhook.DeliveryAttempt) ui.Words {
	cause, ok := strings.CutPrefix(a.Error, fmt.Sprintf("the receiver answered %d", a.Status))
	switch {
	case !ok:
		return ui.Data(a.Error)
	case cause == "":
		return ui.Sayf("the receiver answered %s", a.Status)
	}
	return ui.Sayf("the receiver answered %s%s", a.Status, cause)
}

func lastAnswer(d webhook.Delivery) ui.Text {
	if len(d.Attempts) == 0 {
		return ui.Text{Text: "not sent yet", Muted: true}
	}
	n := len(d.Attempts)
	answer := attemptAnswer(d.Attempts[n-1])
	if n > 1 {
		answer = ui.Sayf("%s (attempt %s)", answer, n)
	}
	return ui.Text{Text: answer}
}

func attemptAnswer(a webhook.DeliveryAttempt) ui.Words {
	if a.Status == 0 {
		return ui.Data(a.Error)
	}
	answer := ui.Sayf("%s in %s", a.Status, ui.FormatDuration(a.TookMS))
	// answer already has the status, so leave it out of the cause.
	cause := strings.TrimPrefix(a.Error, fmt.Sprintf("the receiver answered %d", a.Status))
	if cause = strings.TrimPrefix(cause, ": "); cause != "" {
		return ui.Sayf("%s: %s", answer, cause)
	}
	return answer
}
