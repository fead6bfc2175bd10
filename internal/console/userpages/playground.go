package userpages

import (
	"encoding/json"
	"errors"
	"net/url"
	"slices"

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
	"tollgate/internal/wire/kind"
)

// playgroundPage is the page for trying models. playground.js sends the prompt to the API.
type playgroundPage struct {
	Kinds    ui.Tabs
	Kind     catalog.Kind
	Chat     bool
	Files    string       // types of attachments, as in the accept attribute
	Sound    bool         // the attachment is one sound file; the visitor may record it
	Send     ui.Words     // label of the button
	Group    ui.Words     // label of the answers
	Prices   []modelPrice // of all models, for playground.js
	Models   string       // JSON of []modelChoice, for playground.js
	Base     string       // base address of the API in code
	Model    ui.FormField
	Key      ui.FormField
	Settings []ui.FormField
	Prompt   ui.FormField
	Others   *ui.FormField // texts to compare the prompt with
	Samples  ui.Tabs       // prompts to begin with
	Codes    ui.Snippets
	Empty    *ui.EmptyState
}

// modelPrice is a model and its price.
type modelPrice struct {
	ID    string
	Price ui.Words
}

// modelChoice is a model's data for playground.js.
type modelChoice struct {
	ID         string      `json:"id"`
	Label      string      `json:"label"`
	Keys       []string    `json:"keys"` // ids of the keys with access to the model
	Forms      []wire.Form `json:"forms,omitempty"`
	Tiers      []string    `json:"tiers,omitempty"`
	Ratios     []string    `json:"ratios,omitempty"`
	Seconds    []int64     `json:"seconds,omitempty"`
	Images     int64       `json:"images,omitempty"`     // maximum per submission
	References int64       `json:"references,omitempty"` // maximum per submission
	Output     int64       `json:"output,omitempty"`     // maximum in tokens
	Voices     []string    `json:"voices,omitempty"`
	Formats    []string    `json:"formats,omitempty"`
}

// kindForm is the form for trying the models of a kind. playground.js handles the requests and answers of the
// same kinds.
type kindForm struct {
	prompt, others ui.Words // labels; others may be empty
	send, group    ui.Words
	files          string
	sound          bool
	samples        []ui.Words // prompts to begin with
	compared       ui.Words   // first value of others
	settings       []ui.FormField
}

// newKindForm returns the form of a kind. ok is false if the playground does not offer the kind.
func newKindForm(kind catalog.Kind) (t kindForm, ok bool) {
	first := []ui.Option{{Value: "", Label: "the model's default"}}
	resolution := ui.FormField{Name: "resolution", Label: "Resolution", Kind: ui.Choice, Options: first}
	ratio := ui.FormField{Name: "ratio", Label: "Ratio", Kind: ui.Choice, Options: first}
	switch kind {
	case catalog.KindChat:
		return kindForm{prompt: "Message", send: "Send", group: "Conversation", files: pictures,
			samples: []ui.Words{"Explain how tides work, in three sentences.", "Write a haiku about a gate that takes a toll.",
				"Which of 0.9 and 0.11 is larger, and why?"},
			settings: []ui.FormField{{Name: "system", Label: "System prompt", Kind: ui.Area},
				{Name: "temperature", Label: "Temperature", Numeric: true, Hint: "Leave empty for the model's default."},
				{Name: "max", Label: "Maximum answer, in tokens", Numeric: true,
					Hint: "Leave empty for the model's maximum. A lower value reserves less money."}}}, true
	case catalog.KindImage:
		return kindForm{prompt: "Prompt", send: "Make", group: "Jobs", files: pictures,
			samples: []ui.Words{"A lighthouse in the fog, film grain", "A map of an island that does not exist, ink on paper"},
			settings: []ui.FormField{resolution, ratio,
				{Name: "n", Label: "Images", Kind: ui.Choice, Options: []ui.Option{{Value: "", Label: "1"}}}}}, true
	case catalog.KindVideo:
		return kindForm{prompt: "Prompt", send: "Make", group: "Jobs", files: pictures,
			samples: []ui.Words{"A paper boat drifts down a gutter in the rain", "Clouds move over a mountain, seen from above"},
			settings: []ui.FormField{resolution, ratio,
				{Name: "duration", Label: "Duration in seconds", Kind: ui.Choice, Options: first}}}, true
	case "embedding":
		return kindForm{prompt: "Text", others: "Compared with, a text on each line", send: "Compare", group: "Similarities",
			samples: []ui.Words{"a lighthouse in the fog", "taxes on a house"}, compared: sampleTexts}, true
	case "rerank":
		return kindForm{prompt: "Query", others: "Documents, one on each line", send: "Rank", group: "Rankings",
			samples: []ui.Words{"a house by the sea", "what the tax office wants"}, compared: sampleTexts}, true
	case "moderation":
		return kindForm{prompt: "Text", send: "Check", group: "Results",
			samples: []ui.Words{"Violence is no answer.", "Have a nice day!"}}, true
	case "speech":
		return kindForm{prompt: "Text", send: "Speak", group: "Sounds",
			samples: []ui.Words{"A lighthouse in the fog.", "Mind the gap, please."},
			settings: []ui.FormField{{Name: "voice", Label: "Voice", Value: "alloy", Options: []ui.Option{{Value: "alloy", Label: "alloy"}}},
				{Name: "format", Label: "Format", Kind: ui.Choice, Options: first},
				{Name: "speed", Label: "Speed", Numeric: true, Hint: "From 0.25 to 4. Leave empty for the usual speed."}}}, true
	case "transcription":
		return kindForm{prompt: "Names and words to expect (optional)", send: "Transcribe", group: "Transcripts",
			files: "audio/*,video/mp4,video/webm", sound: true, settings: []ui.FormField{
				{Name: "language", Label: "Language", Hint: "Two letters, such as en. Leave empty to detect it."}}}, true
	}
	return kindForm{}, false
}

// pictures are the media types of attached pictures.
const pictures = "image/png,image/jpeg,image/webp,image/gif"

// sampleTexts are texts to compare a prompt with, one on each line.
const sampleTexts ui.Words = "a lighthouse in the mist\na house by the sea\nquarterly tax returns"

// maxKeys bounds the keys in a choice of keys.
const maxKeys = 200

// olderKeys is the label of the last option in a choice of keys if the account has more keys.
var olderKeys = ui.Sayf("the newest %s; older ones have their pages under Keys", maxKeys)

func (c *console) playground(v *page.Visit) (page.Responder, error) {
	content, err := c.playgroundOf(v)
	return page.FullPage{Name: "playground", Title: "Playground", Main: content}, err
}

// playgroundOf returns the playground with the values in the page's address.
func (c *console) playgroundOf(v *page.Visit) (playgroundPage, error) {
	content := playgroundPage{Kind: catalog.Kind(v.Query("kind")), Base: v.PublicURL()}
	model, key, prompt := v.Query("model"), v.Query("key"), v.Query("prompt")
	var keys []account.Key
	var prices account.Prices
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
		if keys, more, err = chosenKeysTx(tx, v.Account(), key); err != nil {
			return err
		}
		prices, err = account.PricesTx(tx, v.Account())
		return err
	}); err != nil {
		return content, err
	}
	if m, ok := c.Catalog.Current().Model(model); ok {
		content.Kind = m.Kind
	}
	form, ok := newKindForm(content.Kind)
	if !ok {
		content.Kind = catalog.KindChat
		form, _ = newKindForm(content.Kind)
	}
	content.Chat, content.Files, content.Sound = content.Kind == catalog.KindChat, form.files, form.sound
	content.Send, content.Group, content.Settings = form.send, form.group, form.settings
	content.Kinds.Label = "What to make"
	for _, kind := range show.Kinds() {
		if _, ok := newKindForm(catalog.Kind(kind.Value)); ok {
			content.Kinds.Items = append(content.Kinds.Items, ui.Tab{Href: page.Base + "/playground?kind=" + kind.Value, Text: kind.Label,
				Current: kind.Value == string(content.Kind)})
		}
	}
	if err := c.choices(v, &content, keys, prices, test, model, key); err != nil {
		return content, err
	}
	if more {
		content.Key.Options = append(content.Key.Options, ui.Option{Label: olderKeys, Disabled: true})
	}
	content.Prompt = ui.FormField{Name: "prompt", Label: form.prompt, Kind: ui.Area, Value: prompt}
	if content.Chat {
		content.Prompt.Hint = "Enter sends the message. Shift and Enter begin a new line."
	}
	if form.others != "" {
		compared, err := v.Say(form.compared)
		if err != nil {
			return content, err
		}
		content.Others = &ui.FormField{Name: "others", Label: form.others, Kind: ui.Area, Value: compared}
	}
	if form.sound { // other pages of the console may not use the microphone
		v.Header().Set("Permissions-Policy", "camera=(), microphone=(self), geolocation=()")
	}
	var err error
	if content.Samples, err = samplePrompts(v, content.Kind); err != nil {
		return content, err
	}
	content.Codes = ui.Snippets{ID: "code", Tabs: show.KindSnippets(v.PublicURL(), content.Kind, modelPlaceholder)}
	if content.Codes.Tabs == nil {
		content.Codes.Tabs = []ui.Snippet{{Name: "curl"}, {Name: "Python"}, {Name: "Node"}, {Name: "Go"}}
	}
	return content, nil
}

// modelPlaceholder stands for the model in code. playground.js replaces it by the model's id.
const modelPlaceholder = "MODEL"

func samplePrompts(v *page.Visit, kinds ...catalog.Kind) (ui.Tabs, error) {
	tabs := ui.Tabs{Label: "Prompts to begin with"}
	for _, kind := range kinds {
		form, _ := newKindForm(kind)
		for _, sample := range form.samples {
			prompt, err := v.Say(sample)
			if err != nil {
				return tabs, err
			}
			tabs.Items = append(tabs.Items, ui.Tab{Text: ui.Data(prompt),
				Href: page.AddressOf("/playground", url.Values{"kind": {string(kind)}, "prompt": {prompt}})})
		}
	}
	return tabs, nil
}

// choices fills in the keys, and the models for the paying key with their prices. If there are none, it sets
// content.Empty. test is true for a test account. model and key are the requested ids; they may be empty.
func (c *console) choices(v *page.Visit, content *playgroundPage, keys []account.Key, prices account.Prices, test bool,
	model, key string) error {
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
			var err error
			if t.Label, err = v.Say(show.ModelLabel(now.Catalog, t.ID)); err != nil {
				return err
			}
			models = append(models, t)
			content.Prices = append(content.Prices, modelPrice{m.ID, show.ShortPrice(m, prices.FactorOf(m.ID))})
		}
	}
	payingKey := chooseKey(keys, models, model, key)
	for _, k := range keys {
		label := ui.Data(show.KeyName(k))
		usable := slices.ContainsFunc(models, func(t modelChoice) bool { return slices.Contains(t.Keys, k.ID) })
		if !usable {
			label = ui.Sayf("%s (no model of this kind)", label)
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
		content.Model.Options = append(content.Model.Options, ui.Option{Value: t.ID, Label: ui.Data(t.Label), Selected: t.ID == model})
	}
	if i := slices.IndexFunc(content.Prices, func(p modelPrice) bool { return p.ID == model }); i >= 0 {
		content.Model.Hint = content.Prices[i].Price
	}
	switch {
	case len(keys) == 0:
		content.Empty = &ui.EmptyState{Title: "No enabled key", Text: "The playground uses one of your keys, within its limits.",
			Link: &ui.Link{Href: page.Base + "/keys/new", Text: "Create a key", Button: true, Main: true}}
	case len(models) == 0:
		content.Empty = &ui.EmptyState{Title: "No models", Text: "None of your keys can use an open model of this kind."}
	}
	raw, err := json.Marshal(models)
	content.Models = string(raw)
	return err
}

// setKeys sets the keys with access to the model, and reports whether there are any.
func (t *modelChoice) setKeys(now *catalog.Snapshot, keys []account.Key, test bool) bool {
	for _, k := range keys {
		if show.Allows(k.AllowedModels, t.ID) && !now.HidesSandbox(t.ID, test, k.AllowedModels) {
			t.Keys = append(t.Keys, k.ID)
		}
	}
	return len(t.Keys) > 0
}

// chooseKey returns the id of the key that pays. It prefers the requested key if this key has access to any
// model in models, then the first key with access to model, then the first key with access to any. It returns
// an empty string if no key has access.
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
	if m.Kind.Definition() != nil {
		t.Voices, t.Formats = m.List("voices"), m.List(kind.FormatList)
	}
	for _, tier := range m.Tiers {
		t.Tiers = append(t.Tiers, tier.Name)
	}
	for n := m.Durations.Min; n > 0 && n <= m.Durations.Max && len(m.Durations.List) == 0; n++ {
		t.Seconds = append(t.Seconds, n)
	}
	return t
}

// forwardWithKey returns a handler that forwards a request to an endpoint of the API, with the visitor's key
// named in the path. The API applies all of its checks.
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

// costFragment shows the charge of an answer once its receipt is written.
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
		counted := ui.Words("")
		switch {
		case r.Quantity.Unit != "":
			counted = show.Count(r.Quantity)
		case r.Tokens.Prompt+r.Tokens.Completion > 0:
			counted = ui.Sayf("%s + %s tokens", ui.Thousands(r.Tokens.Prompt), ui.Thousands(r.Tokens.Completion))
		}
		content.Parts = ui.Group{ui.Text{Text: counted, Muted: true}, ui.Money{Amount: r.Cost}, ui.Duration{MS: r.DurationMS},
			ui.Ident{ID: r.ID, Href: page.Base + "/requests/" + r.ID}}
		return nil
	})
	if err != nil && !errors.Is(err, requestlog.ErrNone) {
		return nil, err
	}
	return page.Fragment{Name: "cost", Main: content}, nil
}
