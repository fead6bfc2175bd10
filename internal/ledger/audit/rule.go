package audit

import (
	"fmt"

	"tollgate/internal/ledger/books"
	"tollgate/internal/ledger/measure"
	"tollgate/internal/money"
)

// check returns the first billing rule (interface.md, Billing rules) that r breaks and the figure
// that breaks the rule, or empty strings.
func (r *receipt) check() (what, recorded string) {
	t := r.tokens
	switch {
	case r.outcome < books.Billed || r.outcome > books.Refused:
		return "a receipt has an unknown outcome", fmt.Sprint(int64(r.outcome))
	case r.cost < 0:
		return "a charge is negative", r.cost.String()
	case r.held < 0 || r.held > money.Max:
		return "a receipt's hold is out of range", r.held.String()
	case r.cost > r.held:
		return "a charge is above its hold", fmt.Sprintf("%s of %s", r.cost, r.held)
	case r.outcome != books.Billed && r.cost != 0:
		return "a request that was not billed was charged", r.cost.String()
	case r.over < 0 || r.over > 0 && r.cost != r.held:
		return "usage above a hold is recorded, but the charge is below the hold", r.over.String()
	case t.Prompt < 0 || t.Cached < 0 || t.Completion < 0 || r.quantity.N < 0:
		return "a receipt has a negative count", fmt.Sprint(t, r.quantity)
	case r.outcome != books.Billed && (t != books.Tokens{} || r.quantity != measure.Quantity{}):
		return "a request that was not billed counts tokens or another unit", fmt.Sprint(t, r.quantity)
	case r.quantity.Unit == "" && r.quantity.N != 0:
		return "a receipt has a quantity without a unit", fmt.Sprint(r.quantity.N)
	case r.source < 0 || r.source > int64(books.SourceProgress):
		return "a receipt has counts of an unknown source", fmt.Sprint(r.source)
	case r.outcome != books.Billed && r.source != 0:
		return "a request that was not billed has a count source", fmt.Sprint(r.source)
	case outside(r.balance):
		return "a balance is out of range", r.balance.String()
	case r.outcome != books.Refused && r.seq < 1:
		return "a receipt has no number", fmt.Sprint(r.seq)
	case r.outcome == books.Refused && r.held != 0:
		return "a refused request has a hold", r.held.String()
	}
	return r.checkStatus()
}

// checkStatus compares outcome and status. A billed chat answer has the status 200, and a code if
// it broke off or its client disconnected while it streamed. A job's submission has the status 202;
// a billed one has no code. An unbilled request has no success status.
func (r *receipt) checkStatus() (what, recorded string) {
	switch {
	case r.outcome == books.Billed && (r.status >= 300 || r.job && r.code):
		return "an error was billed", fmt.Sprint(r.status)
	case r.outcome != books.Billed && !r.job && r.status >= 200 && r.status < 300:
		return "an answer was not billed", fmt.Sprintf("%d, outcome %d", r.status, r.outcome)
	}
	return "", ""
}

// checkEntry returns the error in a movement, or "".
func checkEntry(kind string, amount, balance money.Amount) string {
	switch {
	case kind != books.EntryCredit && kind != books.EntryTakeBack && kind != books.EntryTrial:
		return "a movement has an unknown kind"
	case kind == books.EntryCredit && amount < 0, kind == books.EntryTakeBack && amount >= 0, kind == books.EntryTrial && amount <= 0:
		return "a movement's sign does not fit its kind"
	case outside(balance):
		return "a balance is out of range"
	}
	return ""
}

// check returns the error in an open hold and its figure, or empty strings.
func (h *openHold) check() (what, recorded string) {
	switch {
	case h.amount < 0 || h.amount > money.Max:
		return "a hold is out of range", h.amount.String()
	case (h.epoch == books.JobEpoch) != (h.job != ""):
		return "a hold belongs to both a node and a job, or to neither", h.epoch
	case h.cost < 0 || h.cost > money.Max || h.tokens.Prompt < 0 || h.tokens.Cached < 0 || h.tokens.Completion < 0 || h.quantity < 0:
		return "the progress recorded on a hold is out of range", h.cost.String()
	}
	return "", ""
}

// outside reports whether a balance is beyond every balance that charges can cause: a floor is at
// least -money.Max, and a charge is at most money.Max.
func outside(balance money.Amount) bool { return balance > money.Max || balance < -2*money.Max }
