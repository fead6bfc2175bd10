package upstream

import "strings"

// Source is who gave an answer: vendors' wordings count only where they come
// from their vendor, and a model is named only by its own id.
type Source struct {
	// Provider names the adapter, and BaseURL is the address, that spoke; empty
	// is not known.
	Provider, BaseURL string
	// Model is the provider's id of the model that was asked for; empty: not
	// known.
	Model string
}

// namesModel tells whether a notice begins by saying of the model that was asked
// for, by its id, that it is not there ("The model `ID` does not exist",
// "model: ID", "models/ID is not found").
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

// Words, in lower case, that tell what a 403 or 404 without a telling name is
// about. They decide what the client reads and whether other lines are asked,
// never that a line is out.
var (
	accountWords = [...]string{"account", "api key", "api-key", "credit", "balance", "billing", "organization", "region", "country", "team"}
	contentWords = [...]string{"content", "usage guideline", "safety", "moderation", "flagged", "policy", "policies", "prompt was"}
	featureWords = [...]string{"tool", "image", "vision", "picture", "audio", "video", "modalit", "multimodal",
		"parameter", "max_tokens", "context length", "less than context", "response_format", "reasoning"}
)

// mentions tells whether a text in lower case has one of some words.
func mentions(text string, words []string) bool {
	for _, w := range words {
		if strings.Contains(text, w) {
			return true
		}
	}
	return false
}

// unquote returns a message in lower case without what stands in quotation
// marks: names, and a client's words.
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
