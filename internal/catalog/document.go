// Package catalog owns what the gateway offers and where it comes from: models
// and lines as one validated, versioned document, their prices, and the
// snapshot that a node serves from.
//
// Invariants: a document that does not validate is refused whole, with every
// fault at its path; whatever validates prints and parses again to the same
// document; a stored revision never changes; credentials are stored and
// printed as `${NAME}` references and resolved only in the memory of a node; a
// snapshot never changes once it is made; and a bill of usage that stays
// within the bound of its request never exceeds HighestCost.
//
// The document is operator.md's Catalog. Reading goes text -> tree -> document
// (yaml.go, json.go, read.go, model.go, lines.go), printing goes the same way
// back (encode.go, print.go).
package catalog

import (
	"time"

	"tollgate/internal/money"
	"tollgate/internal/wire"
)

// Document is a whole catalog as an operator writes it, defaults filled in. It
// is not changed after Parse returned it.
type Document struct {
	Models []Model    // in the order of the file, which is the order of GET /v1/models
	Lines  []LineSpec // in the order of the file
}

// Kind is what a model makes.
type Kind string

// The kinds of models.
const (
	KindChat  Kind = "chat"
	KindImage Kind = "image"
	KindVideo Kind = "video"
)

// ModelState says whether a model can be called (interface.md, Model availability
// states).
type ModelState string

// The states of models.
const (
	StateOpen        ModelState = "open"
	StateComingSoon  ModelState = "coming_soon"
	StateMaintenance ModelState = "maintenance"
	StateRetired     ModelState = "retired"
)

// Model is one model that users may name. Which fields mean something depends
// on the kind: the others are zero.
type Model struct {
	ID                string
	Kind              Kind
	OwnedBy           string // empty: see Owner
	State             ModelState
	FreeDailyRequests int64 // > 0: this many requests per account and UTC day

	// Chat models.
	Forms               []wire.Form // endpoints that the model answers at, at least one
	Reasoning           bool        // thinks before it answers
	Efforts             []string    // how much it can be told to think (wire.Efforts); none: nobody knows
	ContextWindow       int64       // tokens
	MaxOutputTokens     int64       // tokens
	DefaultOutputTokens int64       // tokens; 0: none
	MaxImageTokens      int64       // tokens that one image in the prompt is held for, never 0
	Price               ChatPrice

	// Image and video models.
	Tiers         []Tier // at least one; the first is the default
	PerClip       bool   // video: tiers are priced by the clip, not by the second
	Ratios        []string
	MaxReferences int64
	Roles         []string  // video: what references may be for (jobrequest.Roles); none: submissions name none
	Audio         Sound     // video
	Params        []string  // further fields that submissions may send to the line
	MaxImages     int64     // image: never 0
	Durations     Durations // video
}

// Sound says whether a video model's clips have sound.
type Sound string

// The values of Sound.
const (
	SoundUnsaid   Sound = ""         // the line's choice; submissions may not name it
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

// ChatPrice is what a chat model costs.
type ChatPrice struct {
	Rates                                         // for a prompt of any length ...
	Above      []Above                            // ... unless it is longer than one of these, ascending
	Modalities map[string]ModalityRates           // image, audio -> what their tokens cost at any length
	Options    map[string]map[string]money.Factor // field -> value -> factor on all rates
	Tools      map[string]money.Price             // hosted tool -> price of one call
}

// Rates are prices per million tokens. All are set: a rate that the document
// leaves out has its default (usual).
type Rates struct {
	Input        money.Price
	Output       money.Price
	CachedInput  money.Price
	CacheWrite   money.Price // cache writes that live five minutes
	CacheWrite1h money.Price // cache writes that live an hour
}

// usual returns what rates are that a document leaves out: input for cached_input
// and cache_write, cache_write for cache_write_1h, and for longer prompts those
// of the base price in proportion to the input.
func (v *Rates) usual(base *Rates) Rates {
	if base == nil {
		return Rates{Input: v.Input, Output: v.Output, CachedInput: v.Input, CacheWrite: v.Input, CacheWrite1h: v.CacheWrite}
	}
	of := func(p money.Price) money.Price { return p.Proportion(v.Input, base.Input) }
	return Rates{Input: v.Input, Output: v.Output, CachedInput: of(base.CachedInput), CacheWrite: of(base.CacheWrite),
		CacheWrite1h: of(base.CacheWrite1h)}
}

// Above is the complete price list of a request whose prompt has more than
// PromptTokens tokens.
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

// Durations are the lengths of video in whole seconds that a model offers:
// either a list, or a range from Min to Max. Both empty: the length is the
// line's choice.
type Durations struct {
	List     []int64
	Min, Max int64
}

// Default is the length of a video whose submission names none; 0 when the
// model lists no durations.
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
	APIKey        string            // a reference `${NAME}` or `${file:PATH}`; empty: none
	APIKeys       []string          // references in place of APIKey; the first that its provider does not refuse is used
	Models        map[string]string // our model id -> the provider's, at least one
	Forms         []wire.Form       // nil: all that the provider has
	Priority      int               // lower is tried first
	Weight        int               // share among lines of equal priority, at least 1
	MaxConcurrent int               // 0: no cap
	Timeouts      Timeouts
	LimitField    LimitField // empty: see Line.ReadsLimit
	IgnoresLimit  bool       // the vendor obeys no limit on output tokens
	// Headers are sent with every call, by canonical name; references in their
	// values (`${NAME}`, `${file:PATH}`) are resolved on each node.
	Headers map[string]string
	// Set are top-level fields with fixed values, which are like those of Options;
	// they win over the client's. Omit are fields that are never sent; nil: the
	// default of its host, empty: none.
	Set            map[string]any
	Omit           []string
	Pass           []string       // fields that it gets although they may cost more or nobody knows them; PassAll: all
	Costs          Costs          // what the provider takes
	Options        map[string]any // for the adapter: values are string, bool, int64, float64, []any, map[string]any
	ErrorSentences []string       // regular expressions in RE2 syntax
	Enabled        bool
}

// LimitField is a field of chat completions in which a vendor reads the limit on
// output tokens.
type LimitField string

// The fields of limits.
const (
	LimitMaxTokens           LimitField = "max_tokens"
	LimitMaxCompletionTokens LimitField = "max_completion_tokens"
)

// LimitFields are the values of LimitField.
func LimitFields() []LimitField { return []LimitField{LimitMaxTokens, LimitMaxCompletionTokens} }

// Other returns the one of LimitFields that f is not.
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

// Provider is what the catalog must know of an adapter to validate lines. The
// adapters themselves are injected, since the catalog sits below them.
type Provider struct {
	Kinds          []Kind      // kinds of models that it can serve
	Forms          []wire.Form // forms that it speaks natively
	DefaultBaseURL string      // used by lines without base_url
	NeedsBaseURL   bool        // a line must say base_url
	NeedsKey       bool        // a line must say api_key
	// Keyless tells of options with which a line gets its credential in another
	// way than by api_key, although NeedsKey; nil: there are none.
	Keyless func(options map[string]any) bool
	// NeedsForms says that a line with chat models must say forms.
	NeedsForms bool
	// CheckOptions judges a line's options; nil accepts none.
	CheckOptions func(map[string]any) error
	// KeyHeaders are the headers that credentials go in, by canonical name, beside
	// Authorization.
	KeyHeaders []string
	// CheckField tells why no line with these options can have a fixed value for a
	// field of an image or video model, by the provider's id, or omit it; nil
	// accepts all.
	CheckField func(l *LineSpec, m *Model, field string, omit bool) error
}

// keyed tells whether a line with some options must say api_key.
func (p *Provider) keyed(options map[string]any) bool {
	return p.NeedsKey && (p.Keyless == nil || !p.Keyless(options))
}

// Values that stand for what a document leaves out.
const (
	// DefaultMaxImageTokens bounds one image in a prompt when the model names
	// no max_image_tokens: well above what the large vendors count for one
	// image in full detail (about 1,100 to 5,000 tokens).
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
