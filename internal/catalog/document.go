// Package catalog owns the gateway's models and lines as one validated, versioned document, their
// prices, and the snapshot used by a node.
//
// Invariants: an invalid document is rejected as a whole, with every fault at its path; a valid
// document prints and parses again to the same document; a stored revision never changes;
// credentials are stored and printed as `${NAME}` references and resolved only in the memory of a
// node; a snapshot is immutable; and a bill of usage within the bound of its request never exceeds
// HighestCost.
//
// operator.md, Catalog, describes the document. Package tree reads and prints its text. The struct
// tags of Document's types name its keys (encode.go); model.go, lines.go and overrides.go validate
// it.
package catalog

import (
	"cmp"
	"slices"
	"time"

	"tollgate/internal/money"
	"tollgate/internal/wire"
	"tollgate/internal/wire/kind"
	"tollgate/internal/wire/kind/registry"
)

// Document is a catalog with defaults filled in. It must not be changed after Parse.
type Document struct {
	Models []Model    // in the order of the file, also used by GET /v1/models
	Lines  []LineSpec // in the order of the file
}

// Kind is the kind of a model's output.
type Kind string

// The kinds of models.
const (
	KindChat  Kind = "chat"
	KindImage Kind = "image"
	KindVideo Kind = "video"
)

// Kinds returns all kinds of models.
func Kinds() []Kind {
	kinds := []Kind{KindChat, KindImage, KindVideo}
	for _, name := range registry.Names() {
		kinds = append(kinds, Kind(name))
	}
	return kinds
}

// IsJob reports whether requests for models of the kind are jobs.
func (k Kind) IsJob() bool { return k == KindImage || k == KindVideo }

// Definition returns the registered definition of a kind, or nil for chat, images and videos.
func (k Kind) Definition() *kind.Definition { return registry.Find(k) }

// ModelState is the availability of a model (interface.md, Model availability states).
type ModelState string

// The states of models.
const (
	StateOpen        ModelState = "open"
	StateComingSoon  ModelState = "coming_soon"
	StateMaintenance ModelState = "maintenance"
	StateRetired     ModelState = "retired"
)

// Model is a model offered to users. Fields not used by the kind are zero. The tag `key` is the
// name in a document (see encode). The tag `kinds` names the kinds of models that have the key.
type Model struct {
	ID      string     `key:"id"`
	Kind    Kind       `key:"kind"`
	OwnedBy string     `key:"owned_by"` // if empty, see Owner
	State   ModelState `key:"state"`

	// Chat models.
	Forms               []wire.Form `key:"forms,flow" kinds:"chat"`            // endpoints of the model, at least one
	Reasoning           bool        `key:"reasoning" kinds:"chat"`             // thinks before it answers
	Efforts             []string    `key:"efforts,flow" kinds:"chat"`          // levels of thinking (wire.Efforts); empty if unknown
	ContextWindow       int64       `key:"context_window" kinds:"chat"`        // tokens
	MaxOutputTokens     int64       `key:"max_output_tokens" kinds:"chat"`     // tokens
	DefaultOutputTokens int64       `key:"default_output_tokens" kinds:"chat"` // tokens; zero for no default
	Price               ChatPrice   `key:"price,empty" kinds:"chat"`
	MaxImageTokens      int64       `key:"max_image_tokens" kinds:"chat" default:"8192"` // tokens held for one image in the prompt, never 0

	// Image and video models.
	Tiers         Tiers     `key:"price,flow" kinds:"image video"` // at least one; the first is the default
	PerClip       bool      // video: Tiers are prices of a clip, not of a second, and have the key per_clip
	Durations     Durations `key:"durations,flow" kinds:"video"`
	Ratios        []string  `key:"ratios,flow" kinds:"image video"`
	MaxImages     int64     `key:"max_images" kinds:"image" default:"1"` // never 0
	MaxReferences int64     `key:"max_references" kinds:"image video"`
	Roles         []string  `key:"roles,flow" kinds:"video"` // roles of references (jobrequest.Roles); if empty, submissions have no roles
	Audio         Sound     `key:"audio" kinds:"video"`
	Params        []string  `key:"params,flow" kinds:"image video"` // further fields allowed in submissions, sent to the line

	// Models of a kind with a Definition.
	Units   UnitPrices          // one measure of the kind, by unit
	Numbers map[string]int64    // further fields of the kind; see Number
	Lists   map[string][]string // further fields of the kind; see List
	Flags   map[string]bool     // further fields of the kind that are true

	FreeDailyRequests int64 `key:"free_daily_requests"` // free requests per account and UTC day; zero for none
}

// Sound is a video model's setting for sound.
type Sound string

// The values of Sound.
const (
	SoundUnset    Sound = ""         // the line's choice; not allowed in submissions
	SoundOn       Sound = "true"     // always
	SoundOff      Sound = "false"    // never
	SoundOptional Sound = "optional" // the submission's choice
)

// Owner returns `owned_by` for the model list (interface.md, Model list).
func (m *Model) Owner() string { return cmp.Or(m.OwnedBy, "tollgate") }

// Supports reports whether a chat model can be called in a form.
func (m *Model) Supports(form wire.Form) bool {
	return slices.Contains(m.Forms, form)
}

// ChatPrice is the price list of a chat model.
type ChatPrice struct {
	Rates                                         // for prompts below all Bands
	Bands      []Band                             // for longer prompts, by ascending PromptTokens
	Modalities modalityPrices                     `key:"modalities,flow"`
	Options    map[string]map[string]money.Factor `key:"options,entries"` // field -> value -> factor on all rates
	Tools      map[string]money.Price             `key:"tools,flow"`      // hosted tool -> price of one call
}

// Rates are prices per million tokens. Rates missing in the document have their defaults.
type Rates struct {
	Input        money.Price
	Output       money.Price
	CachedInput  money.Price
	CacheWrite   money.Price // cache writes with a lifetime of five minutes
	CacheWrite1h money.Price // cache writes with a lifetime of an hour
}

// defaults returns the values for missing rates. If base is nil, cached_input and cache_write
// default to input, and cache_write_1h to cache_write. Otherwise r has the rates of a band, and
// missing rates have the same ratio to input as in base.
func (r *Rates) defaults(base *Rates) Rates {
	if base == nil {
		return Rates{Input: r.Input, Output: r.Output, CachedInput: r.Input, CacheWrite: r.Input, CacheWrite1h: r.CacheWrite}
	}
	scale := func(p money.Price) money.Price { return p.Proportion(r.Input, base.Input) }
	return Rates{Input: r.Input, Output: r.Output, CachedInput: scale(base.CachedInput), CacheWrite: scale(base.CacheWrite),
		CacheWrite1h: scale(base.CacheWrite1h)}
}

// Band has the rates for prompts of more than PromptTokens tokens.
type Band struct {
	PromptTokens int64
	Rates
}

// Tier is the price of one image, one second of video, or one clip at a resolution (`1K`, `720p`).
type Tier struct {
	Name  string
	Price money.Price
}

// Tiers are the tiers of a model in the order of the document.
type Tiers []Tier

// Durations are the lengths of a model's videos in whole seconds, either a list or a range from Min
// to Max. If both are empty, the provider chooses the length.
type Durations struct {
	List     []int64
	Min, Max int64
}

// Default returns the length of a video if the submission has none, or 0 if the model lists no
// durations.
func (d Durations) Default() int64 {
	if len(d.List) > 0 {
		return d.List[0]
	}
	return d.Min
}

// LineSpec is the operator's description of a line. A line serves some models through one provider.
type LineSpec struct {
	ID            string            `key:"id"`
	Provider      string            `key:"provider"`             // a key of the providers given to Parse
	BaseURL       string            `key:"base_url"`             // if empty, the provider's DefaultBaseURL
	APIKey        string            `key:"api_key"`              // a reference `${NAME}`, `${file:PATH}` or `${secret:NAME}`, or empty
	APIKeys       []string          `key:"api_keys,flow"`        // references in place of APIKey, in the order of use
	Models        map[string]string `key:"models,empty"`         // model id -> the provider's name of the model; at least one
	Forms         []wire.Form       `key:"forms,flow"`           // nil for all forms of the provider
	Priority      int               `key:"priority" default:"1"` // lower is tried first
	Weight        int               `key:"weight" default:"100"` // share among lines of equal priority, at least 1
	MaxConcurrent int               `key:"max_concurrent"`       // zero for no cap
	MaxInputs     int64             `key:"max_inputs"`           // inputs of an embeddings call; zero for no cap
	Timeouts      Timeouts          `key:"timeouts,flow"`
	LimitField    LimitField        `key:"limit_field"`   // if empty, see Line.LimitFieldFor
	IgnoresLimit  bool              `key:"ignores_limit"` // the vendor ignores limits on output tokens
	// Headers are sent with every call, by canonical name. References in their values are resolved on
	// each node.
	Headers map[string]string `key:"headers,flow"`
	// Set has top-level fields that replace the client's. The values have the same types as in
	// Options. Omit names fields that are never sent. If Omit is nil, the default of the host
	// applies; if empty, no field is omitted.
	Set   map[string]any `key:"set,flow"`
	Omit  []string       `key:"omit,flow,empty"`
	Pass  []string       `key:"pass,flow"` // fields sent although they may cost more or are undocumented; PassAll for all
	Costs Costs          `key:"cost,flow"` // prices of the provider
	// Margin is the share of the costs added to the prices at the last use of the console's page
	// Providers. Only the console reads Margin. It is nil for lines made without the page.
	Margin         *money.Factor  `key:"margin"`
	Options        map[string]any `key:"options,flow"`    // for the adapter: values are string, bool, int64, float64, []any, map[string]any
	ErrorSentences []string       `key:"error_sentences"` // regular expressions in RE2 syntax
	Enabled        bool           `key:"enabled" default:"true"`
}

// LimitField is a field of chat completions for the limit on output tokens.
type LimitField string

// The fields of limits.
const (
	LimitMaxTokens           LimitField = "max_tokens"
	LimitMaxCompletionTokens LimitField = "max_completion_tokens"
)

// LimitFields are the values of LimitField.
func LimitFields() []LimitField { return []LimitField{LimitMaxTokens, LimitMaxCompletionTokens} }

// Other returns the other of the two LimitFields.
func (f LimitField) Other() LimitField {
	if f == LimitMaxTokens {
		return LimitMaxCompletionTokens
	}
	return LimitMaxTokens
}

// Timeouts bound one attempt on a line. A zero value in a LineSpec is replaced by WithDefaults.
type Timeouts struct {
	FirstToken time.Duration `key:"first_token"` // until a stream's first token
	Idle       time.Duration `key:"idle"`        // between two events of a stream
	Total      time.Duration `key:"total"`       // the whole answer; for jobs the longest wait
}

// WithDefaults returns t with the defaults of operator.md, Catalog, for zero fields: first_token
// 60s (10m for reasoning models), idle 2m, total 10m.
func (t Timeouts) WithDefaults(reasoning bool) Timeouts {
	firstToken := time.Minute
	if reasoning {
		firstToken = 10 * time.Minute
	}
	return Timeouts{cmp.Or(t.FirstToken, firstToken), cmp.Or(t.Idle, 2*time.Minute), cmp.Or(t.Total, 10*time.Minute)}
}

// Provider describes an adapter for the validation of lines. The descriptions are injected, because
// the catalog's layer is below the adapters' layer.
type Provider struct {
	Kinds          []Kind      // supported kinds of models
	Forms          []wire.Form // natively supported forms
	OptionalForms  []wire.Form // supported forms that a line has only if it names them
	DefaultBaseURL string      // used by lines without base_url
	NeedsBaseURL   bool        // lines must have base_url
	NeedsKey       bool        // lines must have api_key, unless Keyless returns true
	// Keyless reports whether a line with these options gets its credential without api_key,
	// despite NeedsKey. If nil, no options do.
	Keyless func(options map[string]any) bool
	// NeedsForms is true if a line with chat models must have forms.
	NeedsForms bool
	// CheckOptions checks a line's options. If nil, the provider has no options.
	CheckOptions func(map[string]any) error
	// KeyHeaders are the headers for credentials, by canonical name, beside Authorization.
	KeyHeaders []string
	// CheckField returns an error if the line must not set, or omit, a field of an image or video
	// model. If nil, lines may set and omit every field.
	CheckField func(l *LineSpec, m *Model, field string, omit bool) error
}

// AllForms returns the forms that a line may name.
func (p *Provider) AllForms() []wire.Form { return slices.Concat(p.Forms, p.OptionalForms) }

// requiresKey reports whether a line with these options must have api_key.
func (p *Provider) requiresKey(options map[string]any) bool {
	return p.NeedsKey && (p.Keyless == nil || !p.Keyless(options))
}

// Defaults of missing values.
const (
	// DefaultMaxImageTokens bounds one image in a prompt for models without max_image_tokens. It is
	// well above the counts of the large vendors for one image in full detail (about 1,100 to 5,000
	// tokens).
	DefaultMaxImageTokens = 8192

	defaultPriority  = 1
	defaultWeight    = 100
	defaultMaxImages = 1
)

// Limits of a document. They are far above any real catalog, and bound the time and memory for a
// broken or hostile file.
const (
	maxDocument    = 4 << 20 // bytes
	MaxModels      = 2000
	MaxLines       = 1000
	maxTokens      = 100_000_000 // in a context window, an output limit or an image
	maxRequests    = 1_000_000_000
	maxAbove       = 8
	maxFactors     = 64 // of all options of a model
	maxTools       = 64
	maxTiers       = 16
	maxList        = 64 // ratios, durations, params
	maxSeconds     = 3600
	maxPieces      = 100 // images, references
	maxSentences   = 64
	maxSentence    = 500       // bytes
	maxRank        = 1_000_000 // priority, weight, max_concurrent
	maxTimeout     = 24 * time.Hour
	maxURL         = 2000
	maxVendorID    = 256
	maxHeaders     = 32
	maxHeaderValue = 4096 // bytes
	maxOptions     = 64   // values at one level of a line's options
	maxFaultsShown = 100
)
