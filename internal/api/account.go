package api

import (
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	"tollgate/internal/catalog"
	"tollgate/internal/ledger"
	"tollgate/internal/money"
	"tollgate/internal/store"
)

// readTimeout bounds what is asked of the database before an answer.
const readTimeout = 10 * time.Second

// models answers GET /v1/models: all models but the retired, in the order of
// the catalog, the same for every key. `created` is when the catalog revision
// was applied that offers them.
func (d *desk) models(x *exchange) error {
	type entry struct {
		ID      string `json:"id"`
		Object  string `json:"object"`
		Created int64  `json:"created"`
		OwnedBy string `json:"owned_by"`
	}
	snapshot := d.Catalog.Current()
	created, err := d.appliedAt(x, snapshot.Revision)
	if err != nil {
		return away(err)
	}
	data := []entry{}
	for _, m := range snapshot.Models() {
		if m.State != catalog.StateRetired {
			data = append(data, entry{m.ID, "model", created, m.Owner()})
		}
	}
	return writeJSON(x, struct {
		Object string  `json:"object"`
		Data   []entry `json:"data"`
	}{"list", data})
}

// revisionTime is when a catalog revision was applied.
type revisionTime struct{ revision, seconds int64 }

// appliedAt returns when a revision was applied, in Unix seconds. It asks the
// database once a revision.
func (d *desk) appliedAt(x *exchange, revision int64) (int64, error) {
	if known := d.applied.Load(); known != nil && known.revision == revision {
		return known.seconds, nil
	}
	ctx, cancel := x.Outliving(readTimeout)
	defer cancel()
	at := &revisionTime{revision: revision}
	err := d.DB.View(ctx, func(tx *store.Tx) error {
		history, _, err := catalog.HistoryTx(tx, revision+1, 1)
		if len(history) > 0 {
			at.seconds = history[0].AppliedMS / 1000
		}
		return err
	})
	if err != nil {
		return 0, err
	}
	d.applied.Store(at)
	return at.seconds, nil
}

// totals are the members that total, today and each model share
// (interface.md, Usage).
type totals struct {
	Cost     money.Amount `json:"cost_usd"`
	Requests int64        `json:"requests"`
	Billed   int64        `json:"billed_requests"`
	Failed   int64        `json:"failed_requests"`
}

// totalsOf picks the shared members.
func totalsOf(t ledger.Totals) totals {
	return totals{t.Cost, t.Requests, t.Billed, t.Failed}
}

// usage answers GET /v1/usage, for the account of the key.
func (d *desk) usage(x *exchange) error {
	u, err := d.readUsage(x)
	if err != nil {
		return err
	}
	type balance struct {
		USD     money.Amount `json:"usd"`
		Credits json.Number  `json:"credits"`
	}
	type model struct {
		Model string `json:"model"`
		totals
		Prompt     int64 `json:"prompt_tokens"`
		Completion int64 `json:"completion_tokens"`
		Images     int64 `json:"image_count"`
	}
	models := make([]model, len(u.ByModel))
	for i, m := range u.ByModel {
		models[i] = model{m.Model, totalsOf(m.Totals), m.Prompt, m.Completion, m.Images}
	}
	return writeJSON(x, struct {
		Object  string  `json:"object"`
		Balance balance `json:"balance"`
		Total   totals  `json:"total"`
		Today   totals  `json:"today"`
		ByModel []model `json:"by_model"`
	}{"usage", balance{u.Balance, u.Balance.Credits()}, totalsOf(u.Total), totalsOf(u.Today), models})
}

// creditGrants answers GET /v1/dashboard/billing/credit_grants: what was
// granted, used and is left, in US dollars. Granted is the sum of the credits,
// less what was taken back.
func (d *desk) creditGrants(x *exchange) error {
	u, err := d.readUsage(x)
	if err != nil {
		return err
	}
	granted, err := money.Add(u.Balance, u.Total.Cost)
	if err != nil {
		return err
	}
	return writeJSON(x, struct {
		Object    string       `json:"object"`
		Granted   money.Amount `json:"total_granted"`
		Used      money.Amount `json:"total_used"`
		Available money.Amount `json:"total_available"`
	}{"credit_summary", granted, u.Total.Cost, u.Balance})
}

// readUsage reads balance and totals of the caller's account in one snapshot.
func (d *desk) readUsage(x *exchange) (ledger.Usage, error) {
	ctx, cancel := x.Outliving(readTimeout)
	defer cancel()
	var u ledger.Usage
	err := d.DB.View(ctx, func(tx *store.Tx) (err error) {
		u, err = ledger.UsageTx(tx, x.principal.Account)
		return err
	})
	if err != nil {
		return u, away(err)
	}
	return u, nil
}

// writeJSON answers 200 with a JSON body.
func writeJSON(x *exchange, v any) error {
	body, err := json.Marshal(v)
	if err != nil {
		return err
	}
	h := x.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Content-Length", strconv.Itoa(len(body)+1))
	x.WriteHeader(http.StatusOK)
	_, _ = x.Write(append(body, '\n')) // the client may be gone; there is nobody else to tell
	return nil
}
