package operatorpages

import (
	"net/url"
	"strings"

	"tollgate/internal/account"
	"tollgate/internal/console/page"
	"tollgate/internal/console/part"
	"tollgate/internal/console/show"
	"tollgate/internal/store"
	"tollgate/internal/webhook"
)

// findPage is what the box found where that is not one thing alone.
type findPage struct {
	Filters  part.Filters
	Asked    string
	Accounts part.DataTable
	Keys     part.DataTable
}

// foundMost is how many of a kind are listed.
const foundMost = 20

// find leads from an account, a key's hint, a request, a job or an event to its
// page.
func (c *console) find(v *page.Visit) (page.Outgoing, error) {
	q := strings.TrimSpace(v.Query("q"))
	shown := findPage{Filters: searchFilter("/operator/find", q), Asked: q}
	shown.Filters.Fields[0].Label = "Account, email, key hint, or any id"
	if q == "" {
		return page.Whole{Name: "find", Title: "Find", Main: shown}, nil
	}
	prefix, _, _ := strings.Cut(q, "_")
	id := url.PathEscape(q)
	switch prefix + "_" {
	case "req_":
		return page.Redirect(page.Base + "/operator/requests/" + id), nil
	case "job_":
		return page.Redirect(page.Base + "/operator/jobs/" + id), nil
	}
	var target string
	if err := v.View(func(tx *store.Tx) (err error) {
		target, err = shown.lookTx(tx, q)
		return err
	}); err != nil {
		return nil, err
	}
	if target != "" {
		return page.Redirect(page.Base + target), nil
	}
	return page.Whole{Name: "find", Title: "Find", Main: shown}, nil
}

// lookTx looks for a text, and returns the page of what was found if that is one
// thing.
func (p *findPage) lookTx(tx *store.Tx, q string) (target string, err error) {
	accounts, keys := []account.Account(nil), []account.Key(nil)
	switch prefix, _, _ := strings.Cut(q, "_"); prefix + "_" {
	case "acct_":
		accounts, err = oneAccountTx(tx, q)
	case "key_":
		var k account.Key
		if k, err = account.GetKeyTx(tx, q); err == nil {
			keys = append(keys, k)
		} else if isNotFound(err) {
			err = nil
		}
	case "user_":
		var u account.User
		if u, err = account.GetUserTx(tx, q); err == nil {
			return "/operator/accounts/" + u.Account + "?view=users", nil
		} else if isNotFound(err) {
			err = nil
		}
	case "evt_":
		var owner string
		if owner, err = webhook.AccountOfEventTx(tx, q); err == nil && owner != "" {
			return "/operator/accounts/" + owner + "?view=webhook", nil
		}
	default:
		if keys, _, err = account.KeysByHintTx(tx, q, "", foundMost); err == nil && len(keys) == 0 {
			accounts, _, err = account.SearchTx(tx, q, "", foundMost)
		}
	}
	switch {
	case err != nil:
		return "", err
	case len(accounts) == 1 && len(keys) == 0:
		return "/operator/accounts/" + accounts[0].ID, nil
	case len(keys) == 1 && len(accounts) == 0:
		return "/operator/accounts/" + keys[0].Account + "?view=keys", nil
	}
	p.Accounts = accountsTable(accounts)
	p.Keys = part.DataTable{Caption: "Keys", Columns: []part.Column{{Title: "Key"}, {Title: "Name"}, {Title: "Account"}}}
	for _, k := range keys {
		p.Keys.Rows = append(p.Keys.Rows, part.DataRow{Href: page.Base + "/operator/accounts/" + k.Account + "?view=keys",
			Cells: []any{part.Text{Text: k.Hint, Mono: true}, show.KeyName(k), part.Ident{ID: k.Account, Cut: true}}})
	}
	return "", nil
}
