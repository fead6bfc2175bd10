package item

import (
	"bytes"

	"tollgate/internal/wire"
	"tollgate/internal/wire/rawjson"
	"tollgate/internal/wire/translate/internal/piece"
)

// StepKind is the kind of a step.
type StepKind int

const (
	ReasoningText StepKind = iota // a piece of reasoning
	ReasoningEnd                  // the end of reasoning, with its encrypted form
	Text                          // a piece of a text
	Refusal                       // a piece of a refusal
	TextEnd                       // the end of a text or a refusal
	Call                          // the start of a call
	Arguments                     // a piece of a call's arguments or input
	CallEnd                       // the end of a call
)

// AnswerStep is one step of an answer.
type AnswerStep struct {
	Kind StepKind
	// Item and Part identify a text: the number of the item, from 0 in the order of arrival, and of
	// the part in it.
	Item, Part int
	// Text is the piece, the contents of a JSON string. For ReasoningEnd it is the sealed
	// reasoning, or empty.
	Text []byte
	// Logprobs are the logprobs of a piece of text, a JSON array, or nil.
	Logprobs []byte
	// Call is the call of the step.
	Call *ToolCall
}

// ToolCall is a call of a client tool.
type ToolCall struct {
	Number int // among the answer's calls, from 0
	// ID is the provider's, a nonempty JSON string, or nil. Name is the client's, the contents of a
	// JSON string.
	ID, Name []byte
	Custom   bool
	// HasArguments is set after a piece of its arguments.
	HasArguments bool
}

const (
	// maxItems and maxParts bound the memory for one answer; no model comes near.
	maxItems = 4096
	maxParts = 64
)

// Reader reads an answer, whole or as events of a stream, as steps. It is not safe for concurrent
// use.
type Reader struct {
	identity wire.Identity
	names    Names

	items  []*outItem
	calls  int
	reason string // of an incomplete answer
	ended  bool
}

// outItem is an item of an answer.
type outItem struct {
	number int
	key    int64  // the provider's output_index, or -1
	id     string // the provider's
	kind   itemKind
	ended  bool
	call   *ToolCall
	// parts are the texts of the item by index; of a call, its arguments.
	parts    map[int64]*part
	source   string // of reasoning: summary or content
	lastPart int64  // index of the last part of reasoning
	hasText  bool   // there was reasoning
}

// part is the part of a text written so far.
type part struct {
	number  int
	sum     textSum
	refusal bool
	ended   bool
}

// itemKind is a kind of item passed to the client.
type itemKind int

const (
	unknownItem itemKind = iota
	messageItem
	reasoningItem
	callItem
)

// NewReader returns the reader of the answer to a request with the declared names.
func NewReader(id wire.Identity, names Names) *Reader { return &Reader{identity: id, names: names} }

// textSum is the size and a hash of a written text, without escapes.
type textSum struct {
	size int
	sum  uint64
}

// add adds the contents of a JSON string.
func (t *textSum) add(contents []byte) {
	text := contents
	if bytes.IndexByte(contents, '\\') >= 0 {
		text = rawjson.AppendUnquoted(nil, contents)
	}
	*t = textSum{t.size + len(text), wire.Fold(t.sum, text)}
}

// rest returns the unwritten rest of a whole text, given as a JSON string, as the contents of one.
// It returns nil if the written text was another.
func (t *textSum) rest(whole []byte) []byte {
	if t.size == 0 {
		return piece.AppendContents(nil, whole)
	}
	text := rawjson.AppendUnquoted(nil, rawjson.Contents(whole))
	if len(text) <= t.size {
		return nil
	}
	if wire.Fold(0, text[:t.size]) != t.sum {
		return nil
	}
	return piece.AppendEscaped(nil, text[t.size:])
}
