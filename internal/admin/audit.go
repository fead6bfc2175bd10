package admin

import (
	"errors"
	"net/http"

	"tollgate/internal/fault"
	"tollgate/internal/ledger/audit"
)

// audit checks the balances of all accounts, or of one account, against the receipts and credits. It
// stops when the client disconnects.
func (s *server) audit(c *call) (any, error) {
	values, err := c.query("account")
	if err != nil {
		return nil, err
	}
	ctx := c.Request.Context()
	report, err := s.Audits.Recompute(ctx, values.Get("account"))
	if err == nil {
		return report, nil
	}
	if errors.Is(err, audit.ErrNoAccount) {
		return nil, fault.At(fault.NotFound, "account", "There is no account %q. Its id begins with acct_; GET /admin/v1/accounts lists them.",
			values.Get("account"))
	}
	if ctx.Err() != nil && !s.Attached {
		panic(http.ErrAbortHandler)
	}
	return nil, err
}
