package books

import "tollgate/internal/money"

// EndedRequest is what became of a request, for metrics.
type EndedRequest struct {
	// Model and Code are as the request log has them: of a refusal the model is the
	// caller's word, and of a rejection that was passed on the code is the provider's.
	Model, Code string
	Tokens      Tokens // those that were charged
	Charged     money.Amount
}

// EachEnd tells of the requests that the books have ended. Refusals are none of them:
// not each has a row.
func (b *Books) EachEnd(tell func(EndedRequest)) {
	for i := range b.Receipts {
		if r := &b.Receipts[i]; r.End.Outcome != Refused {
			tell(EndedRequest{Model: r.Hold.Model, Code: r.End.Code, Tokens: r.End.Tokens, Charged: r.Cost})
		}
	}
}
