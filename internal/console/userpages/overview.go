package userpages

import (
	"net/http"
	"net/url"
	"slices"

	"tollgate/internal/account"
	"tollgate/internal/console/page"
	"tollgate/internal/console/show"
	"tollgate/internal/console/ui"
	"tollgate/internal/ledger"
	"tollgate/internal/ledger/requestlog"
	"tollgate/internal/ledger/spending"
	"tollgate/internal/money"
	"tollgate/internal/store"
)

// overviewPage summarizes the state and the spending of an account.
type overviewPage struct {
	Stats    ui.FigureRow
	Spending *ui.Chart  // charges of 30 days, or nil if the account has no usage
	Missing  *ui.Notice // replaces Spending if the chart cannot be read
	More     ui.Tabs    // links to the usage of other periods and by other groups
	Latency  *ui.Chart  // of the newest requests, or nil if no request was answered
	Models   ui.Bars
	First    ui.FirstSteps // first steps of an account without requests; otherwise empty
	Failures ui.DataTable  // the newest failures among the newest requests
	Searched int64         // number of requests searched for Latency and Failures
	Latest   ui.DataTable
}

const (
	shownModels    = 9
	shownLatest    = 10
	shownFailures  = 5
	recentRequests = 100
)

func (c *console) overview(v *page.Visit) (page.Responder, error) {
	var content overviewPage
	var notices []ui.Notice
	var hasUsage bool
	if err := v.View(func(tx *store.Tx) error {
		a, err := account.GetTx(tx, v.Account())
		if err != nil {
			return err
		}
		notices = accountNotice(a)
		u, err := ledger.UsageTx(tx, v.Account())
		if err != nil {
			return err
		}
		list, err := requestlog.ListTx(tx, requestlog.Selection{Account: v.Account(), Limit: recentRequests})
		if err != nil {
			return err
		}
		latest := list.Receipts
		content.Stats, content.Models, content.Searched = statsOf(a, u), modelBars(u.ByModel), int64(len(latest))
		content.Latency = show.Latency(latest)
		content.Latest, content.Failures = requestsTable(latest[:min(len(latest), shownLatest)]), requestsTable(failures(latest))
		if hasUsage = u.Total.Requests > 0; hasUsage {
			return nil
		}
		keys, _, err := account.ListKeysTx(tx, v.Account(), "", 1)
		content.First = firstSteps(a.Money.Balance, len(keys) > 0)
		return err
	}); err != nil {
		return nil, err
	}
	if hasUsage {
		content.More = moreUsage()
		content.Missing = v.TryView("chart of charges", func(tx *store.Tx) error {
			spent, _, err := show.MonthTx(tx, v.Account(), spending.RequestSet{})
			if err == nil {
				content.Spending = &spent
			}
			return err
		})
	}
	return page.FullPage{Name: "overview", Title: "Overview", Main: content, Notices: notices}, nil
}

// accountNotice returns a notice if the account's requests are rejected.
func accountNotice(a account.Account) []ui.Notice {
	switch {
	case a.Money.Disabled:
		return []ui.Notice{{Tone: ui.Bad, Title: "This account is disabled.",
			Text: "Requests with its keys get a 401, and nothing is charged. Ask your operator."}}
	case a.Money.Balance <= a.Money.Floor:
		return []ui.Notice{{Tone: ui.Warn, Title: "The balance is used up.",
			Text: "New requests that cost something get a 402 until you have credit. Redeem a code, or ask your operator.",
			Link: &ui.Link{Href: page.Base + "/billing", Text: "To your balance"}}}
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

func moreUsage() ui.Tabs {
	tabs := ui.Tabs{Label: "Usage"}
	for _, link := range [][2]string{{"span=7", "7 days"}, {"span=90", "90 days"}, {"by=key", "By key"}, {"by=endpoint", "By endpoint"},
		{"by=day", "By day"}} {
		tabs.Items = append(tabs.Items, ui.Tab{Href: page.Base + "/usage?" + link[0], Text: link[1]})
	}
	return tabs
}

func statsOf(a account.Account, u ledger.Usage) ui.FigureRow {
	available := ui.Text{Text: "no new requests until you top up", Muted: true}
	if a.Money.Balance-a.Money.Held > a.Money.Floor {
		available.Text = ui.Credits(a.Money.Balance)
	}
	return ui.FigureRow{
		{Label: "Balance", Value: ui.Money{Amount: a.Money.Balance}, Note: available},
		{Label: "On hold", Value: ui.Money{Amount: a.Money.Held}, Note: ui.Text{Text: "for running requests"}},
		{Label: "Today (UTC)", Value: ui.Money{Amount: u.Today.Cost}, Note: ui.Text{Text: ui.Requests(u.Today.Requests)}},
		{Label: "Errors today", Value: ui.Text{Text: ui.Percent(u.Today.Failed, u.Today.Requests)},
			Note: ui.Text{Text: ui.Thousands(u.Today.Failed) + " of " + ui.Requests(u.Today.Requests) + " that ran"}},
	}
}

// modelBars returns the models with the highest charges, and one bar for the rest.
func modelBars(models []ledger.ModelTotals) ui.Bars {
	models = slices.Clone(models)
	slices.SortStableFunc(models, func(a, b ledger.ModelTotals) int { return int(max(-1, min(1, b.Cost-a.Cost))) })
	var bars ui.Bars
	var highest, rest money.Amount
	for i, m := range models {
		highest = max(highest, m.Cost)
		if i >= shownModels {
			rest += m.Cost
			continue
		}
		bars = append(bars, ui.Bar{Label: m.Model, Href: page.AddressOf("/requests", url.Values{"model": {m.Model}}),
			Value: ui.Money{Amount: m.Cost}, Percent: ui.Share(m.Cost, highest)})
	}
	if len(models) > shownModels {
		bars = append(bars, ui.Bar{Label: "Other", Value: ui.Money{Amount: rest}, Percent: min(100, ui.Share(rest, highest))})
	}
	return bars
}

// firstSteps returns the steps to the first request of a new account.
func firstSteps(balance money.Amount, hasKey bool) ui.FirstSteps {
	return ui.FirstSteps{
		{Done: balance > 0, Text: "Credit on the account. Your operator adds it."},
		{Done: hasKey, Text: "A key for your programs.",
			Link: &ui.Link{Href: page.Base + "/keys/new", Text: "Create a key", Button: true, Main: true}},
		{Text: "A request. The key's page has one to copy; it appears here within a second.",
			Link: &ui.Link{Href: page.Base + "/keys", Text: "To the keys", Button: true, Main: hasKey}},
	}
}
