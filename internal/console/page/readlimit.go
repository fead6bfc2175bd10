package page

import (
	"context"
	"time"

	"tollgate/internal/fault"
	"tollgate/internal/limit"
)

// Limits on console pages that read the database at the same time. SQLite has twice as many readers
// as maxPageReads, so a reader is always left for paid requests. No account may use all page reads,
// so exports do not delay the pages of other accounts.
const (
	maxPageReads        = 2
	maxAccountPageReads = 1
)

// ReadLimit limits the console pages that read the database at the same time. All consoles of a
// node share one ReadLimit. It is safe for concurrent use.
type ReadLimit struct {
	total     *limit.Semaphores[struct{}]
	byAccount *limit.Semaphores[string] // operators share the account ""
}

// NewReadLimit returns a ReadLimit.
func NewReadLimit() *ReadLimit {
	return &ReadLimit{total: limit.NewSemaphores[struct{}](maxPageReads), byAccount: limit.NewSemaphores[string](maxAccountPageReads)}
}

// begin waits until a page may read the database. It returns a 503 fault if ctx ends first. The
// page must call done afterwards. Only the total limit applies to visitors without a session.
func (l *ReadLimit) begin(ctx context.Context, hasSession bool, account string) (done func(), err error) {
	accountDone := func() {}
	if hasSession {
		if accountDone, err = l.byAccount.Acquire(ctx, account); err != nil {
			return nil, tooManyPages()
		}
	}
	totalDone, err := l.total.Acquire(ctx, struct{}{})
	if err != nil {
		accountDone()
		return nil, tooManyPages()
	}
	return func() { totalDone(); accountDone() }, nil
}

func tooManyPages() error {
	f := fault.New(fault.ServiceUnavailable, "Too many pages are being loaded at the moment. Try again in a few seconds.")
	f.RetryAfter = 5 * time.Second
	return f
}
