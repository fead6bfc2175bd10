package ledger

import (
	"tollgate/internal/ledger/requestlog"
	"tollgate/internal/store"
)

// Receipt is one request of the request log; its lists are package requestlog's.
type Receipt = requestlog.Receipt

// ErrNoRequest reports a request missing from the request log.
var ErrNoRequest = requestlog.ErrNone

// RequestTx returns one request of the log, or ErrNoRequest.
func RequestTx(tx *store.Tx, request string) (Receipt, error) { return requestlog.GetTx(tx, request) }

// OwnRequestTx returns one request of an account's log, or ErrNoRequest.
func OwnRequestTx(tx *store.Tx, account, request string) (Receipt, error) {
	return requestlog.OwnTx(tx, account, request)
}
