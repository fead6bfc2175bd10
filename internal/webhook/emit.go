package webhook

import "tollgate/internal/store"

// Webhooks delivers events. It is safe for concurrent use.
type Webhooks struct{}

// JobEnd is the end of a job as it is told.
type JobEnd struct {
	Account, Job string
	Type         string // image.completed and so on
	Body         []byte // the job as its endpoint shows it
	Callback     string // where alone it goes; empty: to the account's address
}

// EmitJob adds the statements that tell a job's end to the transaction of that
// end.
func (w *Webhooks) EmitJob(q *store.Batch, nowMS int64, e JobEnd) {}

// Wake lets due deliveries be looked for now.
func (w *Webhooks) Wake() {}
