package upstream

import "strings"

// Some vendors report an overload as a client error: status 400 and type
// invalid_request_error, without a code for the overload. Only the message then shows
// that another line may serve the request. The phrases below are from messages of OpenAI
// ("Selected model is at capacity. Please try a different model."), Google
// ("No capacity available for model …", "This model is currently experiencing
// high demand."), xAI ("The model is at capacity and currently cannot serve
// this request."), DeepSeek ("Service is too busy."), Anthropic ("Overloaded"),
// MiniMax ("The server cluster is currently under high load."), Groq ("… is
// currently over capacity."), Alibaba ("… due to system capacity limits.") and
// Zhipu.
var (
	// capacityPhrases lists wordings for a lack of capacity.
	capacityPhrases = [...]string{"at capacity", "at full capacity", "at maximum capacity", "over capacity", "out of capacity", "no capacity",
		"insufficient capacity", "not enough capacity", "capacity limits", "capacity is exhausted", "capacity exceeded",
		"overloaded", "high demand", "high load", "heavy load", "high traffic", "too busy", "currently busy", "is busy", "访问量过大"}
	// capacitySubjects lists words for the parts of a provider that may lack capacity.
	capacitySubjects = [...]string{"model", "server", "engine", "service", "system", "cluster", "deployment", "backend", "provider",
		"inference", "gpu", "we are", "模型"}
	// requestWords lists words for parts of a request. A sentence with such a word is about the
	// request.
	requestWords = [...]string{"parameter", "field", "property", "argument", "value", "invalid", "unsupported", "not supported", "unknown",
		"unrecognized", "must ", "should ", "expected", "required", "token", "context", "prompt", "input", "message", "content",
		"image", "file", "tool", "function", "schema", "name", "metadata", "not permitted", "not allowed", "does not match", "is not one of"}
)

// contractions spells out contractions, because unquote takes their apostrophes for quotation marks.
var contractions = strings.NewReplacer("e're ", "e are ", "e\u2019re ", "e are ", "n't ", " not ")

// longestCapacitySentence is the maximum length of a sentence about capacity, in bytes. A longer
// sentence may repeat the client's text.
const longestCapacitySentence = 160

// isAtCapacity reports whether a notice's message gives a lack of capacity as the reason. Quoted text,
// a sentence with a colon and a sentence about a part of the request do not count, because the
// message may repeat words of the request.
func (s Source) isAtCapacity(n notice) bool {
	if n.param != "" && n.param != "model" {
		return false
	}
	first, _, _ := strings.Cut(unquote(contractions.Replace(n.message)), ". ")
	first = strings.TrimRight(strings.TrimSpace(first), ".!")
	switch {
	case first == "" || len(first) > longestCapacitySentence || strings.Contains(first, ": "):
		return false
	case first == "overloaded":
		return true
	case !mentions(first, capacityPhrases[:]):
		return false
	}
	if model := strings.ToLower(s.Model); model != "" && strings.Contains(first, model) {
		first = strings.ReplaceAll(first, model, "model")
	}
	return mentions(first, capacitySubjects[:]) && !mentions(first, requestWords[:])
}
