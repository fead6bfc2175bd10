package userpages

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"

	"tollgate/internal/account"
	"tollgate/internal/catalog"
	"tollgate/internal/console/page"
	"tollgate/internal/console/part"
	"tollgate/internal/console/show"
	"tollgate/internal/job/gallery"
	"tollgate/internal/job/row"
	"tollgate/internal/ledger"
	"tollgate/internal/store"
	"tollgate/internal/wire"
)

// playgroundPage is where models are tried: what is typed goes to the API, by the
// module.
type playgroundPage struct {
	Kinds    part.Tabs
	Kind     catalog.Kind
	Chat     bool
	Files    string // what may be attached, as an input's accept has it
	Models   string // JSON of []tried: what the module needs to know of them
	Base     string // of the API, for code
	Model    part.FormField
	Key      part.FormField
	Settings []part.FormField
	Prompt   part.FormField
	Samples  part.Tabs // prompts to begin with
	Codes    part.Snippets
	Empty    *part.Empty
	Live     part.Live
}

// tried is what the module knows of a model.
type tried struct {
	ID         string      `json:"id"`
	Forms      []wire.Form `json:"forms,omitempty"`
	Tiers      []string    `json:"tiers,omitempty"`
	Ratios     []string    `json:"ratios,omitempty"`
	Seconds    []int64     `json:"seconds,omitempty"`
	Images     int64       `json:"images,omitempty"`     // of one submission
	References int64       `json:"references,omitempty"` // of one submission
	Output     int64       `json:"output,omitempty"`     // tokens
}

// maxKeys bounds the keys that can be chosen.
const maxKeys = 200

// olderKeys stands behind the keys that can be chosen where there are more.
var olderKeys = fmt.Sprintf("the newest %d; older ones have their pages under Keys", maxKeys)

func (c *console) playground(v *page.Visit) (page.Outgoing, error) {
	shown := playgroundPage{Kind: catalog.Kind(v.Query("kind")), Base: v.PublicURL(), Files: "image/png,image/jpeg,image/webp,image/gif"}
	model, key, prompt := v.Query("model"), v.Query("key"), v.Query("prompt")
	var keys []account.Key
	var hidden map[string]bool
	var more bool
	if err := v.View(func(tx *store.Tx) (err error) {
		if again := v.Query("again"); again != "" {
			e, err := gallery.ExhibitTx(tx, v.Account(), again)
			if err != nil && !errors.Is(err, row.ErrNoJob) {
				return err
			}
			if err == nil {
				shown.Kind, model, key, prompt = catalog.Kind(e.Kind), e.Model, e.Key, e.Prompt
			}
		}
		if hidden, err = c.hiddenModelsTx(tx, v.Account()); err != nil {
			return err
		}
		keys, more, err = chosenKeysTx(tx, v.Account(), key)
		return err
	}); err != nil {
		return nil, err
	}
	if m, ok := c.Catalog.Current().Model(model); ok {
		shown.Kind = m.Kind
	}
	if shown.Kind != catalog.KindImage && shown.Kind != catalog.KindVideo {
		shown.Kind = catalog.KindChat
	}
	shown.Chat = shown.Kind == catalog.KindChat
	for _, kind := range []struct {
		kind catalog.Kind
		word string
	}{{catalog.KindChat, "Chat"}, {catalog.KindImage, "Image"}, {catalog.KindVideo, "Video"}} {
		shown.Kinds.Items = append(shown.Kinds.Items, part.Tab{Href: page.Base + "/playground?kind=" + string(kind.kind), Text: kind.word,
			Current: kind.kind == shown.Kind})
	}
	shown.Kinds.Label = "What to make"
	if err := c.choices(&shown, keys, hidden, model, key); err != nil {
		return nil, err
	}
	if more {
		shown.Key.Options = append(shown.Key.Options, part.Option{Label: olderKeys, Off: true})
	}
	shown.Prompt = part.FormField{Name: "prompt", Label: "Message", Kind: part.Area, Value: prompt}
	if !shown.Chat {
		shown.Prompt.Label = "Prompt"
	}
	shown.Samples = samplePrompts(shown.Kind)
	shown.Codes = part.Snippets{ID: "code", Tabs: []part.Snippet{{Name: "curl"}, {Name: "Python"}, {Name: "Node"}, {Name: "Go"}}}
	return page.Whole{Name: "playground", Title: "Playground", Main: shown}, nil
}

// samples are prompts to begin with, by kind.
var samples = map[catalog.Kind][]string{
	catalog.KindChat: {"Explain how tides work, in three sentences.", "Write a haiku about a gate that takes a toll.",
		"Which of 0.9 and 0.11 is larger, and why?"},
	catalog.KindImage: {"A lighthouse in the fog, film grain", "A map of an island that does not exist, ink on paper"},
	catalog.KindVideo: {"A paper boat drifts down a gutter in the rain", "Clouds move over a mountain, seen from above"},
}

// samplePrompts lead to the playground with a prompt to begin with.
func samplePrompts(kinds ...catalog.Kind) part.Tabs {
	tabs := part.Tabs{Label: "Prompts to begin with"}
	for _, kind := range kinds {
		for _, prompt := range samples[kind] {
			tabs.Items = append(tabs.Items, part.Tab{Text: prompt,
				Href: page.AddressOf("/playground", url.Values{"kind": {string(kind)}, "prompt": {prompt}})})
		}
	}
	return tabs
}

// choices fills in the models and keys that can be chosen, and the settings of the
// kind. hidden are models that the account may not use.
func (c *console) choices(shown *playgroundPage, keys []account.Key, hidden map[string]bool, model, key string) error {
	shown.Model = part.FormField{Name: "model", Label: "Model", Kind: part.Choice}
	shown.Key = part.FormField{Name: "key", Label: "Paid with the key", Kind: part.Choice}
	var allowed []string // of the key that is chosen
	for _, k := range keys {
		if k.Ledger.Limits.Disabled {
			continue
		}
		label := k.Hint
		if k.Name != "" {
			label = k.Name + " " + k.Hint
		}
		if len(shown.Key.Options) == 0 || k.ID == key {
			allowed = k.AllowedModels
		}
		shown.Key.Options = append(shown.Key.Options, part.Option{Value: k.ID, Label: label, On: k.ID == key})
	}
	var models []tried
	now := c.offer()
	fits := func(m *catalog.Model) bool {
		return m.Kind == shown.Kind && m.State == catalog.StateOpen && !hidden[m.ID]
	}
	if m, ok := now.Catalog.Model(model); !ok || !fits(m) {
		if m = now.First(func(m *catalog.Model) bool { return fits(m) && show.Allows(allowed, m) }); m == nil {
			m = now.First(fits)
		}
		if m != nil {
			model = m.ID
		}
	}
	for _, m := range now.Catalog.Models() {
		if !fits(m) {
			continue
		}
		models = append(models, triedOf(m))
		label := m.ID
		if now.Catalog.IsSandbox(m.ID) {
			label += " (sandbox)"
		}
		shown.Model.Options = append(shown.Model.Options, part.Option{Value: m.ID, Label: label, On: m.ID == model})
	}
	switch {
	case len(models) == 0:
		shown.Empty = &part.Empty{Title: "No models", Text: "No model of this kind is open at this moment."}
	case len(shown.Key.Options) == 0:
		shown.Empty = &part.Empty{Title: "No key that works", Text: "The playground spends through a key of yours, within its limits.",
			Link: &part.Link{Href: page.Base + "/keys/new", Text: "Create a key", Button: true, Main: true}}
	}
	shown.Settings = settingsFor(shown.Kind)
	raw, err := json.Marshal(models)
	shown.Models = string(raw)
	return err
}

func triedOf(m *catalog.Model) tried {
	t := tried{ID: m.ID, Forms: m.Forms, Ratios: m.Ratios, Images: m.MaxImages, References: m.MaxReferences,
		Seconds: slices.Clone(m.Durations.List), Output: m.MaxOutputTokens}
	for _, tier := range m.Tiers {
		t.Tiers = append(t.Tiers, tier.Name)
	}
	for n := m.Durations.Min; n > 0 && n <= m.Durations.Max && len(m.Durations.List) == 0; n++ {
		t.Seconds = append(t.Seconds, n)
	}
	return t
}

// settingsFor are the fields of a kind. The module fills choices with what the model
// has.
func settingsFor(kind catalog.Kind) []part.FormField {
	first := []part.Option{{Value: "", Label: "the model's first"}}
	switch kind {
	case catalog.KindImage:
		return []part.FormField{{Name: "resolution", Label: "Resolution", Kind: part.Choice, Options: first},
			{Name: "ratio", Label: "Ratio", Kind: part.Choice, Options: first},
			{Name: "n", Label: "Images", Kind: part.Choice, Options: []part.Option{{Value: "", Label: "1"}}}}
	case catalog.KindVideo:
		return []part.FormField{{Name: "resolution", Label: "Resolution", Kind: part.Choice, Options: first},
			{Name: "ratio", Label: "Ratio", Kind: part.Choice, Options: first},
			{Name: "duration", Label: "Length in seconds", Kind: part.Choice, Options: first}}
	}
	return []part.FormField{{Name: "system", Label: "System prompt", Kind: part.Area},
		{Name: "temperature", Label: "Temperature", Numeric: true, Hint: "Empty: the model's."},
		{Name: "max", Label: "Longest answer, in tokens", Numeric: true, Hint: "Empty: the model's. Less holds less."}}
}

// asKey hands a request on to an endpoint of the API, with the visitor's key that
// the path names: everything that is judged there of a call is judged of it.
func (c *console) asKey(endpoint string) func(*page.Visit) (page.Outgoing, error) {
	return func(v *page.Visit) (page.Outgoing, error) {
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
		return page.Sent{}, nil
	}
}

// costPart says what an answer cost, once its receipt is there.
type costPart struct {
	Address string
	Final   bool
	Parts   part.Group
}

// cost is the receipt of a request in short.
func (c *console) cost(v *page.Visit) (page.Outgoing, error) {
	shown := costPart{Address: page.Base + "/playground/" + v.PathID() + "/cost"}
	err := v.View(func(tx *store.Tx) error {
		r, err := ledger.RequestTx(tx, v.PathID())
		if err != nil {
			return err
		}
		if r.Account != v.Account() {
			return ledger.ErrNoRequest
		}
		shown.Final = true
		tokens := part.Thousands(r.Tokens.Prompt) + " + " + part.Thousands(r.Tokens.Completion) + " tokens"
		shown.Parts = part.Group{part.Text{Text: tokens, Muted: true}, part.Money{Amount: r.Cost}, part.Took{MS: r.DurationMS},
			part.Ident{ID: r.ID, Href: page.Base + "/requests/" + r.ID}}
		return nil
	})
	if err != nil && !errors.Is(err, ledger.ErrNoRequest) {
		return nil, err
	}
	return page.Fragment{Name: "cost", Main: shown}, nil
}
