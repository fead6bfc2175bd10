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
// except retired models and sandbox models outside the key's permissions.
func (d *server) models(x *apiRequest) error {
	snapshot := d.Catalog.Current()
	first, err := d.firstSeen(x, snapshot)
	if err != nil {
		return fault.TryAgain(err)
	}
	data := []json.RawMessage{}
	for _, m := range snapshot.Models() {
		if m.State != catalog.StateRetired && !x.hides(snapshot, m.ID) {
			data = append(data, offer.Listing(m, first[m.ID]/1000, x.caller.Prices.Of(m.ID)))
		}
	}
	return writeJSON(x, struct {
		Object string            `json:"object"`
		Data   []json.RawMessage `json:"data"`
	}{"list", data})
}

// model answers GET /v1/models/{id}: the model as the list has it.
func (d *server) model(x *apiRequest) error {
	snapshot := d.Catalog.Current()
	m, known := snapshot.Model(x.PathID())
	if !known || m.State == catalog.StateRetired || x.hides(snapshot, m.ID) {
		return noModel(x.PathID(), wire.FormChat)
	}
	first, err := d.firstSeen(x, snapshot)
	if err != nil {
		return fault.TryAgain(err)
	}
	return writeJSON(x, offer.Listing(m, first[m.ID]/1000, x.caller.Prices.Of(m.ID)))
}

// nativeModel answers GET /native/v1/models/{id}.
func (d *server) nativeModel(x *apiRequest) error {
	snapshot := d.Catalog.Current()
	m, known := snapshot.Model(x.PathID())
	if !known || m.State == catalog.StateRetired || !m.Speaks(wire.FormMessages) || x.hides(snapshot, m.ID) {
		return noModel(x.PathID(), wire.FormMessages)
	}
	first, err := d.firstSeen(x, snapshot)
	if err != nil {
		return fault.TryAgain(err)
	}
	return writeJSON(x, showNative(m, first[m.ID]/1000))
}

// noModel returns the error for a model outside the list.
func noModel(id string, form wire.Form) error {
	return fault.At(fault.NotFound, "model", "There is no model %q. GET %s lists the models that you can use.", fault.Shown(id),
		modelList(form))
}

// firstSeen returns when the models of a snapshot were first in a catalog, in Unix
// milliseconds.
func (d *server) firstSeen(x *apiRequest, snapshot *catalog.Snapshot) (map[string]int64, error) {
	ctx, cancel := x.Detached(readTimeout)
	defer cancel()
	var ids []string
	for _, m := range snapshot.Models() {
		ids = append(ids, m.ID)
	}
	return d.Since.Of(ctx, snapshot.Revision, ids)
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
