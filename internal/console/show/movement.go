package show

import (
	"strings"

	"tollgate/internal/console/part"
	"tollgate/internal/ledger/books"
	"tollgate/internal/ledger/movement"
)

// movementWords are the badges of the kinds of movements.
var movementWords = map[string]part.Badge{
	books.EntryCredit:   {Tone: part.OK, Word: "credit"},
	books.EntryTakeBack: {Tone: part.Warn, Word: "taken back"},
	"charge":            {Word: "charge"},
	"charges":           {Word: "charges of a month"},
}

// Note returns the note of a credit for people. The books keep the note of a redeemed code as the
// word code and the code's id; Note shows only the id after "redeemed".
func Note(note string) string {
	if id, ok := strings.CutPrefix(note, "code "); ok && strings.HasPrefix(id, "code_") {
		return "redeemed " + id
	}
	return note
}

// Movements lists the movements of an account's money. Each links to the page of its request or job
// below side, the address of a section.
func Movements(list []movement.Entry, side string) part.DataTable {
	t := part.DataTable{Caption: "Movements of money", Columns: []part.Column{
		{Title: "Time"}, {Title: "Kind"}, {Title: "Amount", Right: true}, {Title: "Balance", Right: true}, {Title: "For"},
		{Title: "Model"}}}
	for _, e := range list {
		kind, known := movementWords[e.Kind]
		if !known {
			kind = part.Badge{Word: e.Kind}
		}
		var what any = part.Text{Text: Note(e.Note)}
		switch {
		case e.Job != "":
			what = part.Ident{ID: e.Job, Cut: true, Href: side + "/jobs/" + e.Job}
		case e.Request != "":
			what = part.Ident{ID: e.Request, Cut: true, Href: side + "/requests/" + e.Request}
		}
		t.Rows = append(t.Rows, part.DataRow{Cells: []any{part.Moment{MS: e.CreatedMS}, kind, part.Money{Amount: e.Amount},
			part.Money{Amount: e.Balance}, what, e.Model}})
	}
	return t
}
