package admin

import (
	"fmt"

	"tollgate/internal/account"
	"tollgate/internal/job"
	"tollgate/internal/ledger"
)

// audit recomputes the books; one at a time, since it reads all of them.
func (s *server) audit(c *call) (any, error) {
	if _, err := c.query(); err != nil {
		return nil, err
	}
	select {
	case s.audits <- struct{}{}:
	case <-c.ctx.Done():
		return nil, fmt.Errorf("wait for the audit that runs: %w", c.ctx.Err())
	}
	defer func() { <-s.audits }()
	jobs := job.AuditTx
	if s.Jobs != nil {
		jobs = s.Jobs.AuditCheck()
	}
	report, err := ledger.Audit(c.ctx, s.DB, account.AuditTx, jobs)
	if err != nil {
		return nil, err
	}
	return report, nil
}
