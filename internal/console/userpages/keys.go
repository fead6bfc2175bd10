package userpages

import (
	"crypto/rand"
	"net/url"
	"slices"

	"tollgate/internal/account"
	"tollgate/internal/console/page"
	"tollgate/internal/console/show"
	"tollgate/internal/console/ui"
	"tollgate/internal/ledger/requestlog"
	"tollgate/internal/store"
)

// createdKeyPage shows a key's secret once.
type createdKeyPage struct {
	Key     account.Key
	Secret  *ui.CopyField // nil if the secret was shown before
	Codes   ui.Snippets
	Arrival arrivalFragment
}

// arrivalFragment shows whether the first request with a key has arrived.
type arrivalFragment struct {
	Key     string
	Arrived bool
	Text    ui.Words
	Request *ui.Ident // the newest request, or nil
}

func (c *console) listKeys(v *page.Visit) (page.Responder, error) {
	content, create := page.List{Title: "Keys", All: "All keys"}, page.CreateLink("/keys/new", "Create a key")
	if err := v.View(func(tx *store.Tx) error {
		list, more, err := account.ListKeysTx(tx, v.Account(), v.Query("after"), page.Rows)
		content.Table = keysTable(list)
		content.Pager = v.Pager("/keys", more, page.Last(list, func(k account.Key) string { return k.ID }))
		return err
	}); err != nil {
		return nil, err
	}
	if len(content.Table.Rows) > 0 {
		content.New = create
	}
	return content.Page(false, ui.EmptyState{Title: "No keys yet", Link: create,
		Text: "Your programs authenticate with a key. Each key has its own limits and shows what it spends."}).WithNotice(v,
		map[string]ui.Words{"deleted": "The key is deleted. It answers 401 from now on."}), nil
}

func keyPath(k account.Key) string { return page.Base + "/keys/" + k.ID }

func keysTable(list []account.Key) ui.DataTable {
	t := show.Keys(list)
	for i, k := range list {
		t.Rows[i].Href = keyPath(k)
	}
	return t
}

// keyForm asks for the settings of a key. allowed are the key's current models. Only operators can add a
// sandbox model to a key, even for a test account, because the key would keep the model when the account is no
// longer a test account.
func (c *console) keyForm(allowed []string, action string, submit ui.Words) ui.PostForm {
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
	return page.FormPage("Create a key", c.newKeyForm(rand.Text())), nil
}

// createKey creates a key and shows its secret in the same response. A reload sends the form with the same
// once-value, so it creates no second key and does not show the secret again.
func (c *console) createKey(v *page.Visit) (page.Responder, error) {
	form := c.newKeyForm("")
	return v.Submit(&form, func() (page.Responder, error) {
		var settings account.KeySettings
		if err := show.ReadKeyForm(&form, &settings); err != nil {
			return nil, err
		}
		once, err := v.Once(&form, "key")
		if err != nil {
			return nil, err
		}
		var k account.Key
		var secret string
		if err := v.Update(func(tx *store.Tx) error {
			id, repeated, err := page.OnceTx(tx, once, func() (string, error) {
				k, secret, err = account.CreateOwnKeyTx(tx, v.Account(), settings)
				return k.ID, err
			})
			if repeated {
				secret = ""
				k, err = account.AccountKeyTx(tx, v.Account(), id)
			}
			return err
		}); err != nil {
			return nil, err
		}
		content := createdKeyPage{Key: k, Codes: c.keySnippets(v, k, secret), Arrival: arrivalOf(k, nil)}
		if secret != "" {
			content.Secret = &ui.CopyField{ID: "secret", Label: "Your new key", Value: secret}
		}
		return page.FullPage{Name: "createdkey", Title: "Key created", Main: content}, nil
	}, func() (page.FullPage, error) { return page.FormPage("Create a key", form), nil })
}

// keySnippets returns examples for a key. secret may be empty.
func (c *console) keySnippets(v *page.Visit, k account.Key, secret string) ui.Snippets {
	return ui.Snippets{ID: "try", Tabs: show.KeySnippets(v.PublicURL(), c.offer(), k.AllowedModels, secret)}
}

func (c *console) offer() show.Offer {
	return show.Offer{Catalog: c.Catalog.Current(), Lines: c.Lines.Statuses()}
}

// arrivalOf describes the first request with a key. latest is the log of the key; a row means that a request
// has ended.
func arrivalOf(k account.Key, latest []requestlog.Receipt) arrivalFragment {
	a := arrivalFragment{Key: k.ID, Text: "Waiting for the first request …"}
	if k.Ledger.LastUsedMS > 0 {
		a.Text = "It arrived, and runs …"
	}
	if len(latest) > 0 {
		r := latest[0]
		a.Arrived, a.Text = true, ui.Sayf("It arrived: %s, %s", show.Status(r.Status, r.Code).Label, ui.USD(r.Cost))
		a.Request = &ui.Ident{ID: r.ID, Href: page.Base + "/requests/" + r.ID}
	}
	return a
}

// keyArrival updates the page of a new key until the first request with the key has ended.
func (c *console) keyArrival(v *page.Visit) (page.Responder, error) {
	var content arrivalFragment
	if err := v.View(func(tx *store.Tx) error {
		k, err := account.AccountKeyTx(tx, v.Account(), v.PathID())
		if err != nil {
			return err
		}
		latest, err := requestlog.ListTx(tx, requestlog.Selection{Account: v.Account(), Key: k.ID, Limit: 1})
		content = arrivalOf(k, latest.Receipts)
		return err
	}); err != nil {
		return nil, err
	}
	return page.Fragment{Name: "arrival", Main: content}, nil
}

func keyOf(v *page.Visit) (account.Key, error) {
	return page.Read(v, func(tx *store.Tx) (account.Key, error) { return account.AccountKeyTx(tx, v.Account(), v.PathID()) })
}

// keyAndForm returns the visitor's key named in the path and a form with the key's settings.
func (c *console) keyAndForm(v *page.Visit) (account.Key, ui.PostForm, error) {
	k, err := keyOf(v)
	form := c.keyForm(k.AllowedModels, keyPath(k), "Save")
	show.FillKeyForm(&form, k)
	return k, form, err
}

func (c *console) showKey(v *page.Visit) (page.Responder, error) {
	k, form, err := c.keyAndForm(v)
	return c.keyWith(v, k, form, ""), err
}

// keyWith shows a key with a form, which may have errors. deleteError is the error of a rejected
// deletion; it may be empty.
func (c *console) keyWith(v *page.Visit, k account.Key, form ui.PostForm, deleteError string) page.FullPage {
	content := show.NewKeyPage(v, k, keyPath(k), form, ui.Data(deleteError),
		"The key stops working immediately and cannot be restored. Its requests and charges stay in the log.")
	content.Codes = c.keySnippets(v, k, "")
	content.Uses.Items = []ui.Tab{
		{Href: page.AddressOf("/requests", url.Values{"key": {k.ID}}), Text: "Its requests"},
		{Href: page.AddressOf("/usage", url.Values{"key": {k.ID}}), Text: "Its usage"},
		{Href: page.AddressOf("/playground", url.Values{"key": {k.ID}}), Text: "Playground"}}
	return page.FullPage{Name: "key", Title: ui.Data(content.Name), Main: content}.WithNotice(v, map[string]ui.Words{
		"saved":    "Saved. The settings apply from the next request.",
		"disabled": "The key is disabled: it answers 401 until you enable it.",
		"enabled":  "The key works again.",
	})
}

func (c *console) changeKey(v *page.Visit) (page.Responder, error) {
	k, form, err := c.keyAndForm(v)
	if err != nil {
		return nil, err
	}
	return v.Submit(&form, func() (page.Responder, error) {
		return c.editKey(v, "saved", func(s *account.KeySettings) error { return show.ReadKeyForm(&form, s) })
	}, func() (page.FullPage, error) { return c.keyWith(v, k, form, ""), nil })
}

// editKey changes the visitor's key named in the path. done selects the notice on the key's page.
func (c *console) editKey(v *page.Visit, done string, edit func(*account.KeySettings) error) (page.Responder, error) {
	// Forget the key even after an error, because the transaction may have been committed.
	defer c.Keys.Forget(v.PathID())
	return v.Done("/keys/"+v.PathID(), done, func(tx *store.Tx) error {
		k, err := account.AccountKeyTx(tx, v.Account(), v.PathID())
		if err != nil {
			return err
		}
		_, err = account.ChangeKeyTx(tx, k.ID, edit)
		return err
	})
}

func (c *console) disableKey(v *page.Visit) (page.Responder, error) {
	return c.editKey(v, "disabled", func(s *account.KeySettings) error { s.Disabled = true; return nil })
}

func (c *console) enableKey(v *page.Visit) (page.Responder, error) {
	return c.editKey(v, "enabled", func(s *account.KeySettings) error { s.Disabled = false; return nil })
}

func (c *console) deleteKey(v *page.Visit) (page.Responder, error) {
	k, form, err := c.keyAndForm(v)
	if err != nil {
		return nil, err
	}
	return v.SubmitName(show.KeyName(k), func() (page.Responder, error) {
		defer c.Keys.Forget(k.ID)
		return v.Done("/keys", "deleted", func(tx *store.Tx) error {
			if _, err := account.AccountKeyTx(tx, v.Account(), k.ID); err != nil {
				return err
			}
			return account.DeleteKeyTx(tx, k.ID)
		})
	}, func() (page.FullPage, error) { return c.keyWith(v, k, form, show.KeyNotDeleted), nil })
}
