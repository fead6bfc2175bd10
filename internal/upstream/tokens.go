package upstream

import (
	"context"
	"sync"

	"tollgate/internal/wire"
	"tollgate/internal/wire/usage"
)

// TokenCounts holds the provider's token counts of an attempt, as on its invoice. A count is 0 if
// the provider did not report it.
type TokenCounts struct {
	Prompt     int64 `json:"prompt_tokens,omitempty"`
	Cached     int64 `json:"cached_tokens,omitempty"`
	Completion int64 `json:"completion_tokens,omitempty"`
	// CostNano is the provider's reported cost in nano-dollars. Zero means that no cost was
	// reported.
	CostNano int64 `json:"-"`
}

// TokensOf returns the token counts of u.
func TokensOf(u wire.Usage) TokenCounts {
	return TokenCounts{Prompt: u.Prompt, Cached: u.Cached, Completion: u.Completion, CostNano: u.CostNano}
}

// Spending adds up the provider's counts for one step of a task, because a Generator may
// make several calls for a step. It is safe for concurrent use. The zero value is ready to
// use.
type Spending struct {
	mu    sync.Mutex
	total TokenCounts
}

// Total returns the sum so far.
func (s *Spending) Total() TokenCounts {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.total
}

// spendingKey is the context key of a Spending.
type spendingKey struct{}

// In returns a context in which Spend adds to s.
func (s *Spending) In(ctx context.Context) context.Context {
	return context.WithValue(ctx, spendingKey{}, s)
}

// Spend adds the counts of an answer to the context's Spending, if any.
func Spend(ctx context.Context, answer []byte) {
	s, ok := ctx.Value(spendingKey{}).(*Spending)
	if !ok {
		return
	}
	u := usage.Read("", answer)
	s.mu.Lock()
	defer s.mu.Unlock()
	for field, count := range map[*int64]int64{&s.total.Prompt: u.Prompt, &s.total.Cached: u.Cached, &s.total.Completion: u.Completion,
		&s.total.CostNano: u.CostNano} {
		*field = min(*field, maxSpending) + min(count, maxSpending)
	}
}

// maxSpending bounds each reported count, so that sums do not overflow.
const maxSpending = 1 << 60
