package upstream

import (
	"net/url"
	"strings"
)

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

// vendor is a company by the adapter that speaks with it alone, if there is one,
// and its domain.
type vendor struct{ adapter, domain string }

// is tells whether the answer came from a vendor.
func (s Source) is(v vendor) bool {
	if v.adapter != "" && s.Provider == v.adapter {
		return true
	}
	u, err := url.Parse(s.BaseURL)
	if err != nil {
		return false
	}
	host := strings.ToLower(u.Hostname())
	return host == v.domain || strings.HasSuffix(host, "."+v.domain)
}

// wordings are notices of vendors that give no telling name, by how they begin.
// The name of a client's field may stand there as well, so what one says about
// our account is never proof.
var wordings = [...]struct {
	vendor vendor // none: anybody's, where they do no harm to others
	text   string
	reason reason
}{
	{vendor{"anthropic", "anthropic.com"}, "your credit balance is too low", reasonAccountWords},
	{vendor{"anthropic", "anthropic.com"}, "you have reached your specified", reasonAccountWords},
	{vendor{}, "the request was rejected because it was considered high risk", reasonFilter}, // Moonshot
}

// worded returns the reason of a notice's wording. An error that names a
// parameter ("NAME: Extra inputs are not permitted") is about that.
func (s Source) worded(n notice) reason {
	message := strings.ToLower(n.message)
	if n.param != "" || strings.Contains(message, ": ") {
		return reasonNone
	}
	for _, w := range wordings {
		if strings.HasPrefix(message, w.text) && (w.vendor == vendor{} || s.is(w.vendor)) {
			return w.reason
		}
	}
	return reasonNone
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
