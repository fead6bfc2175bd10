package show

import (
	"net/http"
	"slices"
	"time"

	"tollgate/internal/console/part"
	"tollgate/internal/ledger/requestlog"
	"tollgate/internal/store"
)

// Recent requests count as failing from fewFail errors of the service (5xx) and from percentFails
// percent of the newest looksAt requests of the last minutes. This is reached long before a line's
// circuit opens.
const (
	lately       = 10 * time.Minute
	looksAt      = 200
	fewFail      = 2
	percentFails = 5
)

// Recent summarizes the newest requests of the last minutes.
type Recent struct {
	Requests, Failed int64
	Latency          *part.Chart // of the successful requests, or nil
}

// RecentTx reads them. Requests to the lines without are left out.
func RecentTx(tx *store.Tx, nowMS int64, without []string) (r Recent, err error) {
	found, err := requestlog.ListTx(tx, requestlog.Selection{SinceMS: nowMS - lately.Milliseconds(), Limit: looksAt})
	receipts := slices.DeleteFunc(found.Receipts, func(one requestlog.Receipt) bool { return slices.Contains(without, one.Line) })
	r.Latency = Latency(receipts)
	for _, one := range receipts {
		n := max(1, one.StandsFor)
		if r.Requests += n; one.Status >= http.StatusInternalServerError {
			r.Failed += n
		}
	}
	return r, err
}

// Fail reports whether enough requests have failed to alert the operator.
func (r Recent) Fail() bool { return r.Failed >= fewFail && r.Failed*100 >= percentFails*r.Requests }
