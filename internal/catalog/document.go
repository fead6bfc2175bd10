// Package catalog owns the gateway's offer and its origin: models and lines as one validated,
// versioned document, their prices, and the snapshot used by a node.
//
// Invariants: an invalid document is rejected as a whole, with every fault at its path; a valid
// document prints and parses again to the same document; a stored revision never changes;
// credentials are stored and printed as `${NAME}` references and resolved only in the memory of a
// node; a snapshot is immutable; and a bill of usage within the bound of its request never exceeds
// HighestCost.
//
// The document is operator.md's Catalog. Reading goes text -> tree -> document (yaml.go, json.go,
// read.go, model.go, lines.go), printing goes the same way back (encode.go, print.go).
package catalog

import (
	"time"

	"tollgate/internal/money"
	"tollgate/internal/wire"
)

// Document is a whole catalog as an operator writes it, defaults filled in. It
// is not changed after Parse returned it.
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

// ModelState is the availability of a model (interface.md, Model availability states).
type ModelState string

// The states of models.
const (
	StateOpen        ModelState = "open"
	StateComingSoon  ModelState = "coming_soon"
	StateMaintenance ModelState = "maintenance"
	StateRetired     ModelState = "retired"
)

// Model is one model offered to users. Fields not used by the kind are zero.
type Model struct {
	ID                string
	Kind              Kind
	OwnedBy           string // empty: see Owner
	State             ModelState
	FreeDailyRequests int64 // > 0: this many requests per account and UTC day

	// Chat models.
	Forms               []wire.Form // endpoints of the model, at least one
	Reasoning           bool        // thinks before it answers
	Efforts             []string    // levels of thinking (wire.Efforts); empty if unknown
	ContextWindow       int64       // tokens
	MaxOutputTokens     int64       // tokens
	DefaultOutputTokens int64       // tokens; 0 without a default
	MaxImageTokens      int64       // tokens held for one image in the prompt, never 0
	Price               ChatPrice

	// Image and video models.
	Tiers         []Tier // at least one; the first is the default
	PerClip       bool   // video: tiers are priced by the clip, not by the second
	Ratios        []string
	MaxReferences int64
	Roles         []string  // video: roles of references (jobrequest.Roles); if empty, submissions have no roles
	Audio         Sound     // video
	Params        []string  // further fields allowed in submissions, sent to the line
	MaxImages     int64     // image: never 0
	Durations     Durations // video
}

// Sound is a video model's setting for sound.
type Sound string

// The values of Sound.
const (
	SoundUnsaid   Sound = ""         // the line's choice; not allowed in submissions
	SoundOn       Sound = "true"     // always
	SoundOff      Sound = "false"    // never
	SoundOptional Sound = "optional" // the submission's choice
)

// Owner is `owned_by` as the model list shows it (interface.md, Model list).
func (m *Model) Owner() string {
	if m.OwnedBy == "" {
		return "tollgate"
	}
	return m.OwnedBy
}

// Speaks reports whether a chat model answers at the endpoint of a form.
func (m *Model) Speaks(form wire.Form) bool {
	for _, f := range m.Forms {
		if f == form {
			return true
		}
	}
	return false
}

// ChatPrice is the price list of a chat model.
type ChatPrice struct {
	Rates                                         // for a prompt of any length ...
	Above      []Above                            // ... unless it is longer than one of these, ascending
	Modalities map[string]ModalityRates           // image, audio -> rates at any length
	Options    map[string]map[string]money.Factor // field -> value -> factor on all rates
	Tools      map[string]money.Price             // hosted tool -> price of one call
}

// Rates are prices per million tokens. All are set: rates missing in the document have their
// default (usual).
type Rates struct {
	Input        money.Price
	Output       money.Price
	CachedInput  money.Price
	CacheWrite   money.Price // cache writes with a lifetime of five minutes
	CacheWrite1h money.Price // cache writes with a lifetime of an hour
}

// usual returns the defaults of missing rates: input for cached_input and cache_write, cache_write
// for cache_write_1h, and for longer prompts the base price's rates in proportion to the input.
func (v *Rates) usual(base *Rates) Rates {
	if base == nil {
		return Rates{Input: v.Input, Output: v.Output, CachedInput: v.Input, CacheWrite: v.Input, CacheWrite1h: v.CacheWrite}
	}
	of := func(p money.Price) money.Price { return p.Proportion(v.Input, base.Input) }
	return Rates{Input: v.Input, Output: v.Output, CachedInput: of(base.CachedInput), CacheWrite: of(base.CacheWrite),
		CacheWrite1h: of(base.CacheWrite1h)}
}

// Above is the complete price list of a request with a prompt of more than PromptTokens tokens.
type Above struct {
	PromptTokens int64
	Rates
}

// Tier is the price of a resolution tier (`1K`, `720p`): of one image, of one
// second of video, or of one clip when the model is priced per clip.
type Tier struct {
	Name  string
	Price money.Price
}

// Durations are the lengths of a model's videos in whole seconds: either a list, or a range from
// Min to Max. If both are empty, the line chooses the length.
type Durations struct {
	List     []int64
	Min, Max int64
}

// Default returns the length of a video without a length in its submission, or 0 if the model lists
// no durations.
func (d Durations) Default() int64 {
	if len(d.List) > 0 {
		return d.List[0]
	}
	return d.Min
}

// LineSpec is one line as the operator wrote it: a way to a provider for some
// models.
type LineSpec struct {
	ID            string
	Provider      string            // a key of the providers given to Parse
	BaseURL       string            // empty: the provider's own
	APIKey        string            // a reference `${NAME}` or `${file:PATH}`, or empty
	APIKeys       []string          // references in place of APIKey; the first not rejected by the provider is used
	Models        map[string]string // our model id -> the provider's, at least one
	Forms         []wire.Form       // nil for all forms of the provider
	Priority      int               // lower is tried first
	Weight        int               // share among lines of equal priority, at least 1
	MaxConcurrent int               // 0: no cap
	Timeouts      Timeouts
	LimitField    LimitField // empty: see Line.ReadsLimit
	IgnoresLimit  bool       // the vendor obeys no limit on output tokens
	// Headers are sent with every call, by canonical name; references in their
	// values (`${NAME}`, `${file:PATH}`) are resolved on each node.
	Headers map[string]string
	// Set holds top-level fields with fixed values, of the same types as the values in Options;
	// they replace the client's. Omit names fields never sent. If Omit is nil, the default of the
	// host applies; if empty, no field is omitted.
	Set            map[string]any
	Omit           []string
	Pass           []string       // fields sent although they may cost more or are undocumented; PassAll for all
	Costs          Costs          // prices of the provider
	Options        map[string]any // for the adapter: values are string, bool, int64, float64, []any, map[string]any
	ErrorSentences []string       // regular expressions in RE2 syntax
	Enabled        bool
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

// Timeouts bound one attempt on a line. A zero value in a LineSpec stands for
// the default, see Defaults.
type Timeouts struct {
	FirstToken time.Duration // until a stream's first token
	Idle       time.Duration // between two pieces of a stream
	Total      time.Duration // the whole answer; for jobs the longest wait
}

// Defaults returns t with the defaults of operator.md, Catalog, in the places
// left open: first_token 60s (10m for reasoning models), idle 2m, total 10m.
func (t Timeouts) Defaults(reasoning bool) Timeouts {
	if t.FirstToken == 0 {
		t.FirstToken = time.Minute
		if reasoning {
			t.FirstToken = 10 * time.Minute
		}
	}
	if t.Idle == 0 {
		t.Idle = 2 * time.Minute
	}
	if t.Total == 0 {
		t.Total = 10 * time.Minute
	}
	return t
}

// Provider holds the facts about an adapter for the validation of lines. The adapters themselves
// are injected, because the catalog's layer is below the adapters' layer.
type Provider struct {
	Kinds          []Kind      // supported kinds of models
	Forms          []wire.Form // natively supported forms
	DefaultBaseURL string      // used by lines without base_url
	NeedsBaseURL   bool        // a line must say base_url
	NeedsKey       bool        // a line must say api_key
	// Keyless reports whether a line with these options gets its credential without api_key,
	// despite NeedsKey. If nil, no options do.
	Keyless func(options map[string]any) bool
	// NeedsForms is true if a line with chat models must have forms.
	NeedsForms bool
	// CheckOptions judges a line's options; nil accepts none.
	CheckOptions func(map[string]any) error
	// KeyHeaders are the headers for credentials, by canonical name, beside Authorization.
	KeyHeaders []string
	// CheckField tells why no line with these options can have a fixed value for a
	// field of an image or video model, by the provider's id, or omit it; nil
	// accepts all.
	CheckField func(l *LineSpec, m *Model, field string, omit bool) error
}

// keyed reports whether a line with these options must have api_key.
func (p *Provider) keyed(options map[string]any) bool {
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

// Limits of a document. They are far above any real catalog and keep a broken
// or hostile file from costing more than a moment.
const (
	maxDocument    = 4 << 20 // bytes
	MaxModels      = 2000
	MaxLines       = 1000
	maxTokens      = 100_000_000 // of a context window, an output limit, an image
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
