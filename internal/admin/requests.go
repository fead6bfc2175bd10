package admin

import (
	"encoding/json"
	"errors"
	"strconv"

	"tollgate/internal/catalog"
	"tollgate/internal/catalog/offer"
	"tollgate/internal/fault"
	"tollgate/internal/ledger"
	"tollgate/internal/ledger/measure"
	"tollgate/internal/ledger/movement"
	"tollgate/internal/ledger/requestlog"
	"tollgate/internal/money"
	"tollgate/internal/store"
)

// requestAnswer is an entry of the request log (operator.md, Operator API). stands_for is the
// number of requests that a sampled entry represents.
type requestAnswer struct {
	ID         string          `json:"id"`
	Account    string          `json:"account"`
	Key        string          `json:"key"`
	Model      string          `json:"model"`
	Endpoint   string          `json:"endpoint"`
	Status     int             `json:"status"`
	Code       string          `json:"code,omitempty"`
	Line       string          `json:"line,omitempty"`
	Attempts   json.RawMessage `json:"attempts"`
	Prompt     int64           `json:"prompt_tokens"`
	Cached     int64           `json:"cached_tokens"`
	Completion int64           `json:"completion_tokens"`
	Cost       money.Amount    `json:"cost_usd"`
	Held       money.Amount    `json:"held_usd"`
	Over       money.Amount    `json:"over_hold_usd"`
	LineCost   *money.Amount   `json:"line_cost_usd,omitempty"`
	FirstByte  int64           `json:"first_byte_ms"`
	Duration   int64           `json:"duration_ms"`
	Created    int64           `json:"created"`
	StandsFor  int64           `json:"stands_for,omitempty"`
	Ended      int64           `json:"ended"`
	Outcome    string          `json:"outcome"`
	Job        string          `json:"job_id,omitempty"`
	Source     string          `json:"usage_source,omitempty"`
	Revision   int64           `json:"catalog_revision,omitempty"`
	Price      json.RawMessage `json:"price,omitempty"`
	PriceUnit  string          `json:"price_unit,omitempty"`
	Factor     money.Factor    `json:"price_factor,omitempty"` // missing for a factor of 1
	quantity   measure.Quantity
}

// MarshalJSON adds the fields of the quantity.
func (r requestAnswer) MarshalJSON() ([]byte, error) {
	type members requestAnswer
	object, err := json.Marshal(members(r))
	if err != nil {
		return nil, err
	}
	return measure.AppendJSON(object, r.quantity.Values()), nil
}

// outcomes and sources have the API's names for values of the request log.
var (
	outcomes = map[ledger.Outcome]string{
		ledger.Billed: "billed", ledger.Failed: "failed", ledger.Closed: "client_closed", ledger.Refused: "refused",
	}
	sources = map[ledger.UsageSource]string{
		ledger.SourceProvider: "provider", ledger.SourceGateway: "gateway", ledger.SourceBoth: "both", ledger.SourceProgress: "noted",
	}
)

// requestList is a page of the request log. A page may be shorter than its limit, because one answer
// searches a bounded number of rows.
type requestList struct {
	list[requestAnswer]
	Next string `json:"next,omitempty"` // cursor of the next page; empty on the last page
}

// chargeAnswer is the answer for a charged request that the request log no longer has.
type chargeAnswer struct {
	ID      string       `json:"id"`
	Account string       `json:"account"`
	Model   string       `json:"model"`
	Job     string       `json:"job_id,omitempty"`
	Cost    money.Amount `json:"cost_usd"`
	Balance money.Amount `json:"balance_usd"`
	Ended   int64        `json:"ended"`
	Deleted bool         `json:"log_deleted"`
}

// getRequest answers GET /requests/{id}.
func (s *server) getRequest(c *call) (any, error) {
	return view(s, c, func(tx *store.Tx) (any, error) {
		r, err := requestlog.GetTx(tx, c.id)
		if err == nil {
			return s.withPrice(tx, r)
		}
		if !errors.Is(err, requestlog.ErrNone) {
			return nil, err
		}
		charge, err := movement.ChargeTx(tx, c.id)
		if errors.Is(err, movement.ErrNoCharge) {
			return nil, fault.New(fault.NotFound,
				"There is no request %q. The log keeps requests for request_retention.", fault.Excerpt(c.id))
		}
		return chargeAnswer{ID: charge.Request, Account: charge.Account, Model: charge.Model, Job: charge.Job, Cost: charge.Amount,
			Balance: charge.Balance, Ended: seconds(charge.EndedMS), Deleted: true}, err
	})
}

// withPrice returns a request with the model's price at the time of the admission. A request without
// an admission has no price.
func (s *server) withPrice(tx *store.Tx, r requestlog.Receipt) (requestAnswer, error) {
	out := showRequest(r)
	if r.Revision == 0 {
		return out, nil
	}
	m, err := s.archive.ModelTx(tx, r.Revision, r.Model)
	if m != nil {
		out.Price, out.PriceUnit = offer.Price(m), offer.PriceUnit(m)
	}
	if errors.Is(err, catalog.ErrNoRevision) {
		err = nil
	}
	return out, err
}

func showRequest(r requestlog.Receipt) requestAnswer {
	out := requestAnswer{ID: r.ID, Account: r.Account, Key: r.Key, Model: r.Model, Endpoint: r.Endpoint,
		Status: r.Status, Code: r.Code, Line: r.Line, Attempts: r.Attempts,
		Prompt: r.Tokens.Prompt, Cached: r.Tokens.Cached, Completion: r.Tokens.Completion,
		Cost: r.Cost, Held: r.Held, Over: r.Over, FirstByte: r.FirstByteMS, Duration: r.DurationMS, Created: seconds(r.CreatedMS),
		Ended: seconds(r.EndedMS), Outcome: outcomes[r.Outcome], Job: r.Job, Source: sources[r.Source],
		Revision: r.Revision, Factor: r.Factor, quantity: r.Quantity}
	if !json.Valid(out.Attempts) || string(out.Attempts) == "null" {
		out.Attempts = json.RawMessage("[]")
	}
	out.LineCost = lineCost(out.Attempts)
	if r.StandsFor > 1 {
		out.StandsFor = r.StandsFor
	}
	return out
}

// lineCost returns the sum of the known provider costs of attempts, or nil if no cost is known.
func lineCost(attempts json.RawMessage) *money.Amount {
	var costs []struct {
		Cost *money.Amount `json:"line_cost_usd"`
	}
	if json.Unmarshal(attempts, &costs) != nil {
		return nil
	}
	var sum *money.Amount
	for _, c := range costs {
		sum = money.PlusKnown(sum, c.Cost)
	}
	return sum
}

func (s *server) listRequests(c *call) (any, error) {
	values, after, limit, err := c.page("account", "key", "model", "line", "status", "code", "since", "until", "min_duration_ms")
	if err != nil {
		return nil, err
	}
	f := requestlog.Selection{Account: values.Get("account"), Key: values.Get("key"), Model: values.Get("model"), Line: values.Get("line"),
		Code: values.Get("code"), After: after, Limit: limit}
	if values.Has("status") {
		if f.Status, err = strconv.Atoi(values.Get("status")); err != nil || f.Status < 100 || f.Status > 599 {
			return nil, fault.At(fault.InvalidRequest, "status", "status must be an HTTP status, for example 429.")
		}
	}
	if f.SinceMS, f.UntilMS, err = requestlog.Span(values.Get("since"), values.Get("until")); err != nil {
		return nil, err
	}
	if values.Has("min_duration_ms") {
		if f.MinDurationMS, err = strconv.ParseInt(values.Get("min_duration_ms"), 10, 64); err != nil || f.MinDurationMS < 0 {
			return nil, fault.At(fault.InvalidRequest, "min_duration_ms", "min_duration_ms must be a whole number of milliseconds.")
		}
	}
	return view(s, c, func(tx *store.Tx) (any, error) {
		results, err := requestlog.ListTx(tx, f)
		if err != nil {
			return nil, err
		}
		rows := make([]requestAnswer, len(results.Receipts))
		for i := range results.Receipts {
			if rows[i], err = s.withPrice(tx, results.Receipts[i]); err != nil {
				return nil, err
			}
		}
		return requestList{newList(rows, results.More, func(r requestAnswer) requestAnswer { return r }), results.Next}, nil
	})
}
