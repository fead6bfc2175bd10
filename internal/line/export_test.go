package line

import (
	"context"

	"tollgate/internal/upstream/chatcall"
)

// Try makes the attempts of a request with attempt until one succeeds.
func (l *Lines) Try(ctx context.Context, r RoutingRequest, attempt func(ctx context.Context, a *Attempt) error) ([]AttemptRecord, error) {
	attempts := l.Attempts(ctx, r)
	defer attempts.Close()
	for a := attempts.Next(); a != nil; a = attempts.Next() {
		attempts.Report(attempt(ctx, a))
	}
	return attempts.Records(), attempts.Err()
}

// Count asks the token counters of a request until one counts an empty prompt.
func (l *Lines) Count(ctx context.Context, r RoutingRequest) (n int64, known bool, err error) {
	for counter := range l.CountingLines(r) {
		if n, known, err = counter.Count(ctx, chatcall.Call{}); known || err != nil {
			break
		}
	}
	return n, known, err
}
