package show

import (
	"net/http"
	"slices"
	"time"

	"tollgate/internal/catalog"
	"tollgate/internal/console/ui"
	"tollgate/internal/ledger/requestlog"
	"tollgate/internal/store"
)

// Recent requests count as failing if at least minFailed requests, and at least minFailedPercent percent, have
// errors of the service (5xx). Only the newest maxRecent requests of recentPeriod count. This threshold is
// reached long before the circuit of a line opens.
const (
	recentPeriod     = 10 * time.Minute
	maxRecent        = 200
	minFailed        = 2
	minFailedPercent = 5
)

// Recent summarizes the newest requests of the last minutes.
type Recent struct {
	Requests, Failed int64
	Latency          *ui.Chart // of the successful requests, or nil
}

// RecentTx summarizes the newest requests. It leaves out requests to the sandbox.
func RecentTx(tx *store.Tx, nowMS int64, sandbox catalog.SandboxUse) (r Recent, err error) {
	list, err := requestlog.ListTx(tx, requestlog.Selection{SinceMS: nowMS - recentPeriod.Milliseconds(), Limit: maxRecent})
	receipts := slices.DeleteFunc(list.Receipts, func(r requestlog.Receipt) bool {
		return slices.Contains(sandbox.Lines, r.Line) || r.Line == "" && slices.Contains(sandbox.Models, r.Model)
	})
	r.Latency = Latency(receipts)
	for _, receipt := range receipts {
		n := max(1, receipt.StandsFor)
		if r.Requests += n; receipt.Status >= http.StatusInternalServerError {
			r.Failed += n
		}
	}
	return r, err
}

// Failing reports whether enough requests have failed to alert the operator.
func (r Recent) Failing() bool {
	return r.Failed >= minFailed && r.Failed*100 >= minFailedPercent*r.Requests
}
