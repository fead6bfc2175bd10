package wire

import (
	"bytes"
	"math"
	"strconv"

	"tollgate/internal/fault"
)

// ChatRequest is a chat-completions body that passed the gate. What it asks
// for is set by Check; until then it is zero.
type ChatRequest struct {
	Asked

	doc     *document
	opening opening // of the conversation
}

// OpenChat passes a chat-completions body through the gate. It answers
// invalid_encoding, invalid_json (also for keys repeated in any object) or
// invalid_request (not an object, too many keys). The request keeps body; nobody
// may change it afterwards.
func OpenChat(body []byte) (*ChatRequest, error) {
	doc, err := open(body)
	if err != nil {
		return nil, err
	}
	return &ChatRequest{doc: doc}, nil
}

// Model returns the model's id as the client sent it; model_not_found when it
// is absent or not a string.
func (r *ChatRequest) Model() (string, error) {
	raw := r.doc.raw("model")
	if !isText(raw) || len(raw) == 2 {
		return "", fault.At(fault.ModelNotFound, "model", "Name the model in `model`, as a string. GET /v1/models lists the models.")
	}
	return unquote(raw), nil
}

// Has tells whether the client sent a field, be it null.
func (r *ChatRequest) Has(field string) bool { return r.doc.find(field) != nil }

// Size returns the bytes of the body.
func (r *ChatRequest) Size() int64 { return int64(len(r.doc.body)) }

// integer reads a JSON number that is written as an integer. Values beyond
// int64 come out as its ends.
func integer(raw []byte) (int64, bool) {
	if len(raw) == 0 || bytes.ContainsAny(raw, ".eE\"{[tfn") {
		return 0, false
	}
	n, err := strconv.ParseInt(string(raw), 10, 64)
	if err != nil {
		if raw[0] == '-' {
			return math.MinInt64, true
		}
		return math.MaxInt64, true
	}
	return n, true
}

// boolean reads true or false; ok is false for any other value, and absent is
// false.
func boolean(raw []byte) (value, ok bool) {
	switch {
	case raw == nil || string(raw) == "false":
		return false, true
	case string(raw) == "true":
		return true, true
	}
	return false, false
}
