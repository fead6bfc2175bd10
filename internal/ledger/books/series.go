package books

import (
	"tollgate/internal/ledger/measure"
	"tollgate/internal/money"
)

// UsageSeries identifies a series of sums. A series has one row of sums for each day and unit.
type UsageSeries struct{ Account, Key, Model, Line, Endpoint string }

// SeriesID returns the id of a series, the same on every node. Among ten million series, two have
// the same id with a probability of 1 in 300,000; the audit would report them.
func SeriesID(s UsageSeries) int64 {
	const offset, prime = 14695981039346656037, 1099511628211 // FNV-1a
	h := uint64(offset)
	for _, name := range [...]string{s.Account, s.Key, s.Model, s.Line, s.Endpoint} {
		for i := range len(name) {
			h = (h ^ uint64(name[i])) * prime
		}
		h *= prime // for a zero byte between the names
	}
	return int64(h)
}

// Day identifies the sums of a series. Requests without a charge have no unit.
type Day struct {
	Day  int64
	Unit measure.Unit
}

// DayFigures are the sums of requests, in the order of ledger_day's columns.
type DayFigures [figures]int64

// The figures.
const (
	Requests = iota
	BilledRequests
	FailedRequests
	PromptTokens
	CachedTokens
	CompletionTokens
	Quantity  // in the unit of the day
	Cost      // the charges
	LineCost  // the providers' known cost
	LineCosts // requests with a known cost
	KnownCost // the charges of those requests
	figures
)

// FiguresOf returns the figures of one ended request. A negative lineCost means that the cost is
// unknown.
func FiguresOf(outcome Outcome, cost, lineCost money.Amount, t Tokens, quantity int64) DayFigures {
	f := DayFigures{
		Requests: 1, PromptTokens: t.Prompt, CachedTokens: t.Cached, CompletionTokens: t.Completion,
		Quantity: quantity, Cost: int64(cost),
	}
	switch outcome {
	case Billed:
		f[BilledRequests] = 1
	case Failed:
		f[FailedRequests] = 1
	}
	if lineCost >= 0 {
		f[LineCost], f[LineCosts], f[KnownCost] = int64(lineCost), 1, int64(cost)
	}
	return f
}

// Add adds other figures. A figure stops at money.Max.
func (f *DayFigures) Add(o DayFigures) {
	for i := range f {
		f[i] = money.Plus(f[i], o[i])
	}
}

// UsageSource says who counted the charged tokens.
type UsageSource int64

// The stored sources.
const (
	SourceProvider UsageSource = 1 // the provider
	SourceGateway  UsageSource = 2 // the gateway, because the provider sent no counts
	SourceBoth     UsageSource = 3 // one counted the prompt, the other the answer
	SourceProgress UsageSource = 4 // the progress of a stream whose node died
)

// maxLineCost bounds a request's cost at its provider, so that no sum leaves its range. A provider
// may report any figure.
const maxLineCost = 1_000_000 * money.USD

// UnknownCost is the stored cost of a request whose providers report none.
const UnknownCost money.Amount = -1

// ProviderCost returns the request's cost at the providers, or UnknownCost.
func (e *End) ProviderCost() money.Amount {
	if e.LineCost == nil {
		return UnknownCost
	}
	return min(max(*e.LineCost, 0), maxLineCost)
}
