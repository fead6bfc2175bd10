package show

import (
	"regexp"
	"slices"
	"strings"

	"tollgate/internal/console/ui"
	"tollgate/internal/topup"
)

// topupTones are the tones of the states of top-ups.
var topupTones = map[topup.TopupState]ui.Tone{topup.Created: ui.Info, topup.Pending: ui.Info, topup.Paid: ui.OK,
	topup.PartlyRefunded: ui.Warn,
	topup.Refunded:       ui.Warn, topup.Disputed: ui.Bad, topup.Failed: ui.Bad}

// TopupLabel describes a state of top-ups. Created and Pending have the same label, because customers need not
// know whether the provider has a page for the payment yet.
func TopupLabel(s topup.TopupState) ui.Words {
	switch s {
	case topup.Created, topup.Pending:
		return "waiting for the payment"
	case topup.PartlyRefunded:
		return "partly refunded"
	}
	return ui.Words(s)
}

// TopupBadge returns the badge of a top-up's state.
func TopupBadge(t topup.Topup) ui.Badge {
	return ui.Badge{Tone: topupTones[t.State], Label: TopupLabel(t.State), Title: string(t.State)}
}

// WayToPay returns the title of a top-up's payment method. info describes the top-up's provider.
func WayToPay(t topup.Topup, info topup.ProviderInfo) ui.Words {
	if t.IsAutomatic() {
		return ui.Sayf("%s, automatic", info.Title)
	}
	return PayTitle(info.MethodTitle(t.Method))
}

// payMethods are titles with a name in other languages.
var payMethods = []ui.Words{"Alipay", "WeChat Pay", "QQ Wallet", "Bank card", "JD Pay"}

// PayTitle returns the title of a way to pay for people.
func PayTitle(title string) ui.Words {
	if i := slices.Index(payMethods, ui.Words(title)); i >= 0 {
		return payMethods[i]
	}
	return ui.Data(title)
}

// problems are the problems of payments with a translation. Each %s is a value.
var problems = []ui.Words{
	"the customer's bank disputes the payment",
	"the bank of the card suspects fraud; a refund now may avoid a dispute and its fee",
	"the provider paid something back; record the refund here, so that its credit is taken back",
	"the provider paid back a part of the payment or all of it before the credit",
	"the payment and the top-up are not both in test mode, or not both in live mode",
	"the payment has no id",
	"a payment names a missing top-up here",
	"a message names a top-up of another provider; nothing was credited",
	"a message is about a payment in the other mode (test or live)",
	"Stripe sends messages of its other mode (test or live) to this address; they are ignored",
	"the payment %s was not credited, because the top-up was credited for %s",
	"the provider reports the state %s, but the top-up was credited",
	"paid was %s, the top-up is for %s",
	"the payment is in %s, the top-up in %s",
	"the payment was made by %s, the top-up is by %s",
	"the payment names the top-up %s",
	"the payment could not be started: %s",
	"the provider does not answer, so payments and refunds wait: %s",
	"no automatic top-up begins, because %s; accounts that have switched them on: %s",
}

// problemPatterns match problems. Their groups are the values.
var problemPatterns = func() (patterns []*regexp.Regexp) {
	for _, words := range problems {
		pattern := strings.ReplaceAll(regexp.QuoteMeta(string(words)), "%s", "(.*)")
		patterns = append(patterns, regexp.MustCompile("(?s)^"+pattern+"$"))
	}
	return patterns
}()

// ProblemText returns what a problem of a payment is. The database keeps it in English.
func ProblemText(p topup.Problem) ui.Words {
	for i, pattern := range problemPatterns {
		if groups := pattern.FindStringSubmatch(p.Detail); groups != nil {
			var values []any
			for _, value := range groups[1:] {
				values = append(values, value)
			}
			return ui.Sayf(problems[i], values...)
		}
	}
	return ui.Data(p.Detail)
}

// TopupFacts describes a top-up. info describes the top-up's provider.
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
