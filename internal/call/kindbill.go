package call

import (
	"tollgate/internal/ledger"
	"tollgate/internal/ledger/measure"
	"tollgate/internal/wire/kind"
)

// kindCounts are the counts of an answer.
type kindCounts struct {
	used      kind.Quantities
	providers int // counts taken from the provider
	gateways  int // counts of the gateway
}

// add adds the counts of an answer or part.
func (c *kindCounts) add(reported, bound kind.Quantities, count func() kind.Quantities) {
	used, providers, gateways := kind.Believed(reported, bound, count)
	c.used.Add(used)
	c.providers, c.gateways = c.providers+providers, c.gateways+gateways
}

// source returns the source of the counts.
func (c *kindCounts) source() ledger.UsageSource {
	switch {
	case c.providers == 0 && c.gateways > 0:
		return ledger.SourceGateway
	case c.gateways > 0:
		return ledger.SourceBoth
	}
	return ledger.SourceProvider
}

// bill returns the bill for the counts.
func (a *kindAttempt) bill(c kindCounts) Bill {
	measured := a.Model.Measure()
	b := Bill{Cost: a.Model.UnitCost(c.used, a.Factor), Source: c.source(), OwnMeasure: measured.Own}
	b.Tokens, b.Quantity = receiptCounts(measured, c.used)
	if cost, ok := a.on.Line.UnitCost(a.Model, c.used); ok {
		b.LineCost = &cost
	}
	return b
}

// receiptCounts returns the counts for the receipt.
func receiptCounts(measured kind.Measure, used kind.Quantities) (t ledger.Tokens, q measure.Quantity) {
	switch {
	case measured.Quantity != "":
		q = measure.Quantity{Unit: measure.Unit(measured.Quantity), N: used[measured.Units[0]]}
	case measured.CountsTokens():
		for _, unit := range measured.Units {
			if unit.IsOutput() {
				t.Completion += used[unit]
			} else {
				t.Prompt += used[unit]
			}
		}
	}
	return t, q
}
