package operatorpages

import (
	"net/url"
	"regexp"
	"strings"
	"unicode"

	"tollgate/internal/account"
	"tollgate/internal/console/page"
	"tollgate/internal/console/ui"
	"tollgate/internal/store"
	"tollgate/internal/webhook"
)

// findPage lists the results of a search. A single result redirects to its own page instead.
type findPage struct {
	Filters  ui.Filters
	Query    string
	Accounts ui.DataTable
	Keys     ui.DataTable
	Codes    ui.DataTable
}

// maxResults is the maximum number of results of each kind.
const maxResults = 20

var (
	// identifier matches an identifier in a customer's message.
	identifier = regexp.MustCompile(`\b(?:req|job|acct|key|user|evt|code)_[0-9a-z]{26}\b`)
	// secretKey matches the secret of a key, but not its hint.
	secretKey = regexp.MustCompile(`\bsk-[0-9A-Za-z_-]{17,}\b`)
)

// find redirects to the page of an object. The search text is an account, a key's hint, a code, a line, a
// model, or a text with an id in it.
func (c *console) find(v *page.Visit) (page.Responder, error) {
	q := singleLine(v.Request.URL.Query().Get("q"))
	if secret := secretKey.FindString(q); secret != "" { // the address must not keep a secret
		return page.Redirect(page.AddressOf("/operator/find", url.Values{"q": {account.HintOf(secret)}})), nil
	}
	content := findPage{Filters: searchFilter("/operator/find", q), Query: q}
	content.Filters.Fields[0].Label = "Find"
	if q == "" {
		return page.FullPage{Name: "find", Title: "Find", Main: content}, nil
	}
	if id := identifier.FindString(q); id != "" {
		q = id
	}
	target := c.directPath(q)
	if target == "" {
		if err := v.View(func(tx *store.Tx) (err error) {
			target, err = content.searchTx(tx, v, q)
			return err
		}); err != nil {
			return nil, err
		}
	}
	if target != "" {
		return page.Redirect(page.Base + target), nil
	}
	return page.FullPage{Name: "find", Title: "Find", Main: content}, nil
}

// maxQuery bounds the text in the search box, in bytes. The text may be a message with an id.
const maxQuery = 4 << 10

// singleLine returns a pasted text as one line.
func singleLine(text string) string {
	text = strings.ToValidUTF8(text[:min(len(text), maxQuery)], "")
	return strings.Join(strings.FieldsFunc(text, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }), " ")
}

// directPath returns the path of the page of a request, a job, a line or a model, below page.Base. It returns
// an empty string for any other text. It does not read the database.
func (c *console) directPath(q string) string {
	id := url.PathEscape(q)
	switch prefix, _, _ := strings.Cut(q, "_"); prefix + "_" {
	case "req_":
		return "/operator/requests/" + id
	case "job_":
		return "/operator/jobs/" + id
	}
	now := c.Catalog.Current()
	for _, l := range now.AllLines() {
		if l.ID == q {
			return "/operator/lines/" + id
		}
	}
	if m, ok := now.Model(q); ok {
		return "/operator/usage?" + url.Values{"model": {m.ID}}.Encode()
	}
	return ""
}

// searchTx searches for q. If there is exactly one result, it returns the path of the result's page, below
// page.Base.
func (p *findPage) searchTx(tx *store.Tx, v *page.Visit, q string) (target string, err error) {
	accounts, keys := []account.Account(nil), []account.Key(nil)
	switch prefix, _, _ := strings.Cut(q, "_"); prefix + "_" {
	case "acct_":
		accounts, err = oneOrNone(account.GetTx(tx, q))
	case "key_":
		keys, err = oneOrNone(account.GetKeyTx(tx, q))
	case "user_":
		var users []account.User
		if users, err = oneOrNone(account.GetUserTx(tx, q)); len(users) > 0 {
			return "/operator/accounts/" + users[0].Account + "?view=users", err
		}
	case "evt_":
		var owner string
		if owner, err = webhook.AccountOfEventTx(tx, q); err == nil && owner != "" {
			return "/operator/accounts/" + owner + "?view=webhook", nil
		}
	case "code_":
		err = p.codeTx(tx, v, q)
	default:
		if keys, _, err = account.KeysByHintTx(tx, q, "", maxResults); err == nil && len(keys) == 0 {
			accounts, _, err = account.SearchTx(tx, q, "", maxResults)
		}
	}
	switch {
	case err != nil:
		return "", err
	case len(accounts) == 1 && len(keys) == 0:
		return "/operator/accounts/" + accounts[0].ID, nil
	case len(keys) == 1 && len(accounts) == 0:
		return keyPath(keys[0].ID), nil
	}
	names, err := accountNamesTx(tx, keys, func(k account.Key) string { return k.Account })
	p.Accounts = accountsTable(accounts)
	p.Keys = ui.DataTable{Caption: "Keys", Columns: []ui.Column{{Title: "Key"}, {Title: "Name"}, {Title: "Account"}}}
	for _, k := range keys {
		p.Keys.Rows = append(p.Keys.Rows, ui.DataRow{Href: page.Base + keyPath(k.ID),
			Cells: []any{ui.Text{Text: ui.Data(k.Hint), Mono: true}, ui.OrDash(k.Name), accountCell(names, k.Account)}})
	}
	return "", err
}

// codeTx shows a redeem code with its buttons.
func (p *findPage) codeTx(tx *store.Tx, v *page.Visit, id string) error {
	codes, err := oneOrNone(account.GetCodeTx(tx, id))
	if err != nil {
		return err
	}
	p.Codes, err = codesTableTx(tx, v, codes)
	return err
}
