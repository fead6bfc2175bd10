package show

import (
	"reflect"
	"testing"

	"tollgate/internal/console/part"
	"tollgate/internal/ledger/books"
	"tollgate/internal/ledger/movement"
)

// TestMovementsLeadToTheirSide checks that each kind has one word, and that a movement links to a
// page of the same section.
func TestMovementsLeadToTheirSide(t *testing.T) {
	t.Parallel()
	for _, side := range []string{"/console", "/console/operator"} {
		for _, c := range []struct {
			e    movement.Entry
			kind part.Badge
			what any
		}{
			{movement.Entry{Kind: books.EntryCredit, Note: "invoice 7"}, part.Badge{Tone: part.OK, Word: "credit"},
				part.Text{Text: "invoice 7"}},
			{movement.Entry{Kind: books.EntryTakeBack}, part.Badge{Tone: part.Warn, Word: "taken back"}, part.Text{}},
			{movement.Entry{Kind: "charge", Request: "req_1", Model: "swift-1"}, part.Badge{Word: "charge"}, part.Ident{ID: "req_1",
				Cut: true, Href: side + "/requests/req_1"}},
			{movement.Entry{Kind: "charge", Request: "req_1", Job: "job_1"}, part.Badge{Word: "charge"},
				part.Ident{ID: "job_1", Cut: true, Href: side + "/jobs/job_1"}},
			{movement.Entry{Kind: "charges"}, part.Badge{Word: "charges of a month"}, part.Text{}},
			{movement.Entry{Kind: "another"}, part.Badge{Word: "another"}, part.Text{}},
		} {
			table := Movements([]movement.Entry{c.e}, side)
			cells := table.Rows[0].Cells
			if len(cells) != len(table.Columns) || !reflect.DeepEqual([]any{cells[1], cells[4], cells[5]}, []any{c.kind, c.what,
				c.e.Model}) {
				t.Errorf("%+v is shown as %v", c.e, cells)
			}
		}
	}
}
