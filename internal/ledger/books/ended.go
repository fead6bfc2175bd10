package books

import "tollgate/internal/money"

// EndedRequest is the outcome of a request, for metrics.
type EndedRequest struct {
	// Model and Code are the values in the request log: a refusal's model is the caller's word, and
	// a passed-on rejection's code is the provider's.
	Model, Code string
	Tokens      Tokens // the charged tokens
	Charged     money.Amount
}

// EachEnd calls tell for the requests ended by the books. Refusals are excluded, because not each
// has a row.
func (b *Books) EachEnd(tell func(EndedRequest)) {
	for i := range b.Receipts {
		if r := &b.Receipts[i]; r.End.Outcome != Refused {
			tell(EndedRequest{Model: r.Hold.Model, Code: r.End.Code, Tokens: r.End.Tokens, Charged: r.Cost})
		}
	}
}
