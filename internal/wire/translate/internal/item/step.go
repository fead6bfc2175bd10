package item

import (
	"bytes"

	"tollgate/internal/wire"
	"tollgate/internal/wire/rawjson"
	"tollgate/internal/wire/translate/internal/piece"
)

// StepKind is what a step of an answer is.
type StepKind int

const (
	Thought   StepKind = iota // a piece of what the model thought
	Thinking                  // the end of that, with what is encrypted of it
	Text                      // a piece of a text
	Refusal                   // a piece of a refusal
	TextEnd                   // the end of a text or a refusal
	Call                      // the beginning of a call
	Arguments                 // a piece of a call's arguments, or of its input
	CallEnd                   // the end of a call
)

// AnswerStep is one thing that an answer says.
type AnswerStep struct {
	Kind StepKind
	// Item and Part tell texts from each other: the number of the item, from 0 in
	// the order in which they came, and of the part in it.
	Item, Part int
	// Text is the piece, as the inside of a JSON string; of Thinking what is
	// encrypted as the client gets it, empty if nothing is.
	Text []byte
	// Logprobs are those of a text's piece, a JSON array; nil: none.
	Logprobs []byte
	// Call is the call that a step is about.
	Call *ToolCall
}

// ToolCall is a call of a tool of the client's.
type ToolCall struct {
	Number int // among the answer's calls, from 0
	// ID is the provider's, a JSON string that is not empty, or nil; Name is the
	// client's, the inside of a JSON string.
	ID, Name []byte
	Custom   bool
	// Said tells that a piece of its arguments came.
	Said bool
}

const (
	// maxItems and maxParts bound what is remembered of one answer; no model's
	// comes near.
	maxItems = 4096
	maxParts = 64
)

// Reader reads an answer as steps: a whole one, or the events of a stream. Not
// for concurrent use.
type Reader struct {
	identity wire.Identity
	names    Names

	items  []*outItem
	calls  int
	reason string // why the answer is incomplete; empty if it is not
	over   bool
}

// outItem is an item of an answer.
type outItem struct {
	number int
	key    int64  // the provider's output_index; -1: it names none
	id     string // the provider's
	kind   itemKind
	ended  bool
	call   *ToolCall
	// parts are the texts of the item, those of what was thought by their first
	// kind; of a call one, the arguments.
	parts  map[int64]*part
	source string // of what was thought: summary or content
	shown  int64  // the part that thoughts last came of
	any    bool   // a thought came
}

// part is a text as far as it was written.
type part struct {
	number  int
	told    told
	refusal bool
	ended   bool
}

// itemKind is a kind of item that a client gets something of.
type itemKind int

const (
	unknownItem itemKind = iota
	messageItem
	reasoningItem
	callItem
)

// NewReader makes the reader of the answer to a request that has declared names.
func NewReader(id wire.Identity, names Names) *Reader { return &Reader{identity: id, names: names} }

// told is what was written of a text: its size and a hash, without escapes.
type told struct {
	size int
	sum  uint64
}

// The constants of the 64-bit FNV-1a hash.
const (
	fnvOffset = 14695981039346656037
	fnvPrime  = 1099511628211
)

// add takes in the inside of a JSON string.
func (t *told) add(inside []byte) {
	if t.size == 0 {
		t.sum = fnvOffset
	}
	text := inside
	if bytes.IndexByte(inside, '\\') >= 0 {
		text = rawjson.AppendUnquoted(nil, inside)
	}
	t.take(text)
}

// take takes in a text.
func (t *told) take(text []byte) {
	for _, c := range text {
		t.sum = (t.sum ^ uint64(c)) * fnvPrime
	}
	t.size += len(text)
}

// rest returns what of a whole text, a JSON string, was not written, as the
// inside of one; nothing where something else was.
func (t *told) rest(whole []byte) []byte {
	if t.size == 0 {
		return piece.AppendInside(nil, whole)
	}
	text := rawjson.AppendUnquoted(nil, rawjson.Contents(whole))
	if len(text) <= t.size {
		return nil
	}
	before := told{sum: fnvOffset}
	if before.take(text[:t.size]); before != *t {
		return nil
	}
	return piece.AppendEscaped(nil, text[t.size:])
}
