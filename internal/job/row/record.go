// Package row owns the two rows of a job: the record, which stays, and the run,
// which is there until the job has ended. It owns what they hold, how they are read
// and written, the trace of attempts with what follows from it, and the bodies that
// users see.
//
// Invariants: a run's row is written where its guard holds, by one function. What
// becomes of a failed attempt is decided from the trace alone.
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

// Where a job stands, as job_run keeps it.
const (
	StateQueued    = 0 // waits for a line
	StateSending   = 1 // the decision to submit was written; the call may be under way
	StateRendering = 2 // the provider has given a ticket
	StateRendered  = 3 // the results are at the provider
	StateStored    = 4 // the results are in the media store
)

// The statuses of a job (interface.md, States and transitions).
const (
	StatusQueued     = "queued"
	StatusProcessing = "processing"
	StatusSucceeded  = "succeeded"
	StatusFailed     = "failed"
)

// Job is a row of job: what is to be made, and for whom.
type Job struct {
	ID, Request, Account, Key     string
	Kind, Model, Endpoint         string
	Revision                      int64
	Plan                          catalog.Plan
	Prompt                        string
	Params                        string
	Materials                     Materials
	Callback                      string
	Free                          bool
	Held, Cost                    money.Amount
	Status, Code, Line            string
	Trace                         Trace
	Body                          string
	CreatedMS, StartedMS, EndedMS int64
}

// Materials are the files that a job works from.
type Materials struct {
	References []media.File `json:"references,omitempty"`
	Roles      []string     `json:"roles,omitempty"` // of the references, one each; none: not said
	Mask       *media.File  `json:"mask,omitempty"`
}

// Run is a row of job_run: where a running job stands.
type Run struct {
	State                       int64
	Turn                        int64
	QueuedMS, WakeMS, StartedMS int64
	Epoch                       string
	Fence                       int64
	Line                        string
	Revision, Number            int64
	Ticket                      string
	SubmittedMS                 int64
	Results                     []jobcall.Result
	Files                       []media.File
	Trace                       Trace
}

// Start notes that the job has started: from then on it is processing.
func (p *Run) Start(atMS int64) {
	if p.StartedMS == 0 {
		p.StartedMS = atMS
		p.Trace.Step(stepProcessing, atMS, "")
	}
}

// Overdue tells whether a queued job has waited longer than it may.
func (p *Run) Overdue(nowMS int64, limit time.Duration) bool {
	return p.QueuedMS > 0 && p.QueuedMS <= nowMS-limit.Milliseconds()
}
