package books

import "tollgate/internal/money"

// UsageSeries is the key of sums of requests, one sum a day.
type UsageSeries struct{ Account, Key, Model, Line, Endpoint string }

// SeriesID names a series: the same on every node, without asking anybody. Two of
// ten million share theirs with a chance of 1 in 300,000; the audit would tell.
func SeriesID(s UsageSeries) int64 {
	const offset, prime = 14695981039346656037, 1099511628211 // FNV-1a
	h := uint64(offset)
	for _, name := range [...]string{s.Account, s.Key, s.Model, s.Line, s.Endpoint} {
		for i := range len(name) {
			h = (h ^ uint64(name[i])) * prime
		}
		h *= prime // a zero byte, absent from names
	}
	return int64(h)
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
	Images
	Clips
	VideoMS
	Cost      // charged
	LineCost  // the providers' known cost
	LineCosts // requests with a known cost
	KnownCost // charged for those requests
	figures
)

// Ended are the figures of one ended request; lineCost below 0 is not known.
func FiguresOf(outcome Outcome, cost, lineCost money.Amount, t Tokens) DayFigures {
	f := DayFigures{
		Requests: 1, PromptTokens: t.Prompt, CachedTokens: t.Cached, CompletionTokens: t.Completion,
		Images: t.Images, Clips: t.Clips, VideoMS: t.VideoMS, Cost: int64(cost),
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

// Add adds other figures. Each ends at money.Max.
func (f *DayFigures) Add(o DayFigures) {
	for i := range f {
		f[i] = money.Plus(f[i], o[i])
	}
}

// UsageSource is the source of the charged counts.
type UsageSource int64

// The sources, as receipts keep them.
const (
	SourceProvider UsageSource = 1 // the provider's
	SourceGateway  UsageSource = 2 // our own: the provider gave none
	SourceBoth     UsageSource = 3 // the prompt as one counts it, the answer as the other
	SourceProgress UsageSource = 4 // the progress of a stream when its node died
)

// maxLineCost bounds the reported cost of a request at its provider, so that no sum can leave its
// range: a provider may report any figure.
const maxLineCost = 1_000_000 * money.USD

// UnknownCost stands for an unknown cost.
const UnknownCost money.Amount = -1

// ProviderCost returns the receipt's cost at the providers.
func (e *End) ProviderCost() money.Amount {
	if e.LineCost == nil {
		return UnknownCost
	}
	return min(max(*e.LineCost, 0), maxLineCost)
}
