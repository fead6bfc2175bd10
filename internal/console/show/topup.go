package show

import (
	"strings"

	"tollgate/internal/console/ui"
	"tollgate/internal/topup"
)

// topupTones are the tones of the states of top-ups.
var topupTones = map[topup.TopupState]ui.Tone{topup.Created: ui.Info, topup.Pending: ui.Info, topup.Paid: ui.OK,
	topup.PartlyRefunded: ui.Warn,
	topup.Refunded:       ui.Warn, topup.Disputed: ui.Bad, topup.Failed: ui.Bad}

// TopupLabel returns the name of a state of top-ups for people. Customers need not tell a top-up without
// a page of the provider from one with a page.
func TopupLabel(s topup.TopupState) ui.Words {
	switch s {
	case topup.Created, topup.Pending:
		return "waiting for the payment"
	case topup.PartlyRefunded:
		return "partly refunded"
	}
	return ui.Words(s)
}

// TopupBadge returns the state of a top-up.
func TopupBadge(t topup.Topup) ui.Badge {
	return ui.Badge{Tone: topupTones[t.State], Label: TopupLabel(t.State), Title: string(t.State)}
}

// WayToPay returns the title of the way in which a top-up is paid. info is its provider.
func WayToPay(t topup.Topup, info topup.ProviderInfo) ui.Words {
	if t.IsAutomatic() {
		return ui.Sayf("%s, automatic", info.Title)
	}
	for _, m := range info.Methods {
		if m.Name == t.Method {
			return ui.Data(m.Title)
		}
	}
	return ui.Data(info.Title)
}

// TopupFacts describes a top-up. info is its provider.
func TopupFacts(t topup.Topup, info topup.ProviderInfo) ui.Facts {
	facts := ui.Facts{{Name: "To pay", Value: ui.Text{Text: ui.Data(t.Currency.Text(t.Minor))}}}
	if t.IsPaid() {
		facts = ui.Facts{{Name: "Paid", Value: ui.Text{Text: ui.Data(t.Currency.Text(t.Total))}}}
		if tax := t.Total - t.Minor; tax > 0 {
			facts = append(facts, ui.Fact{Name: "Of it tax", Value: ui.Text{Text: ui.Data(t.Currency.Text(tax))}})
		}
	}
	facts = append(facts, ui.Fact{Name: "Credit", Value: ui.Money{Amount: t.Credit, InFull: true}})
	if t.Bonus > 0 {
		facts = append(facts, ui.Fact{Name: "Bonus in it", Value: ui.Text{Text: ui.Data(t.Bonus.String())}})
	}
	if t.Currency.Code != "usd" || t.Rate.String() != "1" {
		rate := "1 " + strings.ToUpper(t.Currency.Code) + " = " + t.Rate.String() + " USD"
		facts = append(facts, ui.Fact{Name: "Rate", Value: ui.Text{Text: ui.Data(rate)}})
	}
	facts = append(facts, ui.Fact{Name: "Way to pay", Value: ui.Text{Text: WayToPay(t, info)}},
		ui.Fact{Name: "Ordered", Value: ui.Moment{MS: t.CreatedMS}})
	switch {
	case t.IsPaid():
		facts = append(facts, ui.Fact{Name: "Paid on", Value: ui.Moment{MS: t.PaidMS}},
			ui.Fact{Name: "Payment", Value: ui.Ident{ID: t.Payment}})
	case t.IsOpen():
		facts = append(facts, ui.Fact{Name: "Payable until", Value: ui.Moment{MS: t.ExpiresMS}})
	}
	return append(facts, ui.Fact{Name: "Number", Value: ui.Ident{ID: t.ID}})
}

// TopupReversals lists the refunds and disputes of a top-up.
func TopupReversals(t topup.Topup, reversals []topup.Reversal) ui.DataTable {
	table := ui.DataTable{Caption: "Refunds and disputes", Columns: []ui.Column{{Title: "Time"}, {Title: "Kind"}, {Title: "State"},
		{Title: "Amount", Right: true}, {Title: "Credit taken back", Right: true, Exact: true}}}
	for _, c := range reversals {
		state := ui.Badge{Tone: ui.Warn, Label: "taken back"}
		switch {
		case c.Requested:
			state = ui.Badge{Tone: ui.Info, Label: "under way"}
		case !c.Active && c.Moves > 0:
			state = ui.Badge{Label: "given back"}
		case !c.Active:
			state = ui.Badge{Label: "nothing taken"}
		}
		table.Rows = append(table.Rows, ui.DataRow{Cells: []any{ui.Moment{MS: c.CreatedMS}, ui.Words(c.Kind), state,
			ui.Text{Text: ui.Data(t.Currency.Text(c.Minor))}, ui.Money{Amount: c.Taken}}})
	}
	return table
}
