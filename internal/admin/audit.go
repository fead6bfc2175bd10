package admin

import (
	"context"
	"fmt"
	"net/http"

	"tollgate/internal/account"
	"tollgate/internal/job"
	"tollgate/internal/ledger/audit"
)

// audit recomputes the books. It ends with its caller, who gets no answer then.
func (s *server) audit(c *call) (any, error) {
	if _, err := c.query(); err != nil {
		return nil, err
	}
	ctx := c.Request.Context()
	report, err := s.recompute(ctx)
	if err == nil {
		return report, nil
	}
	if ctx.Err() != nil && !s.Attached {
		panic(http.ErrAbortHandler)
	}
	return nil, err
}

// recompute runs one audit at a time, since it reads all of the books.
func (s *server) recompute(ctx context.Context) (audit.Findings, error) {
	select {
	case s.audits <- struct{}{}:
	case <-ctx.Done():
		return audit.Findings{}, fmt.Errorf("wait for the audit that runs: %w", ctx.Err())
	}
	defer func() { <-s.audits }()
	jobs := job.AuditTx
	if s.Jobs != nil {
		jobs = s.Jobs.AuditCheck()
	}
	return audit.Run(ctx, s.DB, account.AuditTx, jobs)
}
