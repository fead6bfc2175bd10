package upstream

import "strings"

// Source identifies the sender of an answer. The wording of a vendor counts only in
// answers of the vendor itself, and only the id of the requested model counts as the
// name of the model.
type Source struct {
	// Provider is the adapter's name and BaseURL the line's address. Empty means
	// unknown.
	Provider, BaseURL string
	// Model is the provider's id of the requested model. Empty means unknown.
	Model string
}

// namesModel reports whether a notice begins with the id of the requested model as
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

// The words, in lower case, that show the subject of a 403 or 404 without a known
// error name. They decide the client's message and whether the request tries other
// lines, but never take a line out of service.
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

// unquote returns a message in lower case without quoted text: names, and a client's
// words.
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
