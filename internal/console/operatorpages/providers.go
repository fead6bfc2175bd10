package operatorpages

import (
	"context"
	"errors"
	"net/url"
	"slices"
	"strings"
	"time"

	"tollgate/internal/catalog"
	"tollgate/internal/catalog/secret"
	"tollgate/internal/console/page"
	"tollgate/internal/console/show"
	"tollgate/internal/console/ui"
	"tollgate/internal/fault"
	"tollgate/internal/money"
	"tollgate/internal/operator"
	"tollgate/internal/provider"
	"tollgate/internal/store"
)

const providersPath = "/operator/providers"

// providersPage lists the lines and the stored keys.
type providersPage struct {
	Add     ui.Link
	Editor  ui.Link
	Lines   ui.DataTable
	Secrets []storedSecret
}

// storedSecret is a stored key of a provider. No line uses the key, or this node cannot decrypt it.
type storedSecret struct {
	Name, Problem string
	Delete        *ui.Confirm // nil if a line or a pending change uses the key
	Scheduled     *ui.Link    // to the pending change that uses the key; may be nil
}

// newProviderPage is the first step of adding a provider.
type newProviderPage struct {
	Form     ui.PostForm
	KeyPages ui.Facts // addresses as text, because the console links to no other site
}

// providerModelsPage is the choice of a provider's models.
type providerModelsPage struct {
	Line   string
	Vendor ui.Words
	Form   ui.PostForm
}

// providerPage shows a line that the form can change.
type providerPage struct {
	Line   string
	Vendor ui.Words
	Key    ui.PostForm // replaces the key; without fields if the key is not stored in the database
	Models ui.Button   // asks the provider for its models
	Prices ui.PostForm
}

// testTimeout bounds a test call.
const testTimeout = 10 * time.Second

func (c *console) listProviders(v *page.Visit) (page.Responder, error) {
	content := providersPage{Add: ui.Link{Href: page.Base + providersPath + "/new", Text: "Add a provider", Button: true, Main: true},
		Editor: ui.Link{Href: page.Base + "/operator/catalog/edit", Text: "Edit the catalog"}}
	var all []operator.LineSecret
	if err := v.View(func(tx *store.Tx) (err error) {
		all, err = operator.SecretsTx(tx, c.SecretKeys)
		return err
	}); err != nil {
		return nil, err
	}
	content.Lines = ui.DataTable{Caption: "Providers", Columns: []ui.Column{{Title: "Line"}, {Title: "Provider"}, {Title: "Models"},
		{Title: "Margin on cost"}, {Title: "State"}}}
	for _, l := range c.Catalog.Current().AllLines() {
		row := ui.DataRow{Cells: []any{l.ID, l.Provider, ui.Count{N: int64(len(l.Models))}, ui.Words("from YAML"), lineState(l)}}
		if vendor, ok := provider.VendorOf(&l.LineSpec); ok {
			row.Cells[1], row.Href = ui.Words(vendor.Name), page.Base+providersPath+"/"+url.PathEscape(l.ID)
		}
		if l.Margin != nil {
			row.Cells[3] = percent(*l.Margin) + " %"
		}
		content.Lines.Rows = append(content.Lines.Rows, row)
	}
	for _, s := range all {
		stored := storedSecret{Name: s.Name, Problem: s.Problem}
		switch {
		case len(s.Lines) > 0:
		case s.Scheduled != "":
			stored.Scheduled = &ui.Link{Href: page.Base + changesPath + "/" + s.Scheduled, Text: "Scheduled change"}
		default:
			confirm := v.Confirm(ui.Confirm{ID: "delete-" + s.Name, Button: "Delete", Title: ui.Sayf("Delete the key %s?", s.Name), Danger: true,
				Action: page.Base + providersPath + "/keys/" + url.PathEscape(s.Name) + "/delete",
				Text:   []ui.Words{"No line of the catalog uses this key. It cannot be shown or restored."}})
			stored.Delete = &confirm
		}
		if stored.Problem != "" || len(s.Lines) == 0 {
			content.Secrets = append(content.Secrets, stored)
		}
	}
	return page.FullPage{Name: "providers", Title: "Providers", Main: content}.WithNotice(v, map[string]ui.Words{
		"applied": "Applied. The models are in service on all nodes within two seconds.",
		"same":    "Nothing was changed.",
		"key":     "The key was replaced. All nodes use it within two seconds.",
		"deleted": "The key was deleted.",
	}), nil
}

// lineState shows whether this node can use a line.
func lineState(l *catalog.Line) any {
	switch {
	case !l.Enabled:
		return ui.Badge{Label: "switched off"}
	case l.UnusableReason != "":
		return ui.Badge{Tone: ui.Bad, Label: "out of service", Title: l.UnusableReason}
	}
	return ui.Badge{Tone: ui.OK, Label: "in use"}
}

func (c *console) deleteStoredKey(v *page.Visit) (page.Responder, error) {
	err := v.Update(func(tx *store.Tx) error { return operator.DeleteSecretTx(tx, show.Actor(v), v.PathID()) })
	if err != nil {
		return nil, err
	}
	c.refreshNow(v, "a deleted key", c.Catalog.Refresh)
	return page.To(providersPath, "deleted"), nil
}

// providerForm returns the form of the first step.
func (c *console) providerForm() ui.PostForm {
	vendor := ui.FormField{Name: "vendor", Label: "Vendor", Kind: ui.Choice}
	for _, v := range provider.Vendors() {
		vendor.Options = append(vendor.Options, ui.Option{Value: v.ID, Label: ui.Words(v.Name)})
	}
	hint := ui.Words("From the vendor's page. It is stored encrypted and never shown again.")
	if c.SecretKeys.Empty() {
		hint = "This installation has no secret_key, so keys cannot be stored: name a file or a variable below, " +
			"or set secret_key_file and restart."
	}
	fields := []ui.FormField{
		vendor,
		{Name: "key", Label: "Key", Kind: "password", Hint: hint},
		{Name: "reference", Label: "Or where the key is", Hint: "${NAME} for an environment variable, ${file:/run/secrets/key} for a file."},
		{Name: "base_url", Label: "Address", Hint: "Only for another API than the vendor's usual one. Most end in /v1."},
		{Name: "line", Label: "Name", Hint: "Of the line in the catalog. Default: the vendor's name."},
	}
	return ui.PostForm{Action: page.Base + providersPath + "/new", Submit: "Test and go on", Cancel: page.Base + providersPath, Fields: fields}
}

func (c *console) newProvider(*page.Visit) (page.Responder, error) {
	return c.providerFormPage(c.providerForm()), nil
}

func (c *console) providerFormPage(form ui.PostForm) page.FullPage {
	content := newProviderPage{Form: form}
	for _, v := range provider.Vendors() {
		if v.KeyPage != "" {
			content.KeyPages = append(content.KeyPages, ui.Fact{Name: ui.Data(v.Name), Value: v.KeyPage})
		}
	}
	return page.FullPage{Name: "newprovider", Title: "Add a provider", Main: content}
}

// testProvider makes the test call with a new key. If the call succeeds, testProvider stores the key, unless it
// is a reference, and shows the models.
func (c *console) testProvider(v *page.Visit) (page.Responder, error) {
	form := c.providerForm()
	return v.Submit(&form, func() (page.Responder, error) {
		value := func(name string) string { return strings.TrimSpace(form.Field(name).Value) }
		vendor, ok := provider.VendorByID(value("vendor"))
		if !ok {
			return nil, fault.At(fault.InvalidRequest, "vendor", "Choose a vendor.")
		}
		offer := provider.LineOffer{Vendor: vendor, Line: value("line"), BaseURL: strings.TrimRight(value("base_url"), "/"),
			APIKey: value("reference")}
		if offer.Line == "" {
			offer.Line = vendor.ID
		}
		if offer.BaseURL == "" {
			offer.BaseURL = vendor.BaseURL
		}
		if err := c.checkNewLine(v, &offer, value("key")); err != nil {
			return nil, err
		}
		connection := provider.Connection{Vendor: vendor, BaseURL: offer.BaseURL, Key: value("key")}
		if offer.APIKey != "" {
			var problem string
			if connection.Key, problem = c.Catalog.Resolve(offer.APIKey); problem != "" {
				return nil, fault.At(fault.InvalidRequest, "reference", "The key cannot be read: %s.", problem)
			}
		}
		ids, err := c.askModels(v, connection)
		if err != nil {
			return nil, err
		}
		if value("key") != "" {
			offer.APIKey = secret.ReferenceTo(offer.Line)
			if err := v.Update(func(tx *store.Tx) error {
				return operator.StoreSecretTx(tx, show.Actor(v), c.SecretKeys, offer.Line, value("key"))
			}); err != nil {
				return nil, atKey(err)
			}
			c.refreshNow(v, "the new key", c.Catalog.Refresh)
		}
		return c.chooseModels(offer, nil, ids), nil
	}, func() (page.FullPage, error) { return c.providerFormPage(form), nil })
}

// atKey moves the error about a secret's value to the field of the key.
func atKey(err error) error {
	if f, ok := errors.AsType[*fault.Error](err); ok && (f.Param == "value" || f.Param == "") {
		return fault.At(fault.InvalidRequest, "key", "%s", strings.Replace(f.Message(), "value", "The key", 1))
	}
	return err
}

// checkNewLine checks the fields of a new line. key is the pasted key; it may be empty.
func (c *console) checkNewLine(v *page.Visit, o *provider.LineOffer, key string) error {
	u, err := url.Parse(o.BaseURL)
	switch {
	case !catalog.IsLineID(o.Line), o.Line == "new":
		return fault.At(fault.InvalidRequest, "line", "The name must begin with a letter or digit and contain only letters, digits and . _ - "+
			"(and not be new).")
	case o.BaseURL == "":
		return fault.At(fault.InvalidRequest, "base_url", "Enter the address of the API. Most end in /v1.")
	case err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Hostname() == "" || u.User != nil ||
		u.RawQuery != "" || u.Fragment != "":
		return fault.At(fault.InvalidRequest, "base_url",
			"Enter an address such as https://api.example.com/v1, without a user, a query or a fragment.")
	case key != "" && o.APIKey != "":
		return fault.At(fault.InvalidRequest, "reference", "Enter the key or where it is, and not both.")
	case key == "" && o.APIKey == "" && !o.Vendor.Keyless:
		return fault.At(fault.InvalidRequest, "key", "Paste the key from the vendor's page.")
	case strings.ContainsAny(key, "\r\n\t "):
		return fault.At(fault.InvalidRequest, "key", "The key has a space or a line break in it. Paste only the key.")
	case o.APIKey != "" && !secret.IsReference(o.APIKey):
		return fault.At(fault.InvalidRequest, "reference", "Write ${NAME}, or ${file:PATH}, and not the key itself.")
	case key != "" && c.SecretKeys.Empty():
		return fault.At(fault.InvalidRequest, "key", "This installation has no secret_key to encrypt keys with. Write the output of "+
			"`openssl rand -base64 32` to a file, set secret_key_file to it on every node, and restart. Or name a file or variable below.")
	}
	doc, _, err := c.currentDocument(v)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(doc.Lines, func(l catalog.LineSpec) bool { return l.ID == o.Line }) {
		return fault.At(fault.InvalidRequest, "line",
			"There is a line %s already. Open it in the list of providers, or choose another name.", o.Line)
	}
	if lines := doc.LinesWithSecret(o.Line); key != "" && len(lines) > 0 {
		return fault.At(fault.InvalidRequest, "line", "Line %s uses a stored key with this name. Choose another name.", lines[0])
	}
	return nil
}

// currentDocument returns the current catalog, or an empty catalog with the revision 0.
func (c *console) currentDocument(v *page.Visit) (doc *catalog.Document, revision int64, err error) {
	err = v.View(func(tx *store.Tx) (err error) {
		doc, revision, err = catalog.CurrentTx(tx)
		return err
	})
	if errors.Is(err, catalog.ErrNoRevision) {
		return &catalog.Document{}, 0, nil
	}
	return doc, revision, err
}

// askModels makes the test call, which returns the ids of the provider's models.
func (c *console) askModels(v *page.Visit, connection provider.Connection) ([]string, error) {
	ctx, cancel := context.WithTimeout(v.Context(), testTimeout)
	defer cancel()
	return connection.ListModels(ctx, c.ProviderHTTP)
}

// showProvider shows a line with its prices.
func (c *console) showProvider(v *page.Visit) (page.Responder, error) {
	content, err := c.providerContent(v)
	if err != nil {
		return nil, err
	}
	return page.FullPage{Name: "provider", Title: ui.Data(content.Line), Main: content}, nil
}

// lineOf returns the line in the path, with its vendor. It returns a 404 fault if the form cannot change the
// line.
func (c *console) lineOf(v *page.Visit) (doc *catalog.Document, revision int64, offer provider.LineOffer, line *catalog.LineSpec,
	err error) {
	if doc, revision, err = c.currentDocument(v); err != nil {
		return nil, 0, offer, nil, err
	}
	i := slices.IndexFunc(doc.Lines, func(l catalog.LineSpec) bool { return l.ID == v.PathID() })
	if i >= 0 {
		line = &doc.Lines[i]
		vendor, ok := provider.VendorOf(line)
		offer = provider.LineOffer{Line: line.ID, Vendor: vendor, BaseURL: line.BaseURL, APIKey: line.APIKey}
		if line.Margin != nil {
			offer.Margin = *line.Margin
		}
		if ok {
			return doc, revision, offer, line, nil
		}
	}
	return nil, 0, offer, nil, fault.New(fault.NotFound, "There is no such line that the form can change. Edit the catalog instead.")
}

func (c *console) providerContent(v *page.Visit) (content providerPage, err error) {
	doc, revision, offer, line, err := c.lineOf(v)
	if err != nil {
		return content, err
	}
	content = providerPage{Line: line.ID, Vendor: ui.Words(offer.Vendor.Name), Key: keyForm(line.ID),
		Models: ui.Button{Action: page.Base + providersPath + "/" + url.PathEscape(line.ID) + "/models", Label: "Test and add models"}}
	if secret.StoredName(line.APIKey) == "" {
		content.Key = ui.PostForm{}
	}
	content.Prices = offerForm(offer, true, revision)
	var ids []string
	for _, m := range doc.Models {
		if id, ok := line.Models[m.ID]; ok && m.Kind == catalog.KindChat {
			ids = append(ids, id)
		}
	}
	fillModels(&content.Prices, offer.Vendor, doc, line, ids)
	return content, nil
}

func keyForm(line string) ui.PostForm {
	return ui.PostForm{Action: page.Base + providersPath + "/" + url.PathEscape(line) + "/key", Submit: "Test and replace",
		Fields: []ui.FormField{{Name: "key", Label: "New key", Kind: "password", Required: true,
			Hint: "Requests that are running finish with the old one."}}}
}

// replaceProviderKey tests a new key and stores it in place of the line's key.
func (c *console) replaceProviderKey(v *page.Visit) (page.Responder, error) {
	form := keyForm(v.PathID())
	return v.Submit(&form, func() (page.Responder, error) {
		_, _, offer, line, err := c.lineOf(v)
		if err != nil {
			return nil, err
		}
		key, name := strings.TrimSpace(form.Field("key").Value), secret.StoredName(line.APIKey)
		if name == "" || key == "" || strings.ContainsAny(key, "\r\n\t ") {
			return nil, fault.At(fault.InvalidRequest, "key", "Paste only the key from the vendor's page.")
		}
		if _, err := c.askModels(v, connectionOf(offer, key)); err != nil {
			return nil, toField(err, "key")
		}
		if err := v.Update(func(tx *store.Tx) error {
			return operator.StoreSecretTx(tx, show.Actor(v), c.SecretKeys, name, key)
		}); err != nil {
			return nil, atKey(err)
		}
		c.refreshNow(v, "the new key", c.Catalog.Refresh)
		return page.To(providersPath, "key"), nil
	}, func() (page.FullPage, error) {
		content, err := c.providerContent(v)
		content.Key = form
		return page.FullPage{Name: "provider", Title: ui.Data(content.Line), Main: content}, err
	})
}

// connectionOf returns the connection of a line with a key. If the line has no address, the vendor's is used.
func connectionOf(o provider.LineOffer, key string) provider.Connection {
	base := o.BaseURL
	if base == "" {
		base = o.Vendor.BaseURL
	}
	return provider.Connection{Vendor: o.Vendor, BaseURL: strings.TrimRight(base, "/"), Key: key}
}

// toField moves the error of a test call to a field. It is for forms without a field for the address.
func toField(err error, field string) error {
	if f, ok := errors.AsType[*fault.Error](err); ok {
		return fault.At(fault.InvalidRequest, field, "%s", f.Message())
	}
	return err
}

// listProviderModels makes the test call with a line's key and shows its models.
func (c *console) listProviderModels(v *page.Visit) (page.Responder, error) {
	_, _, offer, line, err := c.lineOf(v)
	if err != nil {
		return nil, err
	}
	key, problem := "", ""
	if offer.APIKey != "" {
		key, problem = c.Catalog.Resolve(offer.APIKey)
	}
	if problem != "" {
		return nil, fault.New(fault.InvalidRequest, "The key cannot be read: %s.", problem)
	}
	ids, err := c.askModels(v, connectionOf(offer, key))
	if err != nil {
		return nil, err
	}
	return c.chooseModels(offer, line, ids), nil
}

// percent formats a margin as a percentage, without the sign.
func percent(margin money.Factor) string {
	return (money.Price(margin) * 100_000).String() // millionths to nano, times 100
}
