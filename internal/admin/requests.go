package admin

import (
	"encoding/json"
	"strconv"

	"tollgate/internal/fault"
	"tollgate/internal/ledger"
	"tollgate/internal/money"
	"tollgate/internal/store"
)

// requestAnswer is one entry of the request log as operator.md shows it.
// stands_for is there where a flood of refusals was sampled: how many such
// requests the entry counts for.
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
}

func showRequest(r ledger.Receipt) requestAnswer {
	out := requestAnswer{ID: r.ID, Account: r.Account, Key: r.Key, Model: r.Model, Endpoint: r.Endpoint,
		Status: r.Status, Code: r.Code, Line: r.Line, Attempts: r.Attempts,
		Prompt: r.Tokens.Prompt, Cached: r.Tokens.Cached, Completion: r.Tokens.Completion,
		Cost: r.Cost, Held: r.Held, Over: r.Over, FirstByte: r.FirstByteMS, Duration: r.DurationMS, Created: seconds(r.CreatedMS)}
	if !json.Valid(out.Attempts) || string(out.Attempts) == "null" {
		out.Attempts = json.RawMessage("[]")
	}
	out.LineCost = lineCost(out.Attempts)
	if r.StandsFor > 1 {
		out.StandsFor = r.StandsFor
	}
	return out
}

// lineCost adds up what the providers of attempts take; nil: nobody knows.
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
	values, after, limit, err := c.page("account", "model", "status", "line")
	if err != nil {
		return nil, err
	}
	f := ledger.RequestFilter{Account: values.Get("account"), Model: values.Get("model"), Line: values.Get("line"), After: after, Limit: limit}
	if values.Has("status") {
		if f.Status, err = strconv.Atoi(values.Get("status")); err != nil || f.Status < 100 || f.Status > 599 {
			return nil, fault.At(fault.InvalidRequest, "status", "status must be an HTTP status, for example 429.")
		}
	}
	return view(s, c, func(tx *store.Tx) (any, error) {
		found, more, err := ledger.RequestsTx(tx, f)
		return newList(found, more, showRequest), err
	})
}
