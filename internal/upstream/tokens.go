package upstream

import (
	"context"
	"sync"

	"tollgate/internal/wire"
	"tollgate/internal/wire/usage"
)

// TokenCounts are the counts of a usage as the trace of an attempt keeps them: what
// the provider will have on its invoice. They are 0 where it did not say.
type TokenCounts struct {
	Prompt     int64 `json:"prompt_tokens,omitempty"`
	Cached     int64 `json:"cached_tokens,omitempty"`
	Completion int64 `json:"completion_tokens,omitempty"`
	// CostNano is what the provider said that it takes, in nano-dollars; 0: it did
	// not.
	CostNano int64 `json:"-"`
}

// TokensOf are the counts of a usage.
func TokensOf(u wire.Usage) TokenCounts {
	return TokenCounts{Prompt: u.Prompt, Cached: u.Cached, Completion: u.Completion, CostNano: u.CostNano}
}

// Spending adds up what a provider counts in its answers to one step of a task:
// its Generator may make several calls for that. Ways to providers tell it with
// Spend. It is safe for concurrent use; the zero value is ready.
type Spending struct {
	mu    sync.Mutex
	total TokenCounts
}

// Total is what was counted so far.
func (s *Spending) Total() TokenCounts {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.total
}

// spendingKey is the key of a context's Spending.
type spendingKey struct{}

// In returns a context for the calls that s adds up.
func (s *Spending) In(ctx context.Context) context.Context {
	return context.WithValue(ctx, spendingKey{}, s)
}

// Spend tells the Spending of a context, if it has one, what an answer counts.
func Spend(ctx context.Context, answer []byte) {
	s, ok := ctx.Value(spendingKey{}).(*Spending)
	if !ok {
		return
	}
	u := usage.Reported("", answer)
	s.mu.Lock()
	defer s.mu.Unlock()
	for of, more := range map[*int64]int64{&s.total.Prompt: u.Prompt, &s.total.Cached: u.Cached, &s.total.Completion: u.Completion,
		&s.total.CostNano: u.CostNano} {
		*of = min(*of, maxSpending) + min(more, maxSpending)
	}
}

// maxSpending bounds what a provider reports, so that no sum leaves its range.
const maxSpending = 1 << 60
