package books

import "tollgate/internal/money"

// EndedRequest is the outcome of a request, for metrics.
type EndedRequest struct {
	Refused bool // before or at admission
	// Model and Code are the values of the request log: the model of a refusal is the client's
	// text, and the code of a rejection is the provider's.
	Model, Code string
	Tokens      Tokens // charged
	Charged     money.Amount
}

// OpenHolds is the number and the sum of open holds, for metrics.
type OpenHolds struct {
	Holds  int64
	Amount money.Amount
}

// EachEnd calls observe for each ended request. It skips refusals, because some refusals have no row.
func (b *Books) EachEnd(observe func(EndedRequest)) {
	for i := range b.Receipts {
		if r := &b.Receipts[i]; r.End.Outcome != Refused {
			observe(EndedRequest{Model: r.Hold.Model, Code: r.End.Code, Tokens: r.End.Tokens, Charged: r.Cost})
		}
	}
}
