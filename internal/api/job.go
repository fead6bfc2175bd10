package api

import (
	"net/http"

	"tollgate/internal/catalog"
	"tollgate/internal/fault"
)

// imageJob answers GET /v1/images/jobs/{id}.
func (s *server) imageJob(x *apiRequest) error { return s.poll(x, catalog.KindImage) }

// videoJob answers GET /v1/videos/jobs/{id}.
func (s *server) videoJob(x *apiRequest) error { return s.poll(x, catalog.KindVideo) }

// poll answers with a job's body, the same as in the job's webhook event.
func (s *server) poll(x *apiRequest, kind catalog.Kind) error {
	if !isID(x.PathID()) {
		return fault.New(fault.JobNotFound, "There is no %s job %q. Check the id and the path.", kind, fault.Excerpt(x.PathID()))
	}
	ctx, cancel := x.DetachedContext(readTimeout)
	defer cancel()
	body, err := s.Jobs.Body(ctx, x.caller.Account, string(kind), x.PathID())
	if err != nil {
		return err
	}
	write(x, http.StatusOK, "application/json", body)
	return nil
}

// longestID bounds the length of ids before a database lookup.
const longestID = 64

// isID reports whether text has the format of the gateway's ids.
func isID(text string) bool {
	if text == "" || len(text) > longestID {
		return false
	}
	for i := range len(text) {
		c := text[i]
		if c != '_' && c != '-' && (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') {
			return false
		}
	}
	return true
}
