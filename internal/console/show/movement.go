package show

import (
	"strings"

	"tollgate/internal/account"
	"tollgate/internal/console/ui"
	"tollgate/internal/ledger/books"
	"tollgate/internal/ledger/movement"
)

// movementBadges are the badges of the kinds of movements.
var movementBadges = map[string]ui.Badge{
	books.EntryCredit:   {Tone: ui.OK, Label: "credit"},
	books.EntryTakeBack: {Tone: ui.Warn, Label: "taken back"},
	books.EntryTrial:    {Tone: ui.OK, Label: "trial credit"},
	"charge":            {Label: "charge"},
}

// topupNotes are the notes of top-ups in the ledger, up to the top-up's id, with their words for people.
var topupNotes = []struct {
	begin string
	words ui.Words
}{{"top-up ", "top-up"}, {"refund of ", "refund"}, {"dispute of ", "dispute"}}

// Note returns the note of a credit in words for people. It turns the ledger's note of a redeemed code, `code
// ID`, into "redeemed ID". It leaves out the id in the note of a top-up, because the reference names the
// payment.
func Note(note string) ui.Words {
	if id, ok := strings.CutPrefix(note, "code "); ok && strings.HasPrefix(id, "code_") {
		return ui.Sayf("redeemed %s", id)
	}
	if note == account.TrialNote {
		return "trial credit"
	}
	for _, n := range topupNotes {
		if id, ok := strings.CutPrefix(note, n.begin); ok && strings.HasPrefix(id, "topup_") {
			return n.words
		}
	}
	return ui.Data(note)
}

// Reason returns the note and the reference of a credit for people.
func Reason(e movement.Entry) ui.Words {
	note := Note(e.Note)
	switch {
	case e.Reference == "":
		return note
	case note == "":
		return ui.Data(e.Reference)
	}
	return ui.Sayf("%s · %s", note, e.Reference)
}

// Movements lists the movements of an account's money. A charge links to its job or request below section, the
// address of a section of the console.
func Movements(list []movement.Entry, section string) ui.DataTable {
	t := ui.DataTable{Caption: "Movements of money", Columns: []ui.Column{
		{Title: "Time"}, {Title: "Kind"}, {Title: "Amount", Right: true, Exact: true}, {Title: "Balance", Right: true, Exact: true},
		{Title: "For"}, {Title: "Model"}}}
	for _, e := range list {
		kind, ok := movementBadges[e.Kind]
		if !ok {
			kind = ui.Badge{Label: ui.Words(e.Kind)}
		}
		var reason any = ui.Text{Text: Reason(e)}
		switch {
		case e.Job != "":
			reason = ui.Ident{ID: e.Job, Cut: true, Href: section + "/jobs/" + e.Job}
		case e.Request != "":
			reason = ui.Ident{ID: e.Request, Cut: true, Href: section + "/requests/" + e.Request}
		}
		t.Rows = append(t.Rows, ui.DataRow{Cells: []any{ui.Moment{MS: e.CreatedMS}, kind, ui.Money{Amount: e.Amount},
			ui.Money{Amount: e.Balance}, reason, e.Model}})
	}
	return t
}
