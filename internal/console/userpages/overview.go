package userpages

import (
	"slices"

	"tollgate/internal/account"
	"tollgate/internal/console/page"
	"tollgate/internal/console/part"
	"tollgate/internal/console/show"
	"tollgate/internal/ledger"
	"tollgate/internal/ledger/requestlog"
	"tollgate/internal/money"
	"tollgate/internal/store"
)

// overviewPage says whether all is well with an account, and what it spends.
type overviewPage struct {
	Stats  part.FigureRow
	Spent  *part.Chart // of 30 days; nil: nothing was
	Models part.Bars
	First  part.FirstSteps // what a new account does first; empty: it has begun
	Latest part.DataTable
}

const (
	shownModels = 9
	shownLatest = 10
)

func (c *console) overview(v *page.Visit) (page.Outgoing, error) {
	var shown overviewPage
	var notices []part.Notice
	if err := v.View(func(tx *store.Tx) error {
		a, err := account.GetTx(tx, v.Account())
		if err != nil {
			return err
		}
		if a.Money.Disabled {
			notices = append(notices, part.Notice{Tone: part.Bad, Title: "This account is disabled.",
				Text: "Its keys answer 401, and nothing is charged. Ask who runs this service."})
		}
		u, err := ledger.UsageTx(tx, v.Account())
		if err != nil {
			return err
		}
		latest, err := requestlog.ListTx(tx, requestlog.Selection{Account: v.Account(), Limit: shownLatest})
		if err != nil {
			return err
		}
		shown.Stats, shown.Models, shown.Latest = statsOf(a, u), modelBars(u.ByModel), requestsTable(latest.Receipts)
		if u.Total.Requests > 0 {
			spent, _, err := show.MonthTx(tx, v.Account())
			shown.Spent = &spent
			return err
		}
		keys, _, err := account.ListKeysTx(tx, v.Account(), "", 1)
		shown.First = firstSteps(a.Money.Balance, len(keys) > 0)
		return err
	}); err != nil {
		return nil, err
	}
	return page.Whole{Name: "overview", Title: "Overview", Main: shown, Notices: notices}, nil
}

// statsOf are the four figures of an account.
func statsOf(a account.Account, u ledger.Usage) part.FigureRow {
	available := part.Text{Text: "nothing is admitted until you top up", Muted: true}
	if a.Money.Balance-a.Money.Held > a.Money.Floor {
		available.Text = part.Credits(a.Money.Balance)
	}
	return part.FigureRow{
		{Label: "Balance", Value: part.Money{Amount: a.Money.Balance}, Note: available},
		{Label: "On hold", Value: part.Money{Amount: a.Money.Held}, Note: part.Text{Text: "for what runs now"}},
		{Label: "Today (UTC)", Value: part.Money{Amount: u.Today.Cost}, Note: part.Text{Text: part.Requests(u.Today.Requests)}},
		{Label: "Errors today", Value: part.Text{Text: part.Percent(u.Today.Failed, u.Today.Requests)},
			Note: part.Text{Text: part.Thousands(u.Today.Failed) + " of " + part.Requests(u.Today.Requests)}},
	}
}

// modelBars are the models that most was spent on, and the rest as one.
func modelBars(models []ledger.ModelTotals) part.Bars {
	models = slices.Clone(models)
	slices.SortStableFunc(models, func(a, b ledger.ModelTotals) int { return int(max(-1, min(1, b.Cost-a.Cost))) })
	var bars part.Bars
	var most, rest money.Amount
	for i, m := range models {
		most = max(most, m.Cost)
		if i >= shownModels {
			rest += m.Cost
			continue
		}
		bars = append(bars, part.Bar{Label: m.Model, Value: part.Money{Amount: m.Cost}, Percent: part.Share(m.Cost, most)})
	}
	if len(models) > shownModels {
		bars = append(bars, part.Bar{Label: "Other", Value: part.Money{Amount: rest}, Percent: min(100, part.Share(rest, most))})
	}
	return bars
}

// firstSteps lead a new account to its first request.
func firstSteps(balance money.Amount, hasKey bool) part.FirstSteps {
	return part.FirstSteps{
		{Done: balance > 0, Text: "Credit on the account: who runs this service adds it."},
		{Done: hasKey, Text: "A key, which your programs send.",
			Link: &part.Link{Href: page.Base + "/keys/new", Text: "Create a key", Button: true, Main: true}},
		{Text: "A request. The page of a new key has it ready to copy; it appears here within a second."},
	}
}
