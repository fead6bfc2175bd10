// Package wire owns the concepts of chat shared by all forms: the parameters of a request, the
// meaning and usage of events and answers, and the conversion between a client's form and a line's
// (Pair). The packages in this folder, the lowest first: rawjson and sse (JSON and event streams as
// raw bytes), this package, internal/form (shared by the readers of all forms), conversation (the
// model in between two forms), a package for each form (completions, messages, responses, gemini,
// with the same file names: request, check, edit, meter, answer, editor and direct for lines of the
// same form, decode, encode, reader and writer for others), interactions (a form for lines only), usage,
// translate, and jobrequest (submissions of images and videos).
//
// Invariants: a request is only read after the gate has checked it (strict JSON, UTF-8, no repeated
// keys); a body or event is never decoded and encoded again: the gateway replaces its own fields in
// place and leaves all other bytes as they are; every reader of a stranger's bytes has a limit and
// never panics; higher packages import lower ones only.
package wire

import (
	"cmp"
	"slices"

	"tollgate/internal/wire/rawjson"
)

// Form is a format of chat requests and answers.
type Form string

// The forms, as named in the catalog (operator.md, Catalog).
const (
	FormChat      Form = "chat"
	FormResponses Form = "responses"
	FormMessages  Form = "messages"
	FormGemini    Form = "gemini" // Google's generateContent
	// FormInteractions is Google's Interactions API, a form for lines only.
	FormInteractions Form = "interactions"
)

// Usage holds the token counts of one answer. Cached, both CacheWrites and the prompt's images and
// audio are included in Prompt; Reasoning and the completion's images and audio in Completion. No
// count is negative or above rawjson.MaxCount.
type Usage struct {
	Prompt       int64
	Cached       int64 // read from the provider's cache
	CacheWrite   int64 // written to the cache for the vendor's shortest time
	CacheWrite1h int64 // written to the cache for a longer time
	Completion   int64
	Reasoning    int64
	// The tokens of images and audio. PromptImage and PromptAudio exclude cached tokens.
	PromptImage, PromptAudio         int64
	CompletionImage, CompletionAudio int64
	// Iterations, if any, split the counts above by model call.
	Iterations []Iteration
	// ToolCalls counts the calls of hosted tools in the answer by the names of PricedField.
	ToolCalls map[string]int64
	// Unknown names the token counts in the provider's report that the gateway does not know. The
	// provider may bill them on top.
	Unknown []string
	// ServiceTier is the tier reported by the provider, or empty.
	ServiceTier string
	// CostNano is the cost reported by the provider in nano-dollars, if HasCost.
	CostNano int64
	HasCost  bool
	// CacheSplit is set if the provider reported CacheWrite and CacheWrite1h separately.
	CacheSplit bool
}

// Parameters are the parameters of a request of any form.
type Parameters struct {
	// Stream is set if the client asked for a stream, IncludeUsage if the client asked for usage in
	// the stream (chat completions only).
	Stream, IncludeUsage bool
	// Limit is the client's limit on output tokens: the smallest if it sent several, 0 if it sent
	// none. LimitParam is its field.
	Limit      int64
	LimitParam string
	// BeyondLimit is the number of output tokens that a provider may bill on top of the limit.
	BeyondLimit int64
	// N is the number of choices, at least 1.
	N int64
	// Bound limits the size of the prompt.
	Bound PromptBound
	// ServiceTier is the requested tier. It is empty if absent, auto or default.
	ServiceTier string
	// Options are the values with a price of their own, including the tier.
	Options []PricedField
	// Optional are values priced only if the catalog has a price for them: efforts, and the fields
	// in Routing.
	Optional []PricedField
	// Tools are the requested hosted tools.
	Tools []PricedField
	// ModelCalls are the calls of models the provider may make in addition to the answer.
	ModelCalls []ModelCall
	// Routing are fields sent only to lines with these fields in `pass` (field.Costs).
	Routing []string
	// LongCache is set if the request asks for a cache time beyond the shortest.
	LongCache bool
	// Extra are the fields not documented by the form. A line gets a field if the line's vendor
	// documents the field, or if the line's `pass` names it.
	Extra []string
	// Conversation is a hash of the conversation's beginning or its prompt_cache_key. It is the
	// same for all requests of a conversation. Two conversations rarely have the same hash.
	Conversation uint64
}

// Params returns a, so that every request with embedded Parameters has the method.
func (a *Parameters) Params() *Parameters { return a }

// SetConversation assigns the request to the conversation named by the client.
func (a *Parameters) SetConversation(name string) {
	var key ConversationKey
	key.SetName([]byte(name))
	a.Conversation = key.Sum
}

// Edits are the values of the gateway's own request fields for a line.
type Edits struct {
	// Model is the provider's id of the model.
	Model string
	// Limit is the default limit on output tokens, sent if the client sent none. Zero sends none.
	// LimitField is the limit field of a chat line (max_tokens or max_completion_tokens), also for
	// the client's limit. If empty, the client's field is used.
	Limit      int64
	LimitField string
	// SystemOnly is set for a chat line without the role developer. Developer messages become
	// system messages.
	SystemOnly bool
	// Efforts are the efforts supported by the model. Empty means unknown.
	Efforts []string
	// NoThinking, if set, disables thinking on a chat line when a tool choice would be rejected
	// with thinking.
	NoThinking Member
	// Omit names the client's fields withheld from the line.
	Omit []string
	// Origin identifies the line's account (Identity.Origin). Only this account gets the state sealed for it.
	Origin string
	// NoSealed is set after the line rejected the state of an account in the conversation. Then no state
	// is sent.
	NoSealed bool
	// Signs is set if the line's host requires the signature of thinking, whatever the model's name.
	Signs bool
	// AskUsage requests usage in the stream, even if the client did not.
	AskUsage bool
}

// Member is a top-level member of a body, with its value as JSON. The zero value means no member.
type Member struct{ Name, Value string }

// PromptBound bounds the size of a prompt.
type PromptBound struct {
	// TextBytes is the size of the body without its inline images.
	TextBytes int64
	// Images counts images, inline and by address.
	Images int64
	// Sound is the gateway's count of the tokens of inline sound. It is not a bound.
	Sound int64
	// Unbounded is set if the prompt has parts other than text and images, or parts outside the
	// body (files, video, hosted tools). Then only the model's context window bounds it.
	Unbounded bool
}

// PricedField is a value or a hosted tool of a request with a price of its own. The catalog prices
// or rejects it.
type PricedField struct {
	// Param is the path of the request's field: an option's name (`service_tier`), or a tool's path
	// (`tools[0].type`).
	Param string
	// Option is the option's name in the catalog, if it differs from Param: an option inside a tool
	// (`quality`) or a cache mark (`cache_control.ttl`). Empty means Param.
	Option string
	// Name is an option's value (`priority`) or a tool's name (`web_search`).
	Name string
	// MaxCalls is the request's limit on calls of the tool. Zero means none.
	MaxCalls int64
	// Options are the tool's own values that change its price.
	Options []PricedField
}

// PriceKey returns the name of an option in the catalog's `options`.
func (p *PricedField) PriceKey() string { return cmp.Or(p.Option, p.Param) }

// LongWrites returns the usage with all cache writes at the price of the longer time. Counts that
// the provider split by time stay as they are.
func (u Usage) LongWrites() Usage {
	if !u.CacheSplit {
		u.CacheWrite1h, u.CacheWrite = u.CacheWrite1h+u.CacheWrite, 0
	}
	u.Iterations = slices.Clone(u.Iterations)
	for i := range u.Iterations {
		if it := &u.Iterations[i]; !it.CacheSplit {
			it.CacheWrite1h, it.CacheWrite = it.CacheWrite1h+it.CacheWrite, 0
		}
	}
	return u
}

// ToolCalls counts the calls of hosted tools in an answer by the names of PricedField.
type ToolCalls map[string]int64

// maxToolNames is the largest number of hosted tools counted in one answer.
const maxToolNames = 64

// Add counts calls of a hosted tool. Beyond maxToolNames, further tools are not counted; a request cannot
// have more.
func (t *ToolCalls) Add(name string, n int64) {
	if (*t)[name] == 0 && len(*t) >= maxToolNames {
		return
	}
	if *t == nil {
		*t = make(ToolCalls)
	}
	(*t)[name] = min((*t)[name]+n, rawjson.MaxCount)
}

// AddCalls counts calls of a hosted tool (ToolCalls.Add).
func (u *Usage) AddCalls(name string, n int64) { (*ToolCalls)(&u.ToolCalls).Add(name, n) }
