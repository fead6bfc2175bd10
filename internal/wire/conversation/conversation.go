// Package conversation owns the hub of translation: one model of a conversation with a model. Each
// form has four parts, in its own package: a decoder of requests, an encoder of requests, a reader
// of answers and a writer of answers. A request is decoded from the client's form, its history is
// repaired, and it is encoded in the line's form. The answer is read from the line's form as events
// and written in the client's form. So each repair and each limit exists once.
//
// Invariants: texts and numbers are JSON as sent by the client or the provider, never decoded and
// encoded again, so that equal requests give equal bytes (for prompt caches) and large numbers keep
// every digit; appended bytes are JSON, whatever the input; each part has its path in the client's
// body, so that a refusal names the client's field; pending output is bounded.
package conversation

import (
	"tollgate/internal/wire"
	"tollgate/internal/wire/rawjson"
)

// Request is a request of any form. Its values are JSON; absent ones are nil.
type Request struct {
	*wire.Parameters
	// Client is the client's form.
	Client wire.Form
	// Size is the size of the client's body in bytes.
	Size int64

	Turns []Turn
	Tools []*Tool
	// byName and byLine are the tools by their names. NameTools sets them.
	byName   map[ToolName]*Tool
	byLine   map[string]*Tool
	Choice   Choice
	Parallel []byte // whether several calls at once are allowed, a boolean

	Stops [][]byte // strings
	// LocalStops are the Stops that the line does not support. The gateway ends the answer there. TakeStops
	// sets them.
	LocalStops                        [][]byte
	Temperature, TopP, TopK           []byte
	PresencePenalty, FrequencyPenalty []byte
	Seed                              []byte
	Logprobs, TopLogprobs             []byte

	Format    Format
	Verbosity []byte
	Effort    Effort

	// User and SafetyID are names of the client's end user, CacheKey names the conversation.
	User, SafetyID, CacheKey []byte
	Tier                     []byte // the service tier
	// CacheOptions are settings of OpenAI's prompt cache.
	CacheOptions []wire.Member
	// Modalities are the kinds of output, ImageConfig are settings for images.
	Modalities, ImageConfig []byte
}

// TurnRole is the author of a turn.
type TurnRole int

// The roles. A repaired history has the results of tools in turns of their own.
const (
	System TurnRole = iota
	User
	Assistant
	Results
)

// Turn is one message.
type Turn struct {
	Role  TurnRole
	Parts []Part
	// Current is set for turns after the user's last words: the tool calls and results of the answer in
	// progress.
	Current bool
	// At is the path of the message.
	At string
}

// PartKind is the kind of a part, of a request or of an answer.
type PartKind int

// The kinds of parts.
const (
	Text PartKind = iota
	Refusal
	Thinking // reasoning, or only its signature
	Image
	File
	ToolCall
	ToolResult
)

// Part is a part of a turn.
type Part struct {
	Kind PartKind
	// Text holds the contents of a JSON string: a text, a refusal or reasoning.
	Text   []byte
	Media  *Media
	Call   *CallPart
	Result *ResultPart
	// Signature belongs to reasoning, a call or an image.
	Signature Signature
	Mark      Mark
	// At is the part's path.
	At string
}

// Media is an image or a file. Its values are JSON strings.
type Media struct {
	// Address is a data address or a web address. Some files have only a name.
	Address []byte
	Name    []byte // of a file
	Detail  []byte // of an image
	// Generated is set for an image made by the model. Most forms have no place for it.
	Generated bool
	// At is the path of the address.
	At string
}

// CallPart is a call of a client's tool.
type CallPart struct {
	ID              string
	Name, Namespace string
	// Arguments is a JSON object, or a JSON string with the object's text, or the input of a custom
	// tool.
	Arguments []byte
	Custom    bool
}

// ResultPart is the result of a call. If ID is empty, it belongs to the first call of the function Name
// without a result. If Name is empty too, it belongs to the first call without a result.
type ResultPart struct {
	ID, Name string
	Parts    []Part
	Error    bool // the tool failed
	Missing  bool // the client sent no result
}

// Signature is a provider's state that clients send back: the contents of a JSON string.
type Signature struct {
	Data []byte
	// Vendor is the form of the line that the state belongs to, if the state is not sealed.
	Vendor wire.Form
}

// Mark ends a prefix of the prompt to be cached.
type Mark struct {
	Time CacheTime
	Raw  []byte // OpenAI's JSON of the mark, if the client sent it in this form
}

// CacheTime is the lifetime of a cached prefix.
type CacheTime int

// The lifetimes.
const (
	NoCache CacheTime = iota
	Minutes
	Hour
)

// MarkOf reads the mark of a part or tool, Anthropic's or OpenAI's.
func MarkOf(object []byte) (m Mark) {
	m.Raw = rawjson.Field(object, "prompt_cache_breakpoint")
	time := func(mark []byte, long string) CacheTime {
		switch {
		case len(mark) == 0 || mark[0] != '{':
			return NoCache
		case rawjson.Unquote(rawjson.Field(mark, "ttl")) == long:
			return Hour
		}
		return Minutes
	}
	if m.Time = time(rawjson.Field(object, "cache_control"), "1h"); m.Time == NoCache {
		m.Time = time(m.Raw, "12h")
	}
	return m
}

// Tool is a tool of the client. Values are JSON, or nil.
type Tool struct {
	Name, Namespace string
	// Line is the name on a line without namespaces and with short names.
	Line                string
	Description, Schema []byte
	Strict              []byte // a boolean
	Custom              bool   // it takes free text
	Grammar             []byte // the format of a custom tool's text
	Mark                Mark
	At                  string
}

// Choice is the client's choice of tools.
type Choice struct {
	Mode ChoiceMode
	// Tool is the tool that must be called.
	Tool ToolName
	// Allowed are the tools that may be called, if the client restricted them.
	Allowed    []ToolName
	Restricted bool
	At         string
}

// ChoiceMode is the mode of a choice.
type ChoiceMode string

// The modes, as in chat completions.
const (
	NoChoice     ChoiceMode = ""
	ChoiceNone   ChoiceMode = "none"
	ChoiceAuto   ChoiceMode = "auto"
	ChoiceAny    ChoiceMode = "required"
	ChoiceOfTool ChoiceMode = "tool"
)

// ToolName is the name of a tool. An empty Name stands for all tools of the namespace.
type ToolName struct {
	Name, Namespace string
	Custom          bool
}

// allows reports whether a choice lets the model call a tool.
func (c *Choice) allows(t *Tool) bool {
	if !c.Restricted {
		return true
	}
	for _, name := range c.Allowed {
		if name.Namespace == t.Namespace && (name.Name == t.Name || name.Name == "" && t.Namespace != "") {
			return true
		}
	}
	return false
}

// Offered returns the tools that the model may call.
func (r *Request) Offered() []*Tool {
	if !r.Choice.Restricted {
		return r.Tools
	}
	var tools []*Tool
	for _, t := range r.Tools {
		if r.Choice.allows(t) {
			tools = append(tools, t)
		}
	}
	return tools
}

// ForcesTool reports whether the model must call a tool.
func (r *Request) ForcesTool() bool {
	return len(r.Tools) > 0 && (r.Choice.Mode == ChoiceAny || r.Choice.Mode == ChoiceOfTool)
}

// FormatKind is the format of an answer.
type FormatKind int

// The formats.
const (
	Plain FormatKind = iota
	JSONObject
	JSONSchema
)

// Format is the format requested for the answer.
type Format struct {
	Kind                      FormatKind
	Name, Description, Schema []byte
	Strict                    []byte
	// At is the path of the schema.
	At string
}

// Effort is the reasoning requested.
type Effort struct {
	// Word is the effort as a JSON string, one of wire.Efforts unless the client sent another.
	Word []byte
	// Show is set if the client wants to see the reasoning.
	Show bool
	// At is the path of the effort.
	At string
}
