package userpages

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"tollgate/internal/account"
	"tollgate/internal/catalog"
	"tollgate/internal/console/page"
	"tollgate/internal/console/show"
	"tollgate/internal/console/ui"
	"tollgate/internal/job/gallery"
	"tollgate/internal/job/row"
	"tollgate/internal/ledger/requestlog"
	"tollgate/internal/store"
	"tollgate/internal/wire"
)

// playgroundPage is the page to try models. playground.js sends the prompt to the API.
type playgroundPage struct {
	Kinds    ui.Tabs
	Kind     catalog.Kind
	Chat     bool
	Files    string // types of attachments, as in the accept attribute
	Models   string // JSON of []modelChoice, for playground.js
	Base     string // base address of the API in code
	Model    ui.FormField
	Key      ui.FormField
	Settings []ui.FormField
	Prompt   ui.FormField
	Samples  ui.Tabs // prompts to begin with
	Codes    ui.Snippets
	Empty    *ui.EmptyState
}

// modelChoice is a model's data for playground.js.
type modelChoice struct {
	ID         string      `json:"id"`
	Label      string      `json:"label"`
	Keys       []string    `json:"keys"` // keys with access to the model
	Forms      []wire.Form `json:"forms,omitempty"`
	Tiers      []string    `json:"tiers,omitempty"`
	Ratios     []string    `json:"ratios,omitempty"`
	Seconds    []int64     `json:"seconds,omitempty"`
	Images     int64       `json:"images,omitempty"`     // maximum per submission
	References int64       `json:"references,omitempty"` // maximum per submission
	Output     int64       `json:"output,omitempty"`     // maximum in tokens
}

// maxKeys bounds the keys in a choice.
const maxKeys = 200

// olderKeys is the last option in a choice of keys if the account has more keys.
var olderKeys = fmt.Sprintf("the newest %d; older ones have their pages under Keys", maxKeys)

func (c *console) playground(v *page.Visit) (page.Responder, error) {
	content := playgroundPage{Kind: catalog.Kind(v.Query("kind")), Base: v.PublicURL(), Files: "image/png,image/jpeg,image/webp,image/gif"}
	model, key, prompt := v.Query("model"), v.Query("key"), v.Query("prompt")
	var keys []account.Key
	var test, more bool
	if err := v.View(func(tx *store.Tx) (err error) {
		if again := v.Query("again"); again != "" {
			e, err := gallery.GetTx(tx, v.Account(), again)
			if err != nil && !errors.Is(err, row.ErrNoJob) {
				return err
			}
			if err == nil {
				content.Kind, model, key, prompt = catalog.Kind(e.Kind), e.Model, e.Key, e.Prompt
			}
		}
		a, err := account.GetTx(tx, v.Account())
		if err != nil {
			return err
		}
		test = a.Test
		keys, more, err = chosenKeysTx(tx, v.Account(), key)
		return err
	}); err != nil {
		return nil, err
	}
	if m, ok := c.Catalog.Current().Model(model); ok {
		content.Kind = m.Kind
	}
	if content.Kind != catalog.KindImage && content.Kind != catalog.KindVideo {
		content.Kind = catalog.KindChat
	}
	content.Chat = content.Kind == catalog.KindChat
	content.Kinds.Label = "What to make"
	for _, kind := range show.Kinds() {
		if catalog.Kind(kind.Value).Definition() != nil {
			continue
		}
		content.Kinds.Items = append(content.Kinds.Items, ui.Tab{Href: page.Base + "/playground?kind=" + kind.Value, Text: kind.Label,
			Current: kind.Value == string(content.Kind)})
	}
	if err := c.choices(&content, keys, test, model, key); err != nil {
		return nil, err
	}
	if more {
		content.Key.Options = append(content.Key.Options, ui.Option{Label: olderKeys, Disabled: true})
	}
	content.Prompt = ui.FormField{Name: "prompt", Label: "Message", Kind: ui.Area, Value: prompt}
	if !content.Chat {
		content.Prompt.Label = "Prompt"
	}
	content.Samples = samplePrompts(content.Kind)
	content.Codes = ui.Snippets{ID: "code", Tabs: []ui.Snippet{{Name: "curl"}, {Name: "Python"}, {Name: "Node"}, {Name: "Go"}}}
	return page.FullPage{Name: "playground", Title: "Playground", Main: content}, nil
}

// samples are prompts to begin with, by kind.
var samples = map[catalog.Kind][]string{
	catalog.KindChat: {"Explain how tides work, in three sentences.", "Write a haiku about a gate that takes a toll.",
		"Which of 0.9 and 0.11 is larger, and why?"},
	catalog.KindImage: {"A lighthouse in the fog, film grain", "A map of an island that does not exist, ink on paper"},
	catalog.KindVideo: {"A paper boat drifts down a gutter in the rain", "Clouds move over a mountain, seen from above"},
}

func samplePrompts(kinds ...catalog.Kind) ui.Tabs {
	tabs := ui.Tabs{Label: "Prompts to begin with"}
	for _, kind := range kinds {
		for _, prompt := range samples[kind] {
			tabs.Items = append(tabs.Items, ui.Tab{Text: prompt,
				Href: page.AddressOf("/playground", url.Values{"kind": {string(kind)}, "prompt": {prompt}})})
		}
	}
	return tabs
}

// choices fills in the keys, the models for the chosen key, and the settings of the kind. test is
// true for a test account.
func (c *console) choices(content *playgroundPage, keys []account.Key, test bool, model, key string) error {
	content.Model = ui.FormField{Name: "model", Label: "Model", Kind: ui.Choice}
	content.Key = ui.FormField{Name: "key", Label: "Key that pays", Kind: ui.Choice}
	keys = slices.DeleteFunc(slices.Clone(keys), func(k account.Key) bool { return k.Ledger.Limits.Disabled })
	now := c.offer()
	var models []modelChoice
	for _, m := range now.Catalog.Models() {
		if m.Kind != content.Kind || m.State != catalog.StateOpen {
			continue
		}
		if t := newModelChoice(m); t.setKeys(now.Catalog, keys, test) {
			models = append(models, t)
		}
	}
	payingKey := chooseKey(keys, models, model, key)
	for _, k := range keys {
		label := strings.TrimSpace(k.Name + " " + k.Hint)
		usable := slices.ContainsFunc(models, func(t modelChoice) bool { return slices.Contains(t.Keys, k.ID) })
		if !usable {
			label += " (no model of this kind)"
		}
		content.Key.Options = append(content.Key.Options, ui.Option{Value: k.ID, Label: label, Selected: k.ID == payingKey, Disabled: !usable})
	}
	offered := slices.DeleteFunc(slices.Clone(models), func(t modelChoice) bool { return !slices.Contains(t.Keys, payingKey) })
	fits := func(m *catalog.Model) bool {
		return slices.ContainsFunc(offered, func(t modelChoice) bool { return t.ID == m.ID })
	}
	if m, ok := now.Catalog.Model(model); !ok || !fits(m) {
		if m = now.First(fits); m != nil {
			model = m.ID
		}
	}
	for _, t := range offered {
		content.Model.Options = append(content.Model.Options, ui.Option{Value: t.ID, Label: t.Label, Selected: t.ID == model})
	}
	switch {
	case len(keys) == 0:
		content.Empty = &ui.EmptyState{Title: "No enabled key", Text: "The playground uses one of your keys, within its limits.",
			Link: &ui.Link{Href: page.Base + "/keys/new", Text: "Create a key", Button: true, Main: true}}
	case len(models) == 0:
		content.Empty = &ui.EmptyState{Title: "No models", Text: "None of your keys can use an open model of this kind."}
	}
	content.Settings = settingsFor(content.Kind)
	raw, err := json.Marshal(models)
	content.Models = string(raw)
	return err
}

// setKeys sets the keys with access to the model, and reports whether there are any.
func (t *modelChoice) setKeys(now *catalog.Snapshot, keys []account.Key, test bool) bool {
	t.Label = show.ModelLabel(now, t.ID)
	for _, k := range keys {
		if show.Allows(k.AllowedModels, t.ID) && !now.HidesSandbox(t.ID, test, k.AllowedModels) {
			t.Keys = append(t.Keys, k.ID)
		}
	}
	return len(t.Keys) > 0
}

// chooseKey returns the key that pays. It prefers the requested key if this key has access to any
// model, then the first key with access to the requested model, then the first with access to any.
func chooseKey(keys []account.Key, models []modelChoice, model, requested string) string {
	usable := func(key, model string) bool {
		return slices.ContainsFunc(models, func(t modelChoice) bool { return (model == "" || t.ID == model) && slices.Contains(t.Keys, key) })
	}
	if requested != "" && usable(requested, "") {
		return requested
	}
	for _, id := range []string{model, ""} {
		for _, k := range keys {
			if usable(k.ID, id) {
				return k.ID
			}
		}
	}
	return ""
}

func newModelChoice(m *catalog.Model) modelChoice {
	t := modelChoice{ID: m.ID, Forms: m.Forms, Ratios: m.Ratios, Images: m.MaxImages, References: m.MaxReferences,
		Seconds: slices.Clone(m.Durations.List), Output: m.MaxOutputTokens}
	for _, tier := range m.Tiers {
		t.Tiers = append(t.Tiers, tier.Name)
	}
	for n := m.Durations.Min; n > 0 && n <= m.Durations.Max && len(m.Durations.List) == 0; n++ {
		t.Seconds = append(t.Seconds, n)
	}
	return t
}

// settingsFor returns the fields of a kind. playground.js fills in the options of the model.
func settingsFor(kind catalog.Kind) []ui.FormField {
	first := []ui.Option{{Value: "", Label: "the model's default"}}
	switch kind {
	case catalog.KindImage:
		return []ui.FormField{{Name: "resolution", Label: "Resolution", Kind: ui.Choice, Options: first},
			{Name: "ratio", Label: "Ratio", Kind: ui.Choice, Options: first},
			{Name: "n", Label: "Images", Kind: ui.Choice, Options: []ui.Option{{Value: "", Label: "1"}}}}
	case catalog.KindVideo:
		return []ui.FormField{{Name: "resolution", Label: "Resolution", Kind: ui.Choice, Options: first},
			{Name: "ratio", Label: "Ratio", Kind: ui.Choice, Options: first},
			{Name: "duration", Label: "Duration in seconds", Kind: ui.Choice, Options: first}}
	}
	return []ui.FormField{{Name: "system", Label: "System prompt", Kind: ui.Area},
		{Name: "temperature", Label: "Temperature", Numeric: true, Hint: "Leave empty for the model's default."},
		{Name: "max", Label: "Maximum answer, in tokens", Numeric: true,
			Hint: "Leave empty for the model's maximum. A lower value reserves less money."}}
}

// forwardWithKey forwards a request to an endpoint of the API with the visitor's key named in the
// path. The API applies all of its checks.
func (c *console) forwardWithKey(endpoint string) func(*page.Visit) (page.Responder, error) {
	return func(v *page.Visit) (page.Responder, error) {
		k, err := keyOf(v)
		if err != nil {
			return nil, err
		}
		r := v.Request.Clone(v.Request.Context())
		r.URL = &url.URL{Path: endpoint}
		for _, name := range []string{"Cookie", "Authorization", "X-Api-Key"} {
			r.Header.Del(name)
		}
		c.ServeAs(v, r, v.Account(), k.ID)
		return page.NoResponse{}, nil
	}
}

// costFragment shows the charge of an answer after its receipt is written.
type costFragment struct {
	Address string
	Final   bool
	Parts   ui.Group
}

func (c *console) cost(v *page.Visit) (page.Responder, error) {
	content := costFragment{Address: page.Base + "/playground/" + v.PathID() + "/cost"}
	err := v.View(func(tx *store.Tx) error {
		r, err := requestlog.GetTx(tx, v.PathID())
		if err != nil {
			return err
		}
		if r.Account != v.Account() {
			return requestlog.ErrNone
		}
		content.Final = true
		tokens := ui.Thousands(r.Tokens.Prompt) + " + " + ui.Thousands(r.Tokens.Completion) + " tokens"
		content.Parts = ui.Group{ui.Text{Text: tokens, Muted: true}, ui.Money{Amount: r.Cost}, ui.Duration{MS: r.DurationMS},
			ui.Ident{ID: r.ID, Href: page.Base + "/requests/" + r.ID}}
		return nil
	})
	if err != nil && !errors.Is(err, requestlog.ErrNone) {
		return nil, err
	}
	return page.Fragment{Name: "cost", Main: content}, nil
}
