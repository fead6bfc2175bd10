package operatorpages

import (
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"tollgate/internal/catalog"
	"tollgate/internal/console/page"
	"tollgate/internal/console/show"
	"tollgate/internal/console/ui"
	"tollgate/internal/fault"
	"tollgate/internal/money"
	"tollgate/internal/operator"
	"tollgate/internal/provider"
	"tollgate/internal/store"
)

// Bounds of the forms.
const (
	maxListedModels = 2000    // in the choice
	maxPricedModels = 100     // in one form of prices
	maxPricesForm   = 1 << 20 // bytes
)

// defaultMargin is the margin that the form suggests, in percent.
const defaultMargin = "20"

// pricesPage has a line's models with their costs and prices, and the preview of the catalog.
type pricesPage struct {
	Line    string
	Vendor  ui.Words
	Form    ui.PostForm
	Preview *catalogEditPage // nil before the fields are complete
}

// offerFields returns the hidden fields that carry an offer from step to step. exists is true for a line in the
// catalog. LineOffer.Document ignores the address and the key in the fields of such a line.
func offerFields(o provider.LineOffer, exists bool) []ui.FormField {
	existsText := ""
	if exists {
		existsText = "yes"
	}
	return []ui.FormField{{Name: "line", Kind: ui.Hidden, Value: o.Line}, {Name: "vendor", Kind: ui.Hidden, Value: o.Vendor.ID},
		{Name: "base_url", Kind: ui.Hidden, Value: o.BaseURL}, {Name: "api_key", Kind: ui.Hidden, Value: o.APIKey},
		{Name: "exists", Kind: ui.Hidden, Value: existsText}}
}

// readOffer returns the offer in the hidden fields, and its line in doc. The line is nil if it is new.
func (c *console) readOffer(form *ui.PostForm, doc *catalog.Document) (o provider.LineOffer, line *catalog.LineSpec, err error) {
	value := func(name string) string { return form.Field(name).Value }
	incomplete := fault.New(fault.InvalidRequest, "This form is incomplete. Begin again on the page Providers.")
	vendor, ok := provider.VendorByID(value("vendor"))
	if !ok || !catalog.IsLineID(value("line")) {
		return o, nil, incomplete
	}
	o = provider.LineOffer{Line: value("line"), Vendor: vendor, BaseURL: value("base_url"), APIKey: value("api_key")}
	i := slices.IndexFunc(doc.Lines, func(l catalog.LineSpec) bool { return l.ID == o.Line })
	switch {
	case i >= 0 && value("exists") == "":
		return o, nil, fault.New(fault.InvalidRequest, "Somebody has added a line %s in the meantime. Begin again on the page Providers.", o.Line)
	case i < 0 && value("exists") != "":
		return o, nil, fault.New(fault.InvalidRequest, "Somebody has removed the line %s in the meantime, so nothing was changed.", o.Line)
	case i >= 0:
		line = &doc.Lines[i]
	}
	return o, line, nil
}

// modelsForm returns the form to choose models. ids are the provider's models.
func modelsForm(o provider.LineOffer, exists bool, ids []string) ui.PostForm {
	choice := ui.FormField{Name: "models", Label: "Models to sell", Kind: ui.Checks,
		Hint: ui.Sayf("At most %s at a time. Prices are the vendor's, as known to this version.", strconv.Itoa(maxPricedModels))}
	option := func(id string, listed bool, label ui.Words) {
		choice.Options = append(choice.Options, ui.Option{Value: id, Label: label, Selected: listed && o.Vendor.BaseURL != ""})
	}
	for _, id := range ids { // models with a known price come first
		if l, ok := o.Vendor.ListedModel(id); ok {
			option(id, true, ui.Sayf("%s: %s in, %s out per million tokens", id, show.Price(l.Cost.Input, 0), show.Price(l.Cost.Output, 0)))
		}
	}
	for _, id := range ids {
		if _, ok := o.Vendor.ListedModel(id); !ok {
			option(id, false, ui.Data(id))
		}
	}
	return ui.PostForm{Action: page.Base + providersPath + "/choose", Submit: "Set prices", Cancel: page.Base + providersPath,
		Fields: append(offerFields(o, exists), ui.FormField{Name: "all", Kind: ui.Hidden, Value: strings.Join(ids, " ")}, choice)}
}

// chooseModels shows the models of a provider. line is nil for a new line.
func (c *console) chooseModels(o provider.LineOffer, line *catalog.LineSpec, ids []string) page.Responder {
	return modelsPage(o, modelsForm(o, line != nil, ids[:min(len(ids), maxListedModels)]))
}

func modelsPage(o provider.LineOffer, form ui.PostForm) page.FullPage {
	return page.FullPage{Name: "providermodels", Title: ui.Sayf("Models of %s", o.Line),
		Main: providerModelsPage{Line: o.Line, Vendor: ui.Words(o.Vendor.Name), Form: form}}
}

// formValues returns the values in the request's form. The fields of the form depend on these values.
func formValues(v *page.Visit) (url.Values, error) {
	body, err := v.Body(maxPricesForm)
	if err != nil {
		return nil, err
	}
	values, err := url.ParseQuery(string(body))
	if err != nil {
		return nil, fault.New(fault.InvalidRequest, "This form cannot be read. Reload the page and send it again.")
	}
	return values, nil
}

// choosePrices shows the prices of the chosen models.
func (c *console) choosePrices(v *page.Visit) (page.Responder, error) {
	values, err := formValues(v)
	if err != nil {
		return nil, err
	}
	ids := slices.DeleteFunc(strings.Fields(values.Get("all")), func(id string) bool { return !catalog.IsModelID(id) })
	vendor, _ := provider.VendorByID(values.Get("vendor"))
	form := modelsForm(provider.LineOffer{Vendor: vendor}, false, ids[:min(len(ids), maxListedModels)])
	if err := v.ReadLongForm(&form, maxPricesForm); err != nil {
		return nil, err
	}
	doc, revision, err := c.currentDocument(v)
	if err != nil {
		return nil, err
	}
	o, line, err := c.readOffer(&form, doc)
	if err != nil {
		return nil, err
	}
	var chosen []string
	for _, option := range form.Field("models").Options {
		if option.Selected {
			chosen = append(chosen, option.Value)
		}
	}
	if len(chosen) == 0 || len(chosen) > maxPricedModels {
		form.AddError("models", ui.Sayf("Choose at least one model, and at most %s.", strconv.Itoa(maxPricedModels)))
		p := modelsPage(o, form)
		p.Status = http.StatusUnprocessableEntity
		return p, nil
	}
	if line != nil && line.Margin != nil {
		o.Margin = *line.Margin
	}
	prices := offerForm(o, line != nil, revision)
	fillModels(&prices, o.Vendor, doc, line, chosen)
	return pricesPageOf(o, prices, nil), nil
}

func pricesPageOf(o provider.LineOffer, form ui.PostForm, preview *catalogEditPage) page.FullPage {
	return page.FullPage{Name: "providerprices", Title: ui.Sayf("Prices of %s", o.Line),
		Main: pricesPage{Line: o.Line, Vendor: ui.Words(o.Vendor.Name), Form: form, Preview: preview}}
}

// offerForm returns the form of a line's prices, without its models. revision is the base of the prices.
func offerForm(o provider.LineOffer, exists bool, revision int64) ui.PostForm {
	margin := defaultMargin
	if exists && o.Margin > 0 {
		margin = percent(o.Margin)
	}
	return ui.PostForm{Action: page.Base + providersPath + "/prices", Submit: "Preview", Cancel: page.Base + providersPath,
		Fields: append(offerFields(o, exists), ui.FormField{Name: "base", Kind: ui.Hidden, Value: revisionText(revision)},
			ui.FormField{Name: "sure", Kind: ui.Hidden},
			ui.FormField{Name: "margin", Label: "Margin on cost", After: "%", Value: margin, Numeric: true, Required: true,
				Hint: "Your prices are the costs plus this share of them."})}
}

// Names of the fields of a model. The number of the model follows.
const (
	modelInput, inputCost, outputCost = "model", "input", "output"
	contextInput, answerInput         = "context", "answer"
)

// addModel adds the fields of a model.
func addModel(form *ui.PostForm, n int, id, input, output, context, answer string) {
	number := strconv.Itoa(n)
	form.Fields = append(form.Fields, ui.FormField{Name: modelInput + number, Kind: ui.Hidden, Value: id},
		ui.FormField{Name: inputCost + number, Label: "Cost of input", Before: "$", Value: input, Numeric: true, Required: true},
		ui.FormField{Name: outputCost + number, Label: "Cost of output", Before: "$", Value: output, Numeric: true, Required: true},
		ui.FormField{Name: contextInput + number, Label: "Context window", Value: context, Numeric: true, Required: true},
		ui.FormField{Name: answerInput + number, Label: "Longest answer", Value: answer, Numeric: true, Required: true})
}

// fillModels adds models to a form. Costs come from the line, or else from the vendor's list prices. Limits
// come from the catalog, or else from the vendor's list.
func fillModels(form *ui.PostForm, vendor provider.ChatVendor, doc *catalog.Document, line *catalog.LineSpec, ids []string) {
	for n, id := range ids[:min(len(ids), maxPricedModels)] {
		listed, _ := vendor.ListedModel(id)
		rates := listed.Cost.Rates
		hasCost, inCatalog := listed.Cost.Output > 0, id
		if line != nil {
			inCatalog = provider.CatalogID(line, id)
			if cost := line.Costs.Models[inCatalog].Rates; cost != nil {
				rates, hasCost = *cost, true
			}
		}
		input, output := "", ""
		if hasCost {
			input, output = rates.Input.String(), rates.Output.String()
		}
		if i := slices.IndexFunc(doc.Models, func(m catalog.Model) bool { return m.ID == inCatalog }); i >= 0 && doc.Models[i].ContextWindow > 0 {
			listed.Context, listed.MaxOutput = doc.Models[i].ContextWindow, doc.Models[i].MaxOutputTokens
		}
		addModel(form, n, id, input, output, tokens(listed.Context), tokens(listed.MaxOutput))
	}
}

func tokens(n int64) string {
	if n == 0 {
		return ""
	}
	return strconv.FormatInt(n, 10)
}

// putPrices previews the catalog with the prices in the form. If the operator has confirmed the preview,
// putPrices applies the catalog instead.
func (c *console) putPrices(v *page.Visit) (page.Responder, error) {
	values, err := formValues(v)
	if err != nil {
		return nil, err
	}
	form := offerForm(provider.LineOffer{}, false, 0)
	for n := 0; n < maxPricedModels && values.Has(modelInput+strconv.Itoa(n)); n++ {
		addModel(&form, n, "", "", "", "", "")
	}
	if err := v.ReadLongForm(&form, maxPricesForm); err != nil {
		return nil, err
	}
	doc, revision, err := c.currentDocument(v)
	if err != nil {
		return nil, err
	}
	o, _, err := c.readOffer(&form, doc)
	if err != nil {
		return nil, err
	}
	base, sure := form.Field("base").Value, form.Field("sure").Value != ""
	form.Field("sure").Value, form.Field("base").Value = "", revisionText(revision)
	rejected := func() (page.Responder, error) {
		p := pricesPageOf(o, form, nil)
		p.Status = http.StatusUnprocessableEntity
		return p, nil
	}
	if readPrices(&form, &o); form.Invalid() {
		return rejected()
	}
	next, warnings, err := catalog.Parse(o.Document(doc).YAML(), c.Providers)
	var faults catalog.Faults
	if errors.As(err, &faults) {
		form.Error = ui.Sayf("The catalog would not be valid: %s.", faults[0].String())
		return rejected()
	}
	if err != nil {
		return nil, err
	}
	if sure && base == revisionText(revision) {
		applied, err := c.apply(v, next, revision)
		switch {
		case errors.Is(err, operator.ErrApplied): // preview the changes to the newer catalog
			return c.putPrices(v)
		case err != nil:
			return nil, err
		case applied.Revision == revision:
			return page.To(providersPath, "same"), nil
		default:
			return page.To(providersPath, "applied"), nil
		}
	}
	preview := catalogEditPage{Base: revision, Form: form}
	if sure { // another catalog was applied, so compareTx must report a conflict
		preview.Base--
	}
	for _, w := range warnings {
		preview.Warnings = append(preview.Warnings, w.String())
	}
	if err := v.View(func(tx *store.Tx) error { return preview.compareTx(tx, next) }); err != nil {
		return nil, err
	}
	p := pricesPageOf(o, form, &preview)
	if preview.Conflict != nil {
		p.Status = http.StatusConflict
		preview.Conflict.Text = ui.Sayf("Somebody has applied revision %s in the meantime. The changes below are from that "+
			"revision. Look at them, and apply them.", revisionText(revision))
	}
	return p, nil
}

// readPrices reads the margin and the models from a form into o. It adds errors and sale prices to the fields.
func readPrices(form *ui.PostForm, o *provider.LineOffer) {
	margin := form.Field("margin")
	if p, err := money.ParsePrice(strings.TrimSpace(margin.Value)); err != nil || p%100_000 != 0 || p > 1000*money.Price(money.USD) {
		margin.Error = "The margin must be a number from 0 to 1000, with at most 4 decimals."
	} else {
		o.Margin = money.Factor(p / 100_000)
	}
	for n := range maxPricedModels {
		number := strconv.Itoa(n)
		id := form.Field(modelInput + number)
		if id == nil {
			return
		}
		m := provider.SoldModel{ID: id.Value}
		if !catalog.IsModelID(m.ID) {
			form.Error = "This form is incomplete. Begin again on the page Providers."
			return
		}
		cost := func(name string, to *money.Price) {
			field := form.Field(name + number)
			p, err := money.ParsePrice(strings.TrimSpace(field.Value))
			if err != nil {
				field.Error = ui.Sayf("Enter what the vendor takes for a million tokens of %s, in US dollars.", m.ID)
			}
			*to = p
		}
		count := func(name, what string, to *int64) {
			field := form.Field(name + number)
			count, err := strconv.ParseInt(strings.TrimSpace(field.Value), 10, 64)
			if err != nil || count < 1 {
				field.Error = ui.Sayf("Enter the %s of %s, in tokens.", what, m.ID)
			}
			*to = count
		}
		cost(inputCost, &m.Input)
		cost(outputCost, &m.Output)
		count(contextInput, "context window", &m.Context)
		count(answerInput, "longest answer", &m.MaxOutput)
		form.Field(inputCost + number).Hint = ui.Sayf("Sells at %s", show.Price(o.Sale(m.Input), 0))
		form.Field(outputCost + number).Hint = ui.Sayf("Sells at %s", show.Price(o.Sale(m.Output), 0))
		o.Models = append(o.Models, m)
	}
}

// Fields returns the fields that belong to no model.
func (p pricesPage) Fields() (fields []ui.FormField) { return fieldsOf(p.Form) }

// Models returns the models with their fields.
func (p pricesPage) Models() []pricedModel { return modelsOf(p.Form) }

// PricedModels returns the models with their fields.
func (p providerPage) PricedModels() []pricedModel { return modelsOf(p.Prices) }

// Fields returns the fields that belong to no model.
func (p providerPage) Fields() []ui.FormField { return fieldsOf(p.Prices) }

// pricedModel is a model with its fields in a form of prices. The first field is hidden.
type pricedModel struct {
	ID     string
	Fields []ui.FormField
}

func modelsOf(form ui.PostForm) (all []pricedModel) {
	for i, f := range form.Fields {
		if strings.HasPrefix(f.Name, modelInput) && i+5 <= len(form.Fields) {
			all = append(all, pricedModel{f.Value, form.Fields[i : i+5]})
		}
	}
	return all
}

func fieldsOf(form ui.PostForm) (fields []ui.FormField) {
	i := slices.IndexFunc(form.Fields, func(f ui.FormField) bool { return strings.HasPrefix(f.Name, modelInput) })
	if i < 0 {
		return form.Fields
	}
	return form.Fields[:i]
}
