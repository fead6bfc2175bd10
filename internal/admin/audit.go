package admin

import "net/http"

// audit recomputes the books. It stops when its caller disconnects.
func (s *server) audit(c *call) (any, error) {
	ctx := c.Request.Context()
	report, err := s.Audits.Recompute(ctx)
	if err == nil {
		return report, nil
	}
	if ctx.Err() != nil && !s.Attached {
		panic(http.ErrAbortHandler)
	}
	return nil, err
}
