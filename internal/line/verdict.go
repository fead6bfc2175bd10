package line

import (
	"tollgate/internal/fault"
	"tollgate/internal/upstream"
)

// verdict decides what a client is told after a walk without an answer: what
// ended the walk (a passed-on rejection, content_filter, a client that left),
// else a prompt that a provider's check stopped, else the last failure. The
// failures of all lines being rate limits, the last one is upstream_busy too.
func verdict(failures []*upstream.Failure) *fault.Error {
	if len(failures) == 0 {
		return (&upstream.Failure{Code: fault.UpstreamUnavailable}).Fault()
	}
	last := failures[len(failures)-1]
	if last.Final() {
		return last.Fault()
	}
	for _, f := range failures {
		if f.Code == fault.UpstreamPromptFilter {
			return f.Fault()
		}
	}
	return last.Fault()
}
