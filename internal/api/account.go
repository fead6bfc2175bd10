package api

import (
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"tollgate/internal/fault"
	"tollgate/internal/ledger"
	"tollgate/internal/ledger/measure"
	"tollgate/internal/ledger/spending"
	"tollgate/internal/money"
)

// readTimeout bounds database reads before an answer.
const readTimeout = 10 * time.Second

// totals holds the common members of total, today and each model (interface.md, Usage).
type totals struct {
	Cost     money.Amount `json:"cost_usd"`
	Requests int64        `json:"requests"`
	Billed   int64        `json:"billed_requests"`
	Failed   int64        `json:"failed_requests"`
}

// totalsOf returns the common members of t.
func totalsOf(t ledger.Totals) totals {
	return totals{t.Cost, t.Requests, t.Billed, t.Failed}
}

// usage answers GET /v1/usage with the balance and totals of the key's account, and with a report
// if a parameter requests one.
func (s *server) usage(x *apiRequest) error {
	values := x.Request.URL.Query()
	asCSV := values.Get("format") == "csv" || values.Get("format") == "" && strings.Contains(x.Request.Header.Get("Accept"), "text/csv")
	filtered := asCSV
	for _, name := range append(spending.Params(), "key", "model", "endpoint") {
		filtered = filtered || values.Get(name) != ""
	}
	var get func(string) string
	if filtered {
		get = values.Get
	}
	u, report, err := s.readUsage(x, get)
	if err != nil {
		return err
	}
	if asCSV {
		body, err := report.CSV()
		if err != nil {
			return err
		}
		write(x, http.StatusOK, "text/csv; charset=utf-8", body)
		return nil
	}
	type balance struct {
		USD     money.Amount `json:"usd"`
		Credits json.Number  `json:"credits"`
	}
	models := make([]modelUsage, len(u.ByModel))
	for i, m := range u.ByModel {
		models[i] = modelUsage{Model: m.Model, totals: totalsOf(m.Totals), Prompt: m.Prompt, Completion: m.Completion, quantities: m.Quantities}
	}
	return writeJSON(x, struct {
		Object  string              `json:"object"`
		Balance balance             `json:"balance"`
		Total   totals              `json:"total"`
		Today   totals              `json:"today"`
		ByModel []modelUsage        `json:"by_model"`
		Report  *spending.Breakdown `json:"report,omitempty"`
	}{"usage", balance{u.Balance, u.Balance.Credits()}, totalsOf(u.Total), totalsOf(u.Today), models, report})
}

// modelUsage is the usage of one model.
type modelUsage struct {
	Model string `json:"model"`
	totals
	Prompt     int64 `json:"prompt_tokens"`
	Completion int64 `json:"completion_tokens"`
	quantities measure.Totals
}

// MarshalJSON adds the images and the model's other units, except the seconds of video, which only
// reports have.
func (m modelUsage) MarshalJSON() ([]byte, error) {
	type members modelUsage
	object, err := json.Marshal(members(m))
	if err != nil {
		return nil, err
	}
	var values []measure.NamedValue
	for _, unit := range m.quantities.Units() {
		if unit != measure.VideoMS {
			values = append(values, m.quantities.Values(unit)...)
		}
	}
	return measure.AppendJSON(object, values), nil
}

// creditGrants answers GET /v1/dashboard/billing/credit_grants with the amounts granted, used and
// available in US dollars. Granted is the sum of credits minus take-backs.
func (s *server) creditGrants(x *apiRequest) error {
	u, _, err := s.readUsage(x, nil)
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

// readUsage reads the usage of the caller's account, and a report if get is not nil. get returns the
// parameters of the report.
func (s *server) readUsage(x *apiRequest, get func(string) string) (u ledger.Usage, report *spending.Breakdown, err error) {
	ctx, cancel := x.DetachedContext(readTimeout)
	defer cancel()
	u, report, err = s.Ledger.ReadUsage(ctx, x.caller.Account, get)
	if _, clientError := errors.AsType[*fault.Error](err); err != nil && !clientError {
		err = fault.TryAgain(err)
	}
	return u, report, err
}

// writeJSON answers 200 with a JSON body.
func writeJSON(x *apiRequest, v any) error {
	body, err := json.Marshal(v)
	if err != nil {
		return err
	}
	write(x, http.StatusOK, "application/json", append(body, '\n'))
	return nil
}

// write sends a response.
func write(x *apiRequest, status int, contentType string, body []byte) {
	h := x.Header()
	h.Set("Content-Type", contentType)
	h.Set("Content-Length", strconv.Itoa(len(body)))
	x.WriteHeader(status)
	_, _ = x.Write(body) // the client may have disconnected
}
