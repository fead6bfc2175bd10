package show

import (
	"reflect"
	"testing"

	"tollgate/internal/console/ui"
	"tollgate/internal/ledger/books"
	"tollgate/internal/ledger/movement"
)

// TestMovementsLinkToTheirSection checks the badge of each kind, and that a charge links to a page of
// the same section.
func TestMovementsLinkToTheirSection(t *testing.T) {
	t.Parallel()
	for _, section := range []string{"/console", "/console/operator"} {
		for _, c := range []struct {
			e      movement.Entry
			kind   ui.Badge
			reason any
		}{
			{movement.Entry{Kind: books.EntryCredit, Note: "invoice 7"}, ui.Badge{Tone: ui.OK, Label: "credit"},
				ui.Text{Text: "invoice 7"}},
			{movement.Entry{Kind: books.EntryCredit, Note: "invoice 7", Reference: "pi_1"}, ui.Badge{Tone: ui.OK, Label: "credit"},
				ui.Text{Text: "invoice 7 · pi_1"}},
			{movement.Entry{Kind: books.EntryCredit, Reference: "pi_1"}, ui.Badge{Tone: ui.OK, Label: "credit"}, ui.Text{Text: "pi_1"}},
			{movement.Entry{Kind: books.EntryTakeBack}, ui.Badge{Tone: ui.Warn, Label: "taken back"}, ui.Text{}},
			{movement.Entry{Kind: "charge", Request: "req_1", Model: "swift-1"}, ui.Badge{Label: "charge"}, ui.Ident{ID: "req_1",
				Cut: true, Href: section + "/requests/req_1"}},
			{movement.Entry{Kind: "charge", Request: "req_1", Job: "job_1"}, ui.Badge{Label: "charge"},
				ui.Ident{ID: "job_1", Cut: true, Href: section + "/jobs/job_1"}},
			{movement.Entry{Kind: "another"}, ui.Badge{Label: "another"}, ui.Text{}},
		} {
			table := Movements([]movement.Entry{c.e}, section)
			cells := table.Rows[0].Cells
			cells[4] = inEnglish(cells[4])
			if len(cells) != len(table.Columns) || !reflect.DeepEqual([]any{cells[1], cells[4], cells[5]}, []any{c.kind, c.reason,
				c.e.Model}) {
				t.Errorf("%+v has the cells %v, want the kind %v and the reason %v", c.e, cells, c.kind, c.reason)
			}
		}
	}
}
