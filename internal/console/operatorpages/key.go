package operatorpages

import (
	"net/url"

	"tollgate/internal/account"
	"tollgate/internal/console/page"
	"tollgate/internal/console/show"
	"tollgate/internal/console/ui"
	"tollgate/internal/fault"
	"tollgate/internal/ledger/spending"
	"tollgate/internal/operator"
	"tollgate/internal/store"
)

// keyPath returns the path of a key's page below page.Base.
func keyPath(id string) string { return "/operator/keys/" + id }

// keyLinkTx returns a link to a key, or the name of a deleted key as text.
func keyLinkTx(tx *store.Tx, id string) (any, error) {
	k, err := account.GetKeyTx(tx, id)
	if err == nil {
		return ui.Link{Href: page.Base + keyPath(id), Text: ui.Data(show.KeyName(k))}, nil
	}
	if !fault.Is(err, fault.NotFound) {
		return nil, err
	}
	names, err := account.KeyNamesTx(tx, []string{id})
	return ui.Text{Text: ui.Sayf("%s (deleted)", names[id]), Muted: true}, err
}

func keysTable(keys []account.Key) ui.DataTable {
	t := show.Keys(keys)
	t.Columns = append(t.Columns, ui.Column{Title: "Change"})
	for i, k := range keys {
		t.Rows[i].Href = page.Base + keyPath(k.ID)
		t.Rows[i].Cells = append(t.Rows[i].Cells, show.KeySwitch(k, page.Base+keyPath(k.ID)))
	}
	return t
}

// keyOf returns the key named in the path and a form with the key's settings.
func (c *console) keyOf(v *page.Visit) (account.Key, ui.PostForm, error) {
	k, err := page.Read(v, func(tx *store.Tx) (account.Key, error) { return account.GetKeyTx(tx, v.PathID()) })
	form := show.KeyForm(c.Catalog.Current(), page.Base+keyPath(k.ID), "Save")
	show.FillKeyForm(&form, k)
	return k, form, err
}

func (c *console) showKey(v *page.Visit) (page.Responder, error) {
	k, form, err := c.keyOf(v)
	if err != nil {
		return nil, err
	}
	return c.keyWith(v, k, form, "")
}

// keyWith shows a key with a form, which may have errors. deleteError is the error of a rejected
// deletion; it may be empty.
func (c *console) keyWith(v *page.Visit, k account.Key, form ui.PostForm, deleteError string) (page.FullPage, error) {
	owner, err := page.Read(v, func(tx *store.Tx) (account.Account, error) { return account.GetTx(tx, k.Account) })
	if err != nil {
		return page.FullPage{}, err
	}
	content := show.NewKeyPage(v, k, page.Base+keyPath(k.ID), form, ui.Data(deleteError),
		ui.Sayf("What %s runs with this key stops working at once, and the key cannot be brought back. Its requests and charges "+
			"stay on record. Disabling it can be taken back.", owner.Name))
	content.Stats = append(content.Stats, ui.Figure{Label: "Usage above reservations", Value: ui.Money{Amount: k.Over},
		Note: ui.Text{Text: "not charged to anybody"}})
	content.Facts = append(ui.Facts{{Name: "Account", Value: accountLink(k.Account, owner.Name, "keys")}}, content.Facts...)
	content.Uses.Items = []ui.Tab{
		{Href: page.AddressOf("/operator/requests", url.Values{"key": {k.ID}}), Text: "Its requests"},
		{Href: page.AddressOf("/operator/usage", url.Values{"key": {k.ID}, "by": {string(spending.ByModel)}}), Text: "Its usage"}}
	return page.FullPage{Name: "key", Title: ui.Data(content.Name), Main: content}.WithNotice(v, map[string]ui.Words{
		"saved":    "Saved. The settings apply from the next request. The account's users see it too, and can change it.",
		"disabled": "The key is disabled: it answers 401. The account's users can enable it; disable the account to stop it.",
		"enabled":  "The key works again.",
	}), nil
}

func (c *console) changeKey(v *page.Visit) (page.Responder, error) {
	k, form, err := c.keyOf(v)
	if err != nil {
		return nil, err
	}
	return v.Submit(&form, func() (page.Responder, error) {
		return c.editKey(v, "saved", func(s *account.KeySettings) error { return show.ReadKeyForm(&form, s) })
	}, func() (page.FullPage, error) { return c.keyWith(v, k, form, "") })
}

// editKey changes the key named in the path. done selects the notice on the key's page.
func (c *console) editKey(v *page.Visit, done string, edit func(*account.KeySettings) error) (page.Responder, error) {
	// Forget the key even after an error, because the transaction may have been committed.
	defer c.Keys.Forget(v.PathID())
	return v.Done(keyPath(v.PathID()), done, func(tx *store.Tx) error {
		_, err := operator.ChangeKeyTx(tx, show.Actor(v), v.PathID(), edit)
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
	k, form, err := c.keyOf(v)
	if err != nil {
		return nil, err
	}
	return v.SubmitName(show.KeyName(k), func() (page.Responder, error) {
		defer c.Keys.Forget(k.ID)
		return page.Redirect(page.Base + "/operator/accounts/" + k.Account + "?view=keys&done=deleted"),
			v.Update(func(tx *store.Tx) error { return operator.DeleteKeyTx(tx, show.Actor(v), k.ID) })
	}, func() (page.FullPage, error) { return c.keyWith(v, k, form, show.KeyNotDeleted) })
}
