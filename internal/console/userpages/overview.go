package userpages

import (
	"net/http"
	"net/url"
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

// overviewPage summarizes the state and the spending of an account.
type overviewPage struct {
	Stats    part.FigureRow
	Spent    *part.Chart  // of 30 days, or nil if the account has no usage
	Missing  *part.Notice // replaces Spent if the chart cannot be read
	More     part.Tabs    // to the same by other days and parts
	Latency  *part.Chart  // of the answers among lookedAt requests, or nil
	Models   part.Bars
	First    part.FirstSteps // first steps of an account without requests; otherwise empty
	Failures part.DataTable  // the newest among lookedAt requests
	Among    int64           // how many those are
	Latest   part.DataTable
}

const (
	shownModels   = 9
	shownLatest   = 10
	shownFailures = 5
	lookedAt      = 100
)

func (c *console) overview(v *page.Visit) (page.Outgoing, error) {
	var shown overviewPage
	var notices []part.Notice
	var used bool
	if err := v.View(func(tx *store.Tx) error {
		a, err := account.GetTx(tx, v.Account())
		if err != nil {
			return err
		}
		notices = standing(a)
		u, err := ledger.UsageTx(tx, v.Account())
		if err != nil {
			return err
		}
		looked, err := requestlog.ListTx(tx, requestlog.Selection{Account: v.Account(), Limit: lookedAt})
		if err != nil {
			return err
		}
		latest := looked.Receipts
		shown.Stats, shown.Models, shown.Among = statsOf(a, u), modelBars(u.ByModel), int64(len(latest))
		shown.Latency = show.Latency(latest)
		shown.Latest, shown.Failures = requestsTable(latest[:min(len(latest), shownLatest)]), requestsTable(failures(latest))
		if used = u.Total.Requests > 0; used {
			return nil
		}
		keys, _, err := account.ListKeysTx(tx, v.Account(), "", 1)
		shown.First = firstSteps(a.Money.Balance, len(keys) > 0)
		return err
	}); err != nil {
		return nil, err
	}
	if used {
		shown.More = moreUsage()
		shown.Missing = v.Part("chart of charges", func(tx *store.Tx) error {
			spent, _, err := show.MonthTx(tx, v.Account(), nil)
			if err == nil {
				shown.Spent = &spent
			}
			return err
		})
	}
	return page.Whole{Name: "overview", Title: "Overview", Main: shown, Notices: notices}, nil
}

// standing returns a notice if the account's requests are rejected.
func standing(a account.Account) []part.Notice {
	switch {
	case a.Money.Disabled:
		return []part.Notice{{Tone: part.Bad, Title: "This account is disabled.",
			Text: "Requests with its keys get a 401, and nothing is charged. Ask your operator."}}
	case a.Money.Balance <= a.Money.Floor:
		return []part.Notice{{Tone: part.Warn, Title: "The balance is used up.",
			Text: "New requests that cost something get a 402 until you have credit. Redeem a code, or ask your operator.",
			Link: &part.Link{Href: page.Base + "/billing", Text: "To your balance"}}}
	}
	return nil
}

// failures returns the newest failed requests of a list.
func failures(list []requestlog.Receipt) (failed []requestlog.Receipt) {
	for _, r := range list {
		if (r.Status >= http.StatusBadRequest || r.Code != "") && len(failed) < shownFailures {
			failed = append(failed, r)
		}
	}
	return failed
}

// moreUsage returns links to usage by other days and parts.
func moreUsage() part.Tabs {
	tabs := part.Tabs{Label: "Usage"}
	for _, to := range [][2]string{{"span=7", "7 days"}, {"span=90", "90 days"}, {"by=key", "By key"}, {"by=endpoint", "By endpoint"},
		{"by=day", "By day"}} {
		tabs.Items = append(tabs.Items, part.Tab{Href: page.Base + "/usage?" + to[0], Text: to[1]})
	}
	return tabs
}

// statsOf returns the four figures of an account.
func statsOf(a account.Account, u ledger.Usage) part.FigureRow {
	available := part.Text{Text: "no new requests until you top up", Muted: true}
	if a.Money.Balance-a.Money.Held > a.Money.Floor {
		available.Text = part.Credits(a.Money.Balance)
	}
	return part.FigureRow{
		{Label: "Balance", Value: part.Money{Amount: a.Money.Balance}, Note: available},
		{Label: "On hold", Value: part.Money{Amount: a.Money.Held}, Note: part.Text{Text: "for running requests"}},
		{Label: "Today (UTC)", Value: part.Money{Amount: u.Today.Cost}, Note: part.Text{Text: part.Requests(u.Today.Requests)}},
		{Label: "Errors today", Value: part.Text{Text: part.Percent(u.Today.Failed, u.Today.Requests)},
			Note: part.Text{Text: part.Thousands(u.Today.Failed) + " of " + part.Requests(u.Today.Requests) + " that ran"}},
	}
}

// modelBars returns the models with the highest charges, and one bar for the rest.
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
		bars = append(bars, part.Bar{Label: m.Model, Href: page.AddressOf("/requests", url.Values{"model": {m.Model}}),
			Value: part.Money{Amount: m.Cost}, Percent: part.Share(m.Cost, most)})
	}
	if len(models) > shownModels {
		bars = append(bars, part.Bar{Label: "Other", Value: part.Money{Amount: rest}, Percent: min(100, part.Share(rest, most))})
	}
	return bars
}

// firstSteps lead a new account to its first request.
func firstSteps(balance money.Amount, hasKey bool) part.FirstSteps {
	return part.FirstSteps{
		{Done: balance > 0, Text: "Credit on the account. Your operator adds it."},
		{Done: hasKey, Text: "A key for your programs.",
			Link: &part.Link{Href: page.Base + "/keys/new", Text: "Create a key", Button: true, Main: true}},
		{Text: "A request. The key's page has one to copy; it appears here within a second.",
			Link: &part.Link{Href: page.Base + "/keys", Text: "To the keys", Button: true, Main: hasKey}},
	}
}
