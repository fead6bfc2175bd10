// Package wire owns the words in which the other rooms speak of chat, whatever
// its form: what a request asks for, what an event or an answer means and costs,
// and how a request of one form meets a line of another (Pair). The folders below
// it, from the lowest floor up: rawjson and sse (JSON and event streams as raw
// bytes), this package, internal/form (what the readers of all forms share), a
// folder a form (completions, messages, responses, gemini, with equally named
// files: request, check, edit, meter, answer, editor, direct), usage, translate
// with a folder a pair (and what they share in its internal), and jobrequest
// (submissions of images and videos).
//
// Invariants: nothing is read that has not passed the gate (strict JSON, UTF-8,
// no repeated keys); a body or event is never decoded and encoded again, only the
// owned fields are replaced in place; all readers of strangers' bytes have a limit
// and never panic; arrows run from higher floors to lower ones only.
package wire

import (
	"cmp"
	"slices"

	"tollgate/internal/wire/rawjson"
)

// Form is one of the shapes of a chat call.
type Form string

// The forms, as the catalog names them (operator.md, Catalog). The first three
// are what clients and models have; lines may have any.
const (
	FormChat      Form = "chat"
	FormResponses Form = "responses"
	FormMessages  Form = "messages"
	// FormGemini is Google's generateContent, a form of lines alone.
	FormGemini Form = "gemini"
)

// Usage holds the counts of one answer, in tokens. Parts are included in their
// wholes: Cached, both CacheWrites and what its images and sound count in Prompt,
// Reasoning and images and sound in Completion. No
// count is negative or above maxCount.
type Usage struct {
	Prompt       int64
	Cached       int64 // read from the provider's cache
	CacheWrite   int64 // written to the cache for the vendor's shortest time
	CacheWrite1h int64 // written to the cache for longer
	Completion   int64
	Reasoning    int64
	// Of the prompt, outside its cached part, and of the completion: the tokens
	// of images and of sound.
	PromptImage, PromptAudio         int64
	CompletionImage, CompletionAudio int64
	// Iterations, if there are any, split the counts above by calls of models.
	Iterations []Iteration
	// ToolCalls counts the calls of hosted tools that the answer shows, by the
	// names that Priced uses. Nil when there are none.
	ToolCalls map[string]int64
	// Unknown names members of the provider's report that nobody knows and that
	// count something. They may be billed on top.
	Unknown []string
	// ServiceTier is the tier the provider says it answered with, or empty.
	ServiceTier string
	// CostNano is what the provider says that it takes itself, in nano-dollars,
	// if HasCost.
	CostNano int64
	HasCost  bool
	// CacheSplit is set if the provider reported CacheWrite and CacheWrite1h apart.
	CacheSplit bool
}

// Asked is what a request of any form asks for, as far as the gateway reads it.
type Asked struct {
	// Stream tells whether the client asked for a stream, IncludeUsage whether
	// it asked for the usage frame in it (chat completions only).
	Stream, IncludeUsage bool
	// Limit is the client's own limit on output tokens, the smallest where it
	// named several; 0 when it named none. LimitParam is the field it comes from.
	Limit      int64
	LimitParam string
	// N is how many choices were asked for, at least 1.
	N int64
	// Bound is what the prompt's highest possible size follows from.
	Bound PromptBound
	// ServiceTier is the tier asked for; empty when absent, auto or default.
	ServiceTier string
	// Options are the values that change the price, the tier among them.
	Options []Priced
	// Optional are values that change the price only where the catalog has a
	// price for them: of efforts, and of the fields in Routing.
	Optional []Priced
	// Tools are the hosted tools asked for.
	Tools []Priced
	// ModelCalls are the calls of models that the provider may make beside the
	// answer.
	ModelCalls []ModelCall
	// Routing are the fields that only lines get which pass them (field.Costs).
	Routing []string
	// LongCache is set if the request asks for a cache time beyond the shortest.
	LongCache bool
	// Extra are the fields that the form does not document. A line gets those that
	// its vendor documents or that it passes.
	Extra []string
	// Conversation is the same for all requests of one conversation, and hardly
	// ever for those of two: what its requests begin with, or the
	// prompt_cache_key.
	Conversation uint64
}

// Asking returns what a request asks for, whatever its form is.
func (a *Asked) Asking() *Asked { return a }

// Belongs tells that the request belongs to a conversation of which the client
// has said the name.
func (a *Asked) Belongs(name string) {
	var o ConversationKey
	o.Named([]byte(name))
	a.Conversation = o.Sum
}

// Edits are the owned fields of a request, as the line needs them.
type Edits struct {
	// Model is the provider's id of the model.
	Model string
	// Limit is the default limit on output tokens that is sent when the client
	// named none; 0 sends none. LimitField is where a line of chat completions
	// reads its limit (max_tokens or max_completion_tokens), the client's own
	// too; empty: where the client sent it.
	Limit      int64
	LimitField string
	// SystemOnly tells of a line of chat completions that it knows no role
	// developer: those messages become system's.
	SystemOnly bool
	// Efforts are those that the model takes; none: nobody knows.
	Efforts []string
	// NoThinking keeps the model of a line of chat completions from thinking,
	// which is done where a tool is forced that it would refuse otherwise.
	NoThinking Member
	// LeaveOut are fields of the client's that the line does not get.
	LeaveOut []string
	// AskUsage makes a stream carry its usage, also when the client did not ask
	// for it.
	AskUsage bool
}

// Member is a top-level member of a body: its name, and its value as JSON. The
// zero value is none.
type Member struct{ Name, Value string }

// PromptBound is what the highest possible size of a prompt follows from.
type PromptBound struct {
	// TextBytes are the bytes of the body less those of inline images.
	TextBytes int64
	// Images counts images, inline and by address.
	Images int64
	// Unbounded is set when the prompt holds what is neither text nor image or
	// lies outside the body (files, video, hosted tools): only the model's
	// context window bounds it.
	Unbounded bool
}

// Priced is a value or a hosted tool of a request that changes what the
// provider charges. The catalog prices or refuses it.
type Priced struct {
	// Param is the path of the request's field: an option's name
	// (`service_tier`), or where a tool is asked for (`tools[0].type`).
	Param string
	// Option is the name under which the catalog prices an option whose path has
	// another name: inside a tool (`quality`), or in a mark of the prompt cache
	// (`cache_control.ttl`). Empty means Param.
	Option string
	// Name is an option's value (`priority`) or a tool's name (`web_search`).
	Name string
	// MaxCalls is how often the request lets a tool be called; 0: it does not
	// say.
	MaxCalls int64
	// Options are the values inside a tool that change its price.
	Options []Priced
}

// PriceKey returns the name of an option in the catalog's `options`.
func (p *Priced) PriceKey() string { return cmp.Or(p.Option, p.Param) }

// LongWrites returns the usage with all cache writes at the price of the longer
// time, unless the provider reported the two apart: nobody knows then which of
// them the request's cache times wrote.
func (u Usage) LongWrites() Usage {
	if !u.CacheSplit {
		u.CacheWrite1h, u.CacheWrite = u.CacheWrite1h+u.CacheWrite, 0
	}
	u.Iterations = slices.Clone(u.Iterations)
	for i := range u.Iterations {
		if one := &u.Iterations[i]; !one.CacheSplit {
			one.CacheWrite1h, one.CacheWrite = one.CacheWrite1h+one.CacheWrite, 0
		}
	}
	return u
}

// maxToolNames is how many hosted tools the calls of one answer are counted of.
const maxToolNames = 64

// AddCalls counts calls of a hosted tool. Further tools of an answer that names
// more than a request can ask for are not counted.
func (u *Usage) AddCalls(name string, n int64) {
	if u.ToolCalls[name] == 0 && len(u.ToolCalls) >= maxToolNames {
		return
	}
	if u.ToolCalls == nil {
		u.ToolCalls = make(map[string]int64)
	}
	u.ToolCalls[name] = min(u.ToolCalls[name]+n, rawjson.MaxCount)
}
