package api

import (
	"encoding/json"
	"time"

	"tollgate/internal/catalog"
	"tollgate/internal/catalog/offer"
	"tollgate/internal/fault"
	"tollgate/internal/wire"
)

// models answers GET /v1/models: all models in the catalog's order with the account's prices,
// except retired models and sandbox models outside the key's permissions. Google's clients get their own
// list.
func (s *server) models(x *apiRequest) error {
	if isGoogleClient(x.Request) {
		return s.googleModels(x)
	}
	snapshot := s.Catalog.Current()
	first, err := s.firstSeen(x, snapshot)
	if err != nil {
		return fault.TryAgain(err)
	}
	data := []json.RawMessage{}
	for _, m := range snapshot.Models() {
		if x.lists(snapshot, m) {
			data = append(data, offer.Listing(m, first[m.ID]/1000, x.caller.Prices.FactorOf(m.ID)))
		}
	}
	return writeJSON(x, struct {
		Object string            `json:"object"`
		Data   []json.RawMessage `json:"data"`
	}{"list", data})
}

// lists reports whether the caller's model lists include m.
func (x *apiRequest) lists(snapshot *catalog.Snapshot, m *catalog.Model) bool {
	return m.State != catalog.StateRetired && !x.hides(snapshot, m.ID)
}

// model answers GET /v1/models/{id} with the model's entry in the list.
func (s *server) model(x *apiRequest) error {
	if isGoogleClient(x.Request) {
		return s.googleModel(x)
	}
	return s.showModel(x, wire.FormChat, func(m *catalog.Model, created int64) any {
		return offer.Listing(m, created, x.caller.Prices.FactorOf(m.ID))
	})
}

// nativeModel answers GET /native/v1/models/{id}.
func (s *server) nativeModel(x *apiRequest) error {
	return s.showModel(x, wire.FormMessages, func(m *catalog.Model, created int64) any { return showNative(m, created) })
}

// showModel answers with one model of a form's list.
func (s *server) showModel(x *apiRequest, form wire.Form, show func(m *catalog.Model, created int64) any) error {
	snapshot := s.Catalog.Current()
	m, known := snapshot.Model(x.PathID())
	if !known || !x.lists(snapshot, m) || form != wire.FormChat && !m.Supports(form) {
		return fault.At(fault.NotFound, "model", "There is no model %q. GET %s lists the models that you can use.", fault.Excerpt(x.PathID()),
			modelList(form))
	}
	first, err := s.firstSeen(x, snapshot)
	if err != nil {
		return fault.TryAgain(err)
	}
	return writeJSON(x, show(m, first[m.ID]/1000))
}

// firstSeen returns when the models of a snapshot were first in a catalog, in Unix
// milliseconds.
func (s *server) firstSeen(x *apiRequest, snapshot *catalog.Snapshot) (map[string]int64, error) {
	ctx, cancel := x.DetachedContext(readTimeout)
	defer cancel()
	return s.Since.FirstSeen(ctx, snapshot.Revision)
}

// listedModel is an entry of GET /native/v1/models in Anthropic's format.
type listedModel struct {
	Type           string  `json:"type"`
	ID             string  `json:"id"`
	DisplayName    string  `json:"display_name"`
	CreatedAt      string  `json:"created_at"` // RFC 3339
	Lifecycle      string  `json:"lifecycle"`
	DeprecatedAt   *string `json:"deprecated_at"`
	RetiresAt      *string `json:"retires_at"`
	Line           *string `json:"line"`
	MaxInputTokens int64   `json:"max_input_tokens"`
	MaxTokens      int64   `json:"max_tokens"`
}

func showNative(m *catalog.Model, created int64) listedModel {
	return listedModel{
		Type: "model", ID: m.ID, DisplayName: m.ID, CreatedAt: time.Unix(created, 0).UTC().Format(time.RFC3339),
		Lifecycle: "active", MaxInputTokens: m.ContextWindow, MaxTokens: m.MaxOutputTokens,
	}
}
