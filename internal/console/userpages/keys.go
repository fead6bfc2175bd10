package userpages

import (
	"crypto/rand"
	"net/http"
	"net/url"
	"slices"

	"tollgate/internal/account"
	"tollgate/internal/console/page"
	"tollgate/internal/console/show"
	"tollgate/internal/console/ui"
	"tollgate/internal/ledger/requestlog"
	"tollgate/internal/store"
)

// keysPage lists an account's keys.
type keysPage struct {
	Table ui.DataTable
	Empty *ui.EmptyState
	Pager ui.Pager
}

// newKeyPage asks for the settings of a new key.
type newKeyPage struct{ Form ui.PostForm }

// createdKeyPage shows a key's secret, this once.
type createdKeyPage struct {
	Key     account.Key
	Secret  *ui.CopyField // nil: it was shown already
	Codes   ui.Snippets
	Arrival arrivalFragment
}

// keyPage is one key.
type keyPage struct {
	Name   string
	State  ui.Badge
	Stats  ui.FigureRow
	Facts  ui.Facts
	Uses   ui.Tabs
	Form   ui.PostForm
	Switch ui.Button
	Delete ui.Confirm
	Codes  ui.Snippets
}

// arrivalFragment shows whether a key's first request has arrived.
type arrivalFragment struct {
	Key     string
	Arrived bool
	Text    string
	Request *ui.Ident // the newest request, or nil
}

func (c *console) listKeys(v *page.Visit) (page.Responder, error) {
	var shown keysPage
	after := v.Query("after")
	if err := v.View(func(tx *store.Tx) error {
		list, more, err := account.ListKeysTx(tx, v.Account(), after, page.Rows)
		if err != nil {
			return err
		}
		shown.Table = keysTable(list)
		shown.Pager = v.Pager("/keys", more, page.Last(list, func(k account.Key) string { return k.ID }))
		return nil
	}); err != nil {
		return nil, err
	}
	if len(shown.Table.Rows) == 0 && after == "" {
		shown.Empty = &ui.EmptyState{Title: "No keys yet",
			Text: "Your programs authenticate with a key. Each key has its own limits and shows what it spends.",
			Link: &ui.Link{Href: page.Base + "/keys/new", Text: "Create a key", Icon: "plus", Button: true, Main: true}}
	}
	return page.FullPage{Name: "keys", Title: "Keys", Main: shown}.WithNotice(v, map[string]string{
		"deleted": "The key is deleted. It answers 401 from now on.",
	}), nil
}

// keyPath returns the address of a key's page.
func keyPath(k account.Key) string { return page.Base + "/keys/" + k.ID }

// keysTable lists keys, each leading to its page.
func keysTable(list []account.Key) ui.DataTable {
	t := show.Keys(list)
	for i, k := range list {
		t.Rows[i].Href = keyPath(k)
	}
	return t
}

// keyForm asks for the settings of a key. allowed are the models of the key now. Only operators can
// add a sandbox model to a key, also for a test account, because the key keeps the model if the
// account loses its mark.
func (c *console) keyForm(allowed []string, action, submit string) ui.PostForm {
	now := c.Catalog.Current()
	f := show.KeyForm(now, action, submit)
	models := f.Field("allowed_models")
	models.Options = slices.DeleteFunc(models.Options, func(o ui.Option) bool {
		return now.HidesSandbox(o.Value, false, allowed)
	})
	f.Cancel = page.Base + "/keys"
	return f
}

func (c *console) newKeyForm(once string) ui.PostForm {
	f := c.keyForm(nil, page.Base+"/keys/new", "Create key")
	f.Fields = append(f.Fields, ui.FormField{Name: "once", Kind: ui.Hidden, Value: once})
	return f
}

func (c *console) newKey(*page.Visit) (page.Responder, error) {
	return page.FullPage{Name: "newkey", Title: "Create a key", Main: newKeyPage{c.newKeyForm(rand.Text())}}, nil
}

// createKey creates a key and shows its secret in the same response. A reload sends the form with
// the same once-value, so no second key is created and the secret is not shown again.
func (c *console) createKey(v *page.Visit) (page.Responder, error) {
	form := c.newKeyForm("")
	if err := v.ReadForm(&form); err != nil {
		return nil, err
	}
	var k account.Key
	var secret string
	create := func() error {
		var settings account.KeySettings
		if err := show.ReadKeyForm(&form, &settings); err != nil {
			return err
		}
		once, err := v.Once(&form, "key")
		if err != nil {
			return err
		}
		return v.Update(func(tx *store.Tx) error {
			id, again, err := page.OnceTx(tx, once, func() (string, error) {
				k, secret, err = account.CreateOwnKeyTx(tx, v.Account(), settings)
				return k.ID, err
			})
			if again {
				secret = ""
				k, err = account.OwnKeyTx(tx, v.Account(), id)
			}
			return err
		})
	}
	if err := create(); err != nil {
		if err := page.AddErrors(&form, err); err != nil {
			return nil, err
		}
		return page.FullPage{Name: "newkey", Title: "Create a key", Main: newKeyPage{form}, Status: http.StatusUnprocessableEntity}, nil
	}
	shown := createdKeyPage{Key: k, Codes: c.keySnippets(v, k, secret), Arrival: arrivalOf(k, nil)}
	if secret != "" {
		shown.Secret = &ui.CopyField{ID: "secret", Label: "Your new key", Value: secret}
	}
	return page.FullPage{Name: "createdkey", Title: "Key created", Main: shown}, nil
}

// keySnippets returns examples for a key. secret may be empty.
func (c *console) keySnippets(v *page.Visit, k account.Key, secret string) ui.Snippets {
	return ui.Snippets{ID: "try", Tabs: show.KeySnippets(v.PublicURL(), c.offer(), k.AllowedModels, secret)}
}

// offer returns the catalog and the state of its lines on this node.
func (c *console) offer() show.Offer {
	return show.Offer{Catalog: c.Catalog.Current(), Lines: c.Lines.Statuses()}
}

// arrivalOf returns the state of a key's first request. The request has ended if the log of the key
// has a row.
func arrivalOf(k account.Key, latest []requestlog.Receipt) arrivalFragment {
	a := arrivalFragment{Key: k.ID, Text: "Waiting for the first request …"}
	if k.Ledger.LastUsedMS > 0 {
		a.Text = "It arrived, and runs …"
	}
	if len(latest) > 0 {
		r := latest[0]
		a.Arrived, a.Text = true, "It arrived: "+show.Status(r.Status, r.Code).Label+", "+ui.USD(r.Cost)
		a.Request = &ui.Ident{ID: r.ID, Href: page.Base + "/requests/" + r.ID}
	}
	return a
}

// keyArrival updates the page of a new key until its first request has ended.
func (c *console) keyArrival(v *page.Visit) (page.Responder, error) {
	var shown arrivalFragment
	if err := v.View(func(tx *store.Tx) error {
		k, err := account.OwnKeyTx(tx, v.Account(), v.PathID())
		if err != nil {
			return err
		}
		latest, err := requestlog.ListTx(tx, requestlog.Selection{Account: v.Account(), Key: k.ID, Limit: 1})
		shown = arrivalOf(k, latest.Receipts)
		return err
	}); err != nil {
		return nil, err
	}
	return page.Fragment{Name: "arrival", Main: shown}, nil
}

// keyOf returns the visitor's key named in the path.
func keyOf(v *page.Visit) (k account.Key, err error) {
	err = v.View(func(tx *store.Tx) (err error) {
		k, err = account.OwnKeyTx(tx, v.Account(), v.PathID())
		return err
	})
	return k, err
}

func (c *console) showKey(v *page.Visit) (page.Responder, error) {
	k, err := keyOf(v)
	if err != nil {
		return nil, err
	}
	form := c.keyForm(k.AllowedModels, page.Base+"/keys/"+k.ID, "Save")
	show.FillKeyForm(&form, k)
	return c.keyWith(v, k, form, "", 0), nil
}

// keyWith shows a key with a form, which may have errors. notDeleted is the error of a rejected
// deletion; it may be empty.
func (c *console) keyWith(v *page.Visit, k account.Key, form ui.PostForm, notDeleted string, status int) page.Responder {
	path := page.Base + "/keys/" + k.ID
	shown := keyPage{Name: show.KeyName(k), State: show.KeyState(k), Form: form, Codes: c.keySnippets(v, k, "")}
	shown.Stats = show.KeyFigures(k)
	shown.Facts = show.KeyFacts(k)
	shown.Uses = ui.Tabs{Label: "Usage of the key", Items: []ui.Tab{
		{Href: page.AddressOf("/requests", url.Values{"key": {k.ID}}), Text: "Its requests"},
		{Href: page.AddressOf("/usage", url.Values{"key": {k.ID}}), Text: "Its usage"},
		{Href: page.AddressOf("/playground", url.Values{"key": {k.ID}}), Text: "Playground"}}}
	shown.Switch = show.KeySwitch(k, path)
	shown.Delete = v.Confirm(ui.Confirm{ID: "delete", Button: "Delete", Title: "Delete the key " + show.KeyName(k) + "?", Danger: true,
		Type: show.KeyName(k), Action: path + "/delete", Error: notDeleted,
		Text: []string{"The key stops working immediately and cannot be restored. Its requests and charges stay in the log."}})
	shown.Delete.Open = shown.Delete.Open || notDeleted != ""
	return page.FullPage{Name: "key", Title: show.KeyName(k), Main: shown, Status: status}.WithNotice(v, map[string]string{
		"saved":    "Saved. The settings apply from the next request.",
		"disabled": "The key is disabled: it answers 401 until you enable it.",
		"enabled":  "The key works again.",
	})
}

func (c *console) changeKey(v *page.Visit) (page.Responder, error) {
	k, err := keyOf(v)
	if err != nil {
		return nil, err
	}
	form := c.keyForm(k.AllowedModels, page.Base+"/keys/"+k.ID, "Save")
	show.FillKeyForm(&form, k)
	if err := v.ReadForm(&form); err != nil {
		return nil, err
	}
	if err := c.editKey(v, func(s *account.KeySettings) error { return show.ReadKeyForm(&form, s) }); err != nil {
		if err := page.AddErrors(&form, err); err != nil {
			return nil, err
		}
		return c.keyWith(v, k, form, "", http.StatusUnprocessableEntity), nil
	}
	return page.To("/keys/"+k.ID, "saved"), nil
}

// editKey changes the visitor's key named in the path.
func (c *console) editKey(v *page.Visit, edit func(*account.KeySettings) error) error {
	// Also after an error, because the transaction may have been committed.
	defer c.Keys.Forget(v.PathID())
	return v.Update(func(tx *store.Tx) error {
		k, err := account.OwnKeyTx(tx, v.Account(), v.PathID())
		if err != nil {
			return err
		}
		_, err = account.ChangeKeyTx(tx, k.ID, edit)
		return err
	})
}

func (c *console) disableKey(v *page.Visit) (page.Responder, error) {
	return c.switchKey(v, true, "disabled")
}
func (c *console) enableKey(v *page.Visit) (page.Responder, error) {
	return c.switchKey(v, false, "enabled")
}

func (c *console) switchKey(v *page.Visit, disabled bool, done string) (page.Responder, error) {
	if err := c.editKey(v, func(s *account.KeySettings) error { s.Disabled = disabled; return nil }); err != nil {
		return nil, err
	}
	return page.To("/keys/"+v.PathID(), done), nil
}

func (c *console) deleteKey(v *page.Visit) (page.Responder, error) {
	k, err := keyOf(v)
	if err != nil {
		return nil, err
	}
	typed, err := v.NameMatches(show.KeyName(k))
	if err != nil {
		return nil, err
	}
	if !typed {
		form := c.keyForm(k.AllowedModels, page.Base+"/keys/"+k.ID, "Save")
		show.FillKeyForm(&form, k)
		return c.keyWith(v, k, form, "The name does not match, so the key was not deleted.", http.StatusUnprocessableEntity), nil
	}
	defer c.Keys.Forget(k.ID)
	if err := v.Update(func(tx *store.Tx) error {
		if _, err := account.OwnKeyTx(tx, v.Account(), k.ID); err != nil {
			return err
		}
		return account.DeleteKeyTx(tx, k.ID)
	}); err != nil {
		return nil, err
	}
	return page.To("/keys", "deleted"), nil
}
