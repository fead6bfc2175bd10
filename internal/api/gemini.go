package api

import (
	"cmp"
	"net/http"
	"strings"

	"tollgate/internal/catalog"
	"tollgate/internal/httpapi"
	"tollgate/internal/wire"
	"tollgate/internal/wire/gemini"
)

// googleKey returns the key of a request of the Gemini form: x-goog-api-key, the query's key, or the
// Bearer token.
func googleKey(r *http.Request) string {
	return cmp.Or(strings.TrimSpace(r.Header.Get("X-Goog-Api-Key")), strings.TrimSpace(r.URL.Query().Get("key")), httpapi.Bearer(r.Header))
}

// isGoogleClient reports whether a request comes from one of Google's clients. They use some of the
// paths of OpenAI's clients, but send the key in x-goog-api-key.
func isGoogleClient(r *http.Request) bool {
	return httpapi.Bearer(r.Header) == "" && r.Header.Get("X-Goog-Api-Key") != ""
}

// generateContent answers POST /v1beta/models/{id}:generateContent.
func (s *server) generateContent(x *apiRequest) error {
	return s.answerGemini(x, gemini.Method{Model: x.PathID()})
}

// streamGenerateContent answers POST /v1beta/models/{id}:streamGenerateContent: with events for
// `alt=sse`, or else with one JSON array.
func (s *server) streamGenerateContent(x *apiRequest) error {
	return s.answerGemini(x, gemini.Method{Model: x.PathID(), Stream: true, Array: x.Request.URL.Query().Get("alt") != "sse"})
}

func (s *server) answerGemini(x *apiRequest, m gemini.Method) error {
	return s.answerChat(x, chatEndpoint{form: wire.FormGemini, parse: func(body []byte) (request, error) { return gemini.Open(body, m) }})
}

// countContent answers POST /v1beta/models/{id}:countTokens, as countTokens does.
func (s *server) countContent(x *apiRequest) error {
	accepted, err := s.checkChat(x, chatEndpoint{form: wire.FormGemini, parse: func(body []byte) (request, error) {
		return gemini.OpenCount(body, x.PathID())
	}})
	if err != nil {
		return err
	}
	n, err := s.count(x, accepted)
	if err != nil {
		return err
	}
	return writeJSON(x, struct {
		Tokens int64 `json:"totalTokens"`
	}{n})
}

// googleListed is an entry of GET /v1beta/models in Google's format.
type googleListed struct {
	Name        string   `json:"name"`
	DisplayName string   `json:"displayName"`
	Version     string   `json:"version"`
	InputLimit  int64    `json:"inputTokenLimit"`
	OutputLimit int64    `json:"outputTokenLimit"`
	Methods     []string `json:"supportedGenerationMethods"`
	Thinking    bool     `json:"thinking,omitempty"`
}

func showGoogle(m *catalog.Model) googleListed {
	return googleListed{
		Name: "models/" + m.ID, DisplayName: m.ID, Version: m.ID, InputLimit: m.ContextWindow, OutputLimit: m.MaxOutputTokens,
		Methods: []string{"generateContent", "streamGenerateContent", "countTokens"}, Thinking: m.Reasoning,
	}
}

// googleModel answers GET /v1beta/models/{id}.
func (s *server) googleModel(x *apiRequest) error {
	return s.showModel(x, wire.FormGemini, func(m *catalog.Model, _ int64) any { return showGoogle(m) })
}

// Bounds of a page of GET /v1beta/models.
const (
	googlePage     = 50
	googlePageMost = 1000
)

// googleModels answers GET /v1beta/models: a page of the listed models of the Gemini form in the
// catalog's order. The token of the next page is the id of its first model.
func (s *server) googleModels(x *apiRequest) error {
	query := x.Request.URL.Query()
	limit, err := pageLimit(query, "pageSize", googlePage, googlePageMost)
	if err != nil {
		return err
	}
	snapshot := s.Catalog.Current()
	all := []googleListed{}
	for _, m := range snapshot.Models() {
		if x.lists(snapshot, m) && m.Supports(wire.FormGemini) {
			all = append(all, showGoogle(m))
		}
	}
	at, _, err := cursor(query, "pageToken", all, func(m googleListed) string { return strings.TrimPrefix(m.Name, "models/") }, noModel)
	if err != nil {
		return err
	}
	all = all[at:]
	list := struct {
		Models []googleListed `json:"models"`
		Next   string         `json:"nextPageToken,omitempty"`
	}{Models: all}
	if len(all) > limit {
		list.Models, list.Next = all[:limit], strings.TrimPrefix(all[limit].Name, "models/")
	}
	return writeJSON(x, list)
}
