package userpages

import (
	"net/http"

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
	First    ui.FirstSteps   // first steps of an account without requests; otherwise empty
	Play     *playgroundPage // nil if the account has requests or cannot use the playground
	Spending *ui.Chart       // charges of 30 days, or nil if the account has no usage
	Missing  *ui.Notice      // replaces Spending if the charges cannot be read
	Failures ui.DataTable    // the newest failures among the newest requests
	Searched int64           // number of requests searched for Failures
	Latest   ui.DataTable
}

const (
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
		notices = c.accountNotice(a)
		u, err := ledger.UsageTx(tx, v.Account())
		if err != nil {
			return err
		}
		list, err := requestlog.ListTx(tx, requestlog.Selection{Account: v.Account(), Limit: recentRequests})
		if err != nil {
			return err
		}
		latest := list.Receipts
		content.Stats, content.Searched = statsOf(a, u), int64(len(latest))
		groups := show.GroupRepeats(latest, false)
		content.Latest, content.Failures = requestsTable(groups[:min(len(groups), shownLatest)]), requestsTable(failures(groups))
		if hasUsage = u.Total.Requests > 0; hasUsage {
			return nil
		}
		keys, _, err := account.ListKeysTx(tx, v.Account(), "", 1)
		content.First = c.firstSteps(a.Money.Balance, len(keys) > 0)
		return err
	}); err != nil {
		return nil, err
	}
	if !hasUsage && v.Session.User.Role != "" && v.OperatorsHere() {
		// The account came with the invitation of an operator. Operators need no balance.
		notices = []ui.Notice{{Tone: ui.Info, Title: "You are an operator of this service.",
			Text: "This page is for customers. Your sign-in has an account too, which is empty.",
			Link: &ui.Link{Href: page.Base + "/operator", Text: "To the operator's pages"}}}
	}
	if !hasUsage {
		play, err := c.playgroundOf(v)
		if err != nil {
			return nil, err
		}
		if play.Empty == nil {
			content.Play = &play
		}
	} else {
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

// accountNotice returns a notice if the gateway rejects the account's requests.
func (c *console) accountNotice(a account.Account) []ui.Notice {
	switch {
	case a.Money.Disabled:
		return []ui.Notice{{Tone: ui.Bad, Title: "This account is disabled.",
			Text: ui.Sayf("Requests with its keys get a 401, and nothing is charged. %s", c.Brand.AskFor("why")), Link: c.Brand.ContactLink()}}
	case a.Money.Balance <= a.Money.Floor:
		return []ui.Notice{{Tone: ui.Warn, Title: "The balance is used up.",
			Text: ui.Sayf("New requests that cost something get a 402 until you have credit. %s", c.wayToCredit()),
			Link: &ui.Link{Href: page.Base + "/billing", Text: "To your balance"}}}
	}
	return nil
}

// wayToCredit tells a customer without credit what to do.
func (c *console) wayToCredit() ui.Words {
	if c.Topups != nil {
		return ui.Sayf("Add credit, or redeem a code. %s", c.Brand.AskFor("if you cannot pay"))
	}
	return ui.Sayf("Redeem a code. %s", c.Brand.AskFor("for one"))
}

// failures returns the newest failed requests of a list.
func failures(list []show.Repeats) (failed []show.Repeats) {
	for _, r := range list {
		if (r.Receipt.Status >= http.StatusBadRequest || r.Code != "") && len(failed) < shownFailures {
			failed = append(failed, r)
		}
	}
	return failed
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
		{Label: "Errors today", Value: ui.Text{Text: ui.Data(ui.Percent(u.Today.Failed, u.Today.Requests))},
			Note: ui.Text{Text: ui.Sayf("%s of %s that ran", ui.Thousands(u.Today.Failed), ui.Requests(u.Today.Requests))}},
	}
}

// firstSteps returns the steps of a new account up to its first request.
func (c *console) firstSteps(balance money.Amount, hasKey bool) ui.FirstSteps {
	credit := ui.FirstStep{Done: balance > 0, Text: ui.Sayf("Credit on the account. %s", c.Brand.AskFor("for it"))}
	if c.Topups != nil {
		credit.Text, credit.Link = "Credit on the account.", &ui.Link{Href: page.Base + "/billing/top-ups/new", Text: "Add credit", Button: true}
	}
	return ui.FirstSteps{credit,
		{Done: hasKey, Text: "A key for your programs.",
			Link: &ui.Link{Href: page.Base + "/keys/new", Text: "Create a key", Button: true, Main: true}},
		{Text: "A request. The key's page has one to copy; it appears here within a second.",
			Link: &ui.Link{Href: page.Base + "/keys", Text: "To the keys", Button: true, Main: hasKey}},
	}
}
