// Package row owns the two rows of a job: the record, and the run of an unfinished job. It reads and
// writes the rows, decides about failed attempts, and renders the bodies.
//
// Invariants: apart from the correction of times in the future, only SaveTx changes a run's row, under
// a condition. A decision about a failed attempt depends only on the trace.
package row

import (
	"time"

	"tollgate/internal/catalog"
	"tollgate/internal/media"
	"tollgate/internal/money"
	"tollgate/internal/upstream/jobcall"
)

// IDPrefix begins the ids of jobs.
const IDPrefix = "job_"

// States in job_run.
const (
	StateQueued    = 0 // waits for a line
	StateSending   = 1 // the decision to submit was written; the call may be in flight
	StateRendering = 2 // the provider has returned a ticket
	StateRendered  = 3 // the provider has the results
	StateStored    = 4 // the results are in the media store
)

// Statuses of a job (interface.md, States and transitions).
const (
	StatusQueued     = "queued"
	StatusProcessing = "processing"
	StatusSucceeded  = "succeeded"
	StatusFailed     = "failed"
)

// Job is a row of table job.
type Job struct {
	ID, Request, Account, Key     string
	Kind, Model, Endpoint         string
	Revision                      int64
	Plan                          catalog.Plan
	Prompt                        string
	Params                        string
	Materials                     Materials
	Callback                      string
	Held, Cost                    money.Amount
	Status, Code, Line            string
	Trace                         Trace
	Body                          string
	CreatedMS, StartedMS, EndedMS int64
}

// Materials are the input files of a job.
type Materials struct {
	References []media.File `json:"references,omitempty"`
	Roles      []string     `json:"roles,omitempty"` // of the references, in order; may be empty
	Mask       *media.File  `json:"mask,omitempty"`
}

// Run is a row of table job_run: the state of an unfinished job.
type Run struct {
	State                       int64  // a State constant
	Turn                        int64  // orders the queue, before the id
	QueuedMS, WakeMS, StartedMS int64  // the start limit begins at QueuedMS; no attempt begins before WakeMS
	Epoch                       string // of the node that owns the job
	Fence                       int64  // raised for each new owner and by each return to the queue
	Line                        string
	Revision, Number            int64 // the catalog revision and the number of the submission
	Ticket                      string
	SubmittedMS                 int64
	Results                     []jobcall.Result
	Files                       []media.File
	Trace                       Trace
}

// Start marks the job as started. The status is then "processing".
func (p *Run) Start(atMS int64) {
	if p.StartedMS == 0 {
		p.StartedMS = atMS
		p.Trace.Step(stepProcessing, atMS, "")
	}
}

// Overdue reports whether a queued job has waited for limit.
func (p *Run) Overdue(nowMS int64, limit time.Duration) bool {
	return p.QueuedMS > 0 && p.QueuedMS <= nowMS-limit.Milliseconds()
}
