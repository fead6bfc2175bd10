package userpages

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	"tollgate/internal/account"
	"tollgate/internal/catalog"
	"tollgate/internal/catalog/offer"
	"tollgate/internal/console/page"
	"tollgate/internal/console/show"
	"tollgate/internal/console/ui"
	"tollgate/internal/fault"
	"tollgate/internal/money"
	"tollgate/internal/store"
)

// modelPage shows one model with its abilities and prices.
type modelPage struct {
	ID     string
	State  ui.Group
	Try    *ui.Link // to the playground, or nil if the model is not open
	Facts  ui.Facts
	Prices ui.DataTable
	Coming []ui.Words // announced changes of the prices
	Codes  ui.Snippets
}

// models lists the models, or shows the model named in the query.
func (c *console) models(v *page.Visit) (page.Responder, error) {
	snapshot := c.Catalog.Current()
	var prices account.Prices
	var hidden map[string]bool
	if err := v.View(func(tx *store.Tx) (err error) {
		if hidden, err = c.hiddenModelsTx(tx, v.Account()); err != nil {
			return err
		}
		prices, err = account.PricesTx(tx, v.Account())
		return err
	}); err != nil {
		return nil, err
	}
	if id := v.Query("id"); id != "" {
		m, ok := snapshot.Model(id)
		if !ok || m.State == catalog.StateRetired || hidden[id] {
			return nil, fault.New(fault.NotFound, "There is no model with this id. It may have been retired.")
		}
		return c.showModel(v, m, prices.FactorOf(m.ID)), nil
	}
	kind, name := v.Query("kind"), strings.TrimSpace(v.Query("name"))
	content := page.List{Title: "Models", All: "All models", Path: "/models"}
	var listed []modelRow
	factors := map[string]money.Factor{}
	for _, m := range snapshot.Models() {
		if m.State == catalog.StateRetired || hidden[m.ID] || kind != "" && string(m.Kind) != kind || !matches(m.ID, name) {
			continue
		}
		r := newModelRow(snapshot, m, prices.FactorOf(m.ID))
		r.href = modelPath(m)
		listed = append(listed, r)
		factors[m.ID] = prices.FactorOf(m.ID)
	}
	content.Coming = c.comingPrices(factors)
	content.Table = modelsTable(v, content.Path, listed)
	content.Tabs = v.Tabs("/models", "Kinds", "kind", append([]ui.Option{{Label: "All"}}, show.Kinds()...))
	content.Filters = ui.Filters{Action: page.Base + "/models", Fields: []ui.FormField{{Name: "name", Label: "Name", Value: name},
		{Name: "kind", Kind: ui.Hidden, Value: kind}, {Name: "sort", Kind: ui.Hidden, Value: v.Query("sort")}}}
	if name != "" {
		content.Filters.Clear = page.Base + "/models"
	}
	return content.Page(name != "", ui.EmptyState{Title: "No models are available to you",
		Text: c.Brand.AskFor("which models are planned")}), nil
}

// pricesPath is the path of the public list of models and prices.
const pricesPath = "/prices"

// publicPrices lists the models on sale at the catalog's prices, without the factors of accounts.
func (c *console) publicPrices(v *page.Visit) (page.Responder, error) {
	snapshot := c.Catalog.Current()
	content := page.List{Title: "Models and prices", All: "All models and prices", Path: pricesPath}
	var listed []modelRow
	factors := map[string]money.Factor{}
	for _, m := range snapshot.Models() {
		if m.State != catalog.StateRetired && !snapshot.IsSandbox(m.ID) {
			listed = append(listed, newModelRow(snapshot, m, money.One))
			factors[m.ID] = money.One
		}
	}
	content.Coming = c.comingPrices(factors)
	content.Table = modelsTable(v, pricesPath, listed)
	p := content.Page(false, ui.EmptyState{Title: "No models are for sale yet"})
	p.Wide = true
	return p, nil
}

// modelPath returns the address of a model's page. The id is a parameter because it may contain a
// slash.
func modelPath(m *catalog.Model) string { return page.Base + "/models?id=" + url.QueryEscape(m.ID) }

func durations(m *catalog.Model) ui.Words {
	switch d := m.Durations; {
	case len(d.List) > 0:
		words := make([]string, len(d.List))
		for i, n := range d.List {
			words[i] = fmt.Sprint(n)
		}
		return ui.Sayf("%s s", strings.Join(words, ", "))
	case d.Max > 0:
		return ui.Sayf("%s to %s s", d.Min, d.Max)
	}
	return "any length"
}

func (c *console) showModel(v *page.Visit, m *catalog.Model, factor money.Factor) page.Responder {
	content := modelPage{ID: m.ID, State: show.ModelBadges(c.Catalog.Current(), m), Prices: pricesOf(m, factor),
		Coming: c.comingPrices(map[string]money.Factor{m.ID: factor}),
		Codes:  ui.Snippets{ID: "use", Tabs: show.ModelSnippets(v.PublicURL(), m)}}
	if _, ok := newKindForm(m.Kind); ok && m.State == catalog.StateOpen {
		content.Try = &ui.Link{Href: page.AddressOf("/playground", url.Values{"model": {m.ID}}), Text: "Try it", Icon: "play",
			Button: true, Main: true}
	}
	content.Facts = ui.Facts{{Name: "Kind", Value: show.KindName(m.Kind)}, {Name: "Owner", Value: m.Owner()}}
	add := func(name, value ui.Words) {
		if value != "" {
			content.Facts = append(content.Facts, ui.Fact{Name: name, Value: value})
		}
	}
	if c.Catalog.Current().IsSandbox(m.ID) {
		add("Sandbox", show.SandboxHint)
	}
	if m.FreeDailyRequests > 0 {
		add("Free", ui.Sayf("%s requests of your account a UTC day", ui.Thousands(m.FreeDailyRequests)))
	}
	add("Endpoints", ui.Data(strings.Join(offer.Endpoints(m), ", ")))
	switch {
	case m.Kind == catalog.KindChat:
		add("Context", ui.Sayf("%s tokens", ui.Thousands(m.ContextWindow)))
		add("Longest answer", ui.Sayf("%s tokens", ui.Thousands(m.MaxOutputTokens)))
		if m.Reasoning {
			add("Thinks", "before it answers")
		}
		add("Effort", ui.Data(strings.Join(m.Efforts, ", ")))
	case m.Kind.IsJob():
		add("Ratios", ui.Data(strings.Join(m.Ratios, ", ")))
		add("References", ui.Sayf("%s at most", ui.Thousands(m.MaxReferences)))
		add("Roles", ui.Data(strings.Join(m.Roles, ", ")))
		add("Further fields", ui.Data(strings.Join(m.Params, ", ")))
	default:
		content.Facts = append(content.Facts, show.KindFields(m)...)
	}
	switch m.Kind {
	case catalog.KindImage:
		add("Images", ui.Sayf("%s a request at most", ui.Thousands(m.MaxImages)))
	case catalog.KindVideo:
		add("Length", durations(m))
		add("Sound", map[catalog.Sound]ui.Words{
			catalog.SoundOn: "always", catalog.SoundOff: "never", catalog.SoundOptional: "as asked for"}[m.Audio])
	}
	return page.FullPage{Name: "model", Title: ui.Data(m.ID), Main: content}
}

// pricesOf lists a model's prices for an account with a factor.
func pricesOf(m *catalog.Model, factor money.Factor) ui.DataTable {
	t := ui.DataTable{Caption: ui.Sayf("Prices of %s", m.ID), Columns: []ui.Column{{Title: "For"}, {Title: "Price", Right: true},
		{Title: "Per"}}}
	add := func(item ui.Words, price money.Price, per ui.Words) {
		t.Rows = append(t.Rows, ui.DataRow{Cells: []any{item, show.Price(price, factor), per}})
	}
	if m.Kind.Definition() != nil {
		for _, unit := range m.Measure().Units {
			add(ui.Title(show.UnitName(unit)), m.UnitPrice(unit), ui.Words(m.Measure().Noun))
		}
		return t
	}
	if m.Kind.IsJob() {
		for _, tier := range m.Tiers {
			add(ui.Data(tier.Name), tier.Price, show.PriceUnit(m))
		}
		return t
	}
	const million = "million tokens"
	rates := func(r *catalog.Rates, suffix ui.Words) {
		add(ui.Sayf("Input%s", suffix), r.Input, million)
		add(ui.Sayf("Output%s", suffix), r.Output, million)
		if r.CachedInput != r.Input {
			add(ui.Sayf("Cached input%s", suffix), r.CachedInput, million)
		}
		if r.CacheWrite != r.Input {
			add(ui.Sayf("Cache write%s", suffix), r.CacheWrite, million)
		}
		if r.CacheWrite1h != r.CacheWrite {
			add(ui.Sayf("Cache write, an hour%s", suffix), r.CacheWrite1h, million)
		}
	}
	rates(&m.Price.Rates, "")
	for i := range m.Price.Bands {
		band := &m.Price.Bands[i]
		rates(&band.Rates, ui.Sayf(", prompts above %s tokens", ui.Thousands(band.PromptTokens)))
	}
	for _, tool := range sortedKeys(m.Price.Tools) {
		add(ui.Sayf("Tool %s", tool), m.Price.Tools[tool], "call")
	}
	for _, option := range sortedKeys(m.Price.Options) {
		for _, value := range sortedKeys(m.Price.Options[option]) {
			factor := m.Price.Options[option][value]
			t.Rows = append(t.Rows, ui.DataRow{Cells: []any{option + ": " + value, "× " + factor.String(), ui.Words("all of the above")}})
		}
	}
	return t
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// hiddenModelsTx reports by id which sandbox models are hidden from an account. A model is not hidden if one of
// the account's newest keys allows it.
func (c *console) hiddenModelsTx(tx *store.Tx, accountID string) (map[string]bool, error) {
	now := c.Catalog.Current()
	sandbox := now.OpenSandboxModels()
	if len(sandbox) == 0 {
		return nil, nil
	}
	a, err := account.GetTx(tx, accountID)
	if err != nil {
		return nil, err
	}
	keys, _, err := account.NewestKeysTx(tx, accountID, maxKeys)
	var allowed []string
	for _, k := range keys {
		allowed = append(allowed, k.AllowedModels...)
	}
	hidden := map[string]bool{}
	for _, id := range sandbox {
		hidden[id] = now.HidesSandbox(id, a.Test, allowed)
	}
	return hidden, err
}
