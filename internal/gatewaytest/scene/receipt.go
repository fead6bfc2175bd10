package scene

import (
	"testing"

	"tollgate/internal/money"
)

// Receipt is an entry of the request log.
type Receipt struct {
	ID         string        `json:"id"`
	Status     int           `json:"status"`
	Code       string        `json:"code"`
	Line       string        `json:"line"`
	Attempts   []Attempt     `json:"attempts"`
	Prompt     int64         `json:"prompt_tokens"`
	Cached     int64         `json:"cached_tokens"`
	Completion int64         `json:"completion_tokens"`
	Cost       money.Amount  `json:"cost_usd"`
	Held       money.Amount  `json:"held_usd"`
	Over       money.Amount  `json:"over_hold_usd"`
	LineCost   *money.Amount `json:"line_cost_usd"`
}

// Attempt is one attempt of a receipt.
type Attempt struct {
	Line        string `json:"line"`
	Status      int    `json:"status"`
	Code        string `json:"code"`
	Cause       string `json:"cause"`
	FirstByteMS *int64 `json:"first_byte_ms"`
	Prompt      int64  `json:"prompt_tokens"` // tokens of a failed attempt
	Cached      int64  `json:"cached_tokens"`
	Completion  int64  `json:"completion_tokens"`
}

// Receipt returns the entry of a request. It waits for the entry, because the log may get the entry
// of an error shortly after the answer.
func (g *Gateway) Receipt(t testing.TB, account, id string) Receipt {
	t.Helper()
	var receipt Receipt
	Eventually(t, "request "+id+" is in the log", func() bool {
		for _, r := range g.Receipts(account) {
			if r.ID == id {
				receipt = r
				return true
			}
		}
		return false
	})
	return receipt
}

// RequestLog returns all entries of an account by id, and the sum of their costs.
func (p *Process) RequestLog(t testing.TB, account string) (receipts map[string]Receipt, total money.Amount) {
	t.Helper()
	receipts = map[string]Receipt{}
	for _, r := range list(p, "/requests?limit=200&account="+account, func(r Receipt) string { return r.ID }) {
		if _, twice := receipts[r.ID]; twice {
			t.Errorf("%s has two receipts", r.ID)
		}
		receipts[r.ID] = r
		total += r.Cost
	}
	return receipts, total
}

// Receipts returns an account's newest entries of the request log.
func (g *Gateway) Receipts(account string) []Receipt {
	var page struct {
		Data []Receipt `json:"data"`
	}
	g.Process.Admin("GET", "/requests?limit=200&account="+account, nil, &page)
	return page.Data
}
