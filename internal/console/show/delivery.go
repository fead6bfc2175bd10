package show

import (
	"fmt"
	"strings"

	"tollgate/internal/console/part"
	"tollgate/internal/webhook"
)

// Deliveries lists deliveries.
func Deliveries(list []webhook.Delivery) part.DataTable {
	t := part.DataTable{Caption: "Deliveries of 30 days", Columns: []part.Column{
		{Title: "Time"}, {Title: "Event"}, {Title: "State"}, {Title: "Answer"}, {Title: "Attempts", Right: true, Fold: true},
		{Title: "Event id", Fold: true}}}
	for _, d := range list {
		t.Rows = append(t.Rows, part.DataRow{Cells: []any{part.Moment{MS: d.CreatedMS}, d.Type, DeliveryState(d), lastAnswer(d),
			part.Count{N: int64(len(d.Attempts))}, part.Ident{ID: d.Event, Cut: true}}})
	}
	return t
}

// DeliveryState returns the badge of a delivery's state.
func DeliveryState(d webhook.Delivery) part.Badge {
	switch d.State {
	case "delivered":
		return part.Badge{Tone: part.OK, Word: "delivered"}
	case "failed":
		return part.Badge{Tone: part.Bad, Word: "failed"}
	}
	return part.Badge{Tone: part.Info, Word: "waiting"}
}

// lastAnswer returns the result of the last attempt.
func lastAnswer(d webhook.Delivery) part.Text {
	if len(d.Attempts) == 0 {
		return part.Text{Text: "not sent yet", Muted: true}
	}
	last := d.Attempts[len(d.Attempts)-1]
	switch {
	case last.Status == 0:
		return part.Text{Text: last.Error}
	case last.Error == "":
		return part.Text{Text: fmt.Sprintf("%d in %s", last.Status, part.Span(last.TookMS))}
	}
	text := fmt.Sprintf("%d in %s", last.Status, part.Span(last.TookMS))
	// The status stands there already.
	cause := strings.TrimPrefix(last.Error, fmt.Sprintf("the receiver answered %d", last.Status))
	if cause = strings.TrimPrefix(cause, ": "); cause != "" {
		text += ": " + cause
	}
	return part.Text{Text: text}
}
