package console

import (
	"crypto/rand"
	"net/http"
	"strconv"
	"strings"
	"time"

	"tollgate/internal/account"
	"tollgate/internal/catalog"
	"tollgate/internal/console/part"
	"tollgate/internal/fault"
	"tollgate/internal/ledger"
	"tollgate/internal/money"
	"tollgate/internal/store"
)

// keysPage lists an account's keys.
type keysPage struct {
	Table part.DataTable
	Empty *part.Empty
	Pager part.Pager
}

// newKeyPage asks for what a new key may do.
type newKeyPage struct{ Form part.Inputs }

// createdKeyPage shows a key's secret, this once.
type createdKeyPage struct {
	Key     account.Key
	Secret  *part.Copying // nil: it was shown already
	Codes   part.Snippets
	Arrival arrivalPart
}

// keyPage is one key.
type keyPage struct {
	Name   string
	State  part.Badge
	Stats  part.FigureRow
	Facts  part.Facts
	Form   part.Inputs
	Switch part.Act
	Delete part.Confirm
	Codes  part.Snippets
}

// arrivalPart says whether a key's first request has come.
type arrivalPart struct {
	Key     string
	Arrived bool
	Text    string
}

const keysAPage = 50

func (c *console) listKeys(v *visit) (answer, error) {
	shown := keysPage{Table: part.DataTable{Caption: "Keys of this account", Columns: []part.Column{
		{Title: "Name"}, {Title: "Key"}, {Title: "State"}, {Title: "Limits", Fold: true}, {Title: "Today", Right: true, Fold: true},
		{Title: "Total", Right: true, Fold: true}, {Title: "Last use", Fold: true}}}}
	after := v.query("after")
	if err := v.view(func(tx *store.Tx) error {
		list, more, err := account.ListKeysTx(tx, v.account(), after, keysAPage)
		if err != nil {
			return err
		}
		for _, k := range list {
			shown.Table.Rows = append(shown.Table.Rows, part.DataRow{Href: Base + "/keys/" + k.ID, Cells: []any{
				nameOf(k), part.Text{Text: k.Hint, Mono: true}, keyState(k), limitsOf(k), part.Money{Amount: k.Ledger.SpentToday},
				part.Money{Amount: k.Ledger.Spent}, part.Moment{MS: k.Ledger.LastUsedMS}}})
		}
		if more {
			shown.Pager.Next = Base + "/keys?after=" + list[len(list)-1].ID
		}
		if after != "" {
			shown.Pager.First = Base + "/keys"
		}
		return nil
	}); err != nil {
		return nil, err
	}
	if len(shown.Table.Rows) == 0 && after == "" {
		shown.Empty = &part.Empty{Title: "No keys yet",
			Text: "A key is what your programs send to be let in. Each has limits of its own, and shows what it spends.",
			Link: &part.Link{Href: Base + "/keys/new", Text: "Create a key", Icon: "plus", Button: true, Main: true}}
	}
	return page{name: "keys", title: "Keys", main: shown}.done(v, map[string]string{
		"deleted": "The key is deleted. It answers 401 from now on.",
	}), nil
}

// nameOf is what a key is called.
func nameOf(k account.Key) string {
	if k.Name == "" {
		return k.Hint
	}
	return k.Name
}

func keyState(k account.Key) part.Badge {
	switch {
	case k.Ledger.AccountDisabled:
		return part.Badge{Tone: part.Bad, Word: "account disabled"}
	case k.Ledger.Limits.Disabled:
		return part.Badge{Word: "disabled"}
	}
	return part.Badge{Tone: part.OK, Word: "works"}
}

// limitsOf says in short what a key may do.
func limitsOf(k account.Key) part.Text {
	var limits []string
	l := k.Ledger.Limits
	if l.RPM != nil {
		limits = append(limits, part.Thousands(*l.RPM)+"/min")
	}
	if l.DailyBudget != nil {
		limits = append(limits, part.USD(*l.DailyBudget)+"/day")
	}
	if l.TotalLimit != nil {
		limits = append(limits, part.USD(*l.TotalLimit)+" in all")
	}
	if n := len(k.AllowedModels); n > 0 {
		limits = append(limits, plural(n, "model"))
	}
	if n := len(k.AllowedIPs); n > 0 {
		limits = append(limits, plural(n, "address"))
	}
	if len(limits) == 0 {
		return part.Text{Text: "none", Muted: true}
	}
	return part.Text{Text: strings.Join(limits, ", ")}
}

func plural(n int, word string) string {
	switch {
	case n == 1:
	case strings.HasSuffix(word, "s"):
		word += "es"
	default:
		word += "s"
	}
	return strconv.Itoa(n) + " " + word
}

// keyForm asks for the settings of a key. Its names are those of the API.
func (c *console) keyForm(action, submit string) part.Inputs {
	f := part.Inputs{Action: action, Submit: submit, Cancel: Base + "/keys", Fields: []part.FormField{
		{Name: "name", Label: "Name", Hint: "What uses it, for example backend."},
		{Name: "rpm", Label: "Requests per minute", Numeric: true, Hint: "Empty: no limit. More answer 429."},
		{Name: "daily_budget_usd", Label: "Daily budget", Before: "$", Numeric: true, Hint: "Per UTC day. Empty: no limit. More answer 402."},
		{Name: "total_limit_usd", Label: "Total limit", Before: "$", Numeric: true, Hint: "Over the key's life. Empty: no limit."},
		{Name: "allowed_models", Label: "Models", Kind: part.Checks, Hint: "None chosen: all models."},
		{Name: "allowed_ips", Label: "Addresses", Kind: part.Area,
			Hint: "One IP address or CIDR a line, from which the key may be used. Empty: from anywhere."},
	}}
	for _, m := range c.Catalog.Current().Models() {
		if m.State != catalog.StateRetired {
			models := f.Field("allowed_models")
			models.Options = append(models.Options, part.Option{Value: m.ID, Label: m.ID})
		}
	}
	return f
}

// fillKeyForm shows what is set now. A model that the catalog has no more stays a
// choice: it is in the list until somebody takes it out.
func fillKeyForm(f *part.Inputs, k account.Key) {
	l := k.Ledger.Limits
	f.Field("name").Value = k.Name
	if l.RPM != nil {
		f.Field("rpm").Value = strconv.FormatInt(*l.RPM, 10)
	}
	for name, amount := range map[string]*money.Amount{"daily_budget_usd": l.DailyBudget, "total_limit_usd": l.TotalLimit} {
		if amount != nil {
			f.Field(name).Value = amount.String()
		}
	}
	models := f.Field("allowed_models")
	for _, allowed := range k.AllowedModels {
		known := false
		for i := range models.Options {
			if models.Options[i].Value == allowed {
				models.Options[i].On, known = true, true
			}
		}
		if !known {
			models.Options = append(models.Options, part.Option{Value: allowed, Label: allowed + " (not in the catalog)", On: true})
		}
	}
	f.Field("allowed_ips").Value = strings.Join(account.ShowIPs(k.AllowedIPs), "\n")
}

// keySettings reads a form's settings; what is wrong names its field.
func keySettings(f *part.Inputs, s *account.KeySettings) error {
	s.Name = f.Field("name").Value
	s.RPM, s.DailyBudget, s.TotalLimit, s.AllowedModels, s.AllowedIPs = nil, nil, nil, nil, nil
	if text := strings.TrimSpace(f.Field("rpm").Value); text != "" {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || n < 1 {
			return fault.At(fault.InvalidRequest, "rpm", "Requests per minute is a whole number from 1, or empty for no limit.")
		}
		s.RPM = &n
	}
	for name, amount := range map[string]**money.Amount{"daily_budget_usd": &s.DailyBudget, "total_limit_usd": &s.TotalLimit} {
		text := strings.TrimPrefix(strings.TrimSpace(f.Field(name).Value), "$")
		if text == "" {
			continue
		}
		value, err := money.Parse(strings.TrimSpace(text))
		if err != nil || value < 0 {
			return fault.At(fault.InvalidRequest, name,
				"%s is an amount of US dollars, for example 5 or 0.25, or empty for no limit.", f.Field(name).Label)
		}
		*amount = &value
	}
	for _, o := range f.Field("allowed_models").Options {
		if o.On {
			s.AllowedModels = append(s.AllowedModels, o.Value)
		}
	}
	s.AllowedIPs = append(s.AllowedIPs, strings.Fields(f.Field("allowed_ips").Value)...)
	return nil
}

func (c *console) newKeyForm(once string) part.Inputs {
	f := c.keyForm(Base+"/keys/new", "Create key")
	f.Fields = append(f.Fields, part.FormField{Name: "once", Kind: part.Unshown, Value: once})
	return f
}

func (c *console) newKey(*visit) (answer, error) {
	return page{name: "newkey", title: "Create a key", main: newKeyPage{c.newKeyForm(rand.Text())}}, nil
}

// onceWindow is how long a form that was sent again does nothing.
const onceWindow = 24 * time.Hour

// createKey makes a key and shows its secret in the very answer. A reload sends
// the form again: its once-value tells, and nothing is made or shown again.
func (c *console) createKey(v *visit) (answer, error) {
	form := c.newKeyForm("")
	if err := v.read(&form); err != nil {
		return nil, err
	}
	var k account.Key
	var secret string
	create := func() error {
		var settings account.KeySettings
		if err := keySettings(&form, &settings); err != nil {
			return err
		}
		if len(form.Field("once").Value) < 16 {
			return fault.New(fault.InvalidRequest, "This form is incomplete. Reload the page and send it again.")
		}
		// The account and the value are what is the same of a form that is sent
		// again, also by a browser that fills it in anew.
		once := ledger.Once{Scope: "console " + v.account(), Key: form.Field("once").Value, Fingerprint: []byte("key"), Window: onceWindow}
		return v.update(func(tx *store.Tx) (err error) {
			saved, err := ledger.OnceTx(tx, once)
			if err != nil {
				return err
			}
			if secret = ""; saved != nil {
				k, err = account.OwnKeyTx(tx, v.account(), string(saved))
				return err
			}
			if k, secret, err = account.CreateKeyTx(tx, v.account(), settings); err != nil {
				return err
			}
			return ledger.SaveOnceTx(tx, once, []byte(k.ID))
		})
	}
	if err := create(); err != nil {
		if err := refused(&form, err); err != nil {
			return nil, err
		}
		return page{name: "newkey", title: "Create a key", main: newKeyPage{form}, status: http.StatusUnprocessableEntity}, nil
	}
	shown := createdKeyPage{Key: k, Codes: part.Snippets{ID: "try", Tabs: c.keySnippets(secret)}, Arrival: arrivalOf(k)}
	if secret != "" {
		shown.Secret = &part.Copying{ID: "secret", Label: "Your new key", Value: secret}
	}
	return page{name: "createdkey", title: "Key created", main: shown}, nil
}

func arrivalOf(k account.Key) arrivalPart {
	a := arrivalPart{Key: k.ID, Arrived: k.Ledger.LastUsedMS > 0, Text: "Waiting for the first request …"}
	if a.Arrived {
		a.Text = "It arrived: the key has been used, and " + part.USD(k.Ledger.Spent) + " was charged so far."
	}
	return a
}

// keyArrival is what the page of a new key asks for until its first request came.
func (c *console) keyArrival(v *visit) (answer, error) {
	k, err := v.key()
	if err != nil {
		return nil, err
	}
	return fragment{name: "arrival", main: arrivalOf(k)}, nil
}

// key is the visitor's key that the path names.
func (v *visit) key() (k account.Key, err error) {
	err = v.view(func(tx *store.Tx) (err error) {
		k, err = account.OwnKeyTx(tx, v.account(), v.PathID())
		return err
	})
	return k, err
}

func (c *console) showKey(v *visit) (answer, error) {
	k, err := v.key()
	if err != nil {
		return nil, err
	}
	form := c.keyForm(Base+"/keys/"+k.ID, "Save")
	fillKeyForm(&form, k)
	return c.keyWith(v, k, form, "", 0), nil
}

// keyWith shows a key with a form, or a wish to delete it, that may have been
// refused.
func (c *console) keyWith(v *visit, k account.Key, form part.Inputs, notDeleted string, status int) answer {
	path := Base + "/keys/" + k.ID
	shown := keyPage{Name: nameOf(k), State: keyState(k), Form: form, Codes: part.Snippets{ID: "try", Tabs: c.keySnippets("")}}
	shown.Stats = part.FigureRow{
		{Label: "Spent today (UTC)", Value: part.Money{Amount: k.Ledger.SpentToday}},
		{Label: "Spent in all", Value: part.Money{Amount: k.Ledger.Spent}},
		{Label: "On hold", Value: part.Money{Amount: k.Ledger.Held}},
	}
	shown.Facts = part.Facts{{Name: "Key", Value: part.Text{Text: k.Hint, Mono: true}}, {Name: "Id", Value: part.Ident{ID: k.ID}},
		{Name: "Last use", Value: part.Moment{MS: k.Ledger.LastUsedMS}}, {Name: "Created", Value: part.Moment{MS: k.CreatedMS}}}
	shown.Switch = part.Act{Action: path + "/disable", Word: "Disable", About: nameOf(k)}
	if k.Ledger.Limits.Disabled {
		shown.Switch = part.Act{Action: path + "/enable", Word: "Enable", About: nameOf(k)}
	}
	shown.Delete = v.confirm(part.Confirm{ID: "delete", Button: "Delete", Title: "Delete the key " + nameOf(k) + "?", Danger: true,
		Type: nameOf(k), Action: path + "/delete", Wrong: notDeleted,
		Text: []string{"This key stops working at once and cannot be brought back. Its requests and charges stay on record."}})
	shown.Delete.Open = shown.Delete.Open || notDeleted != ""
	return page{name: "key", title: nameOf(k), main: shown, status: status}.done(v, map[string]string{
		"saved":    "Saved. The next request goes by it.",
		"disabled": "The key is disabled: it answers 401 until you enable it.",
		"enabled":  "The key works again.",
	})
}

func (c *console) changeKey(v *visit) (answer, error) {
	k, err := v.key()
	if err != nil {
		return nil, err
	}
	form := c.keyForm(Base+"/keys/"+k.ID, "Save")
	fillKeyForm(&form, k)
	if err := v.read(&form); err != nil {
		return nil, err
	}
	if err := c.editKey(v, func(s *account.KeySettings) error { return keySettings(&form, s) }); err != nil {
		if err := refused(&form, err); err != nil {
			return nil, err
		}
		return c.keyWith(v, k, form, "", http.StatusUnprocessableEntity), nil
	}
	return to("/keys/"+k.ID, "saved"), nil
}

// editKey changes the visitor's key that the path names.
func (c *console) editKey(v *visit, edit func(*account.KeySettings) error) error {
	// Also after an error: the commit of one may have taken place.
	defer c.Keys.Forget(v.PathID())
	return v.update(func(tx *store.Tx) error {
		k, err := account.OwnKeyTx(tx, v.account(), v.PathID())
		if err != nil {
			return err
		}
		_, err = account.ChangeKeyTx(tx, k.ID, edit)
		return err
	})
}

func (c *console) disableKey(v *visit) (answer, error) { return c.switchKey(v, true, "disabled") }
func (c *console) enableKey(v *visit) (answer, error)  { return c.switchKey(v, false, "enabled") }

func (c *console) switchKey(v *visit, disabled bool, done string) (answer, error) {
	if err := c.editKey(v, func(s *account.KeySettings) error { s.Disabled = disabled; return nil }); err != nil {
		return nil, err
	}
	return to("/keys/"+v.PathID(), done), nil
}

func (c *console) deleteKey(v *visit) (answer, error) {
	k, err := v.key()
	if err != nil {
		return nil, err
	}
	typed := part.Inputs{Fields: []part.FormField{{Name: "typed", Label: "The name"}}}
	if err := v.read(&typed); err != nil {
		return nil, err
	}
	if strings.TrimSpace(typed.Field("typed").Value) != nameOf(k) {
		form := c.keyForm(Base+"/keys/"+k.ID, "Save")
		fillKeyForm(&form, k)
		return c.keyWith(v, k, form, "That is not its name, so the key was not deleted.", http.StatusUnprocessableEntity), nil
	}
	defer c.Keys.Forget(k.ID)
	if err := v.update(func(tx *store.Tx) error {
		if _, err := account.OwnKeyTx(tx, v.account(), k.ID); err != nil {
			return err
		}
		return account.DeleteKeyTx(tx, k.ID)
	}); err != nil {
		return nil, err
	}
	return to("/keys", "deleted"), nil
}
