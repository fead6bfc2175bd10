package upstream

import "strings"

// Source identifies the sender of an answer. A vendor's wording counts only in the
// vendor's own answers, and a model's name counts only if it is the id of the requested
// model.
type Source struct {
	// Provider is the adapter's name and BaseURL the line's address. Empty means
	// unknown.
	Provider, BaseURL string
	// Model is the provider's id of the requested model. Empty means unknown.
	Model string
}

// namesModel reports whether a notice begins by saying that the requested model is
// missing ("The model `ID` does not exist", "model: ID", "models/ID is not found").
func (s Source) namesModel(n notice) bool {
	before, after, found := strings.Cut(strings.ToLower(n.message), strings.ToLower(s.Model))
	if s.Model == "" || !found || n.param != "" && n.param != "model" {
		return false
	}
	switch strings.TrimRight(before, " :/`'\"") {
	case "model", "models", "the model", "the requested model", "publisher model":
	default:
		return false
	}
	after = strings.TrimLeft(after, "`'\"")
	return after == "" || strings.ContainsAny(after[:1], " .,:;")
}

// Words, in lower case, that show the subject of a 403 or 404 without a known error
// name. The subject decides the client's message and whether the request tries other
// lines, but never takes a line out of service.
var (
	accountWords = [...]string{"account", "api key", "api-key", "credit", "balance", "billing", "organization", "region", "country", "team"}
	contentWords = [...]string{"content", "usage guideline", "safety", "moderation", "flagged", "policy", "policies", "prompt was"}
	featureWords = [...]string{"tool", "image", "vision", "picture", "audio", "video", "modalit", "multimodal",
		"parameter", "max_tokens", "context length", "less than context", "response_format", "reasoning"}
)

// mentions reports whether a text in lower case contains one of the words.
func mentions(text string, words []string) bool {
	for _, w := range words {
		if strings.Contains(text, w) {
			return true
		}
	}
	return false
}

// unquote returns a message in lower case without quoted text, because quoted text may be
// a name or repeat a client's words.
func unquote(message string) string {
	var b strings.Builder
	for rest := strings.ToLower(message); rest != ""; {
		i := strings.IndexAny(rest, "`'\"")
		if i < 0 {
			b.WriteString(rest)
			break
		}
		b.WriteString(rest[:i])
		end := strings.IndexByte(rest[i+1:], rest[i])
		if end < 0 { // an apostrophe
			b.WriteString(rest[i+1:])
			break
		}
		rest = rest[i+1+end+1:]
	}
	return b.String()
}
