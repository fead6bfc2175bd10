package job

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"tollgate/internal/catalog"
	"tollgate/internal/media"
	"tollgate/internal/money"
	"tollgate/internal/store"
	"tollgate/internal/upstream"
	"tollgate/internal/upstream/jobcall"
)

// Where a job stands, as job_run keeps it.
const (
	stateQueued    = 0 // waits for a line
	stateSending   = 1 // the decision to submit was written; the call may be under way
	stateRendering = 2 // the provider has given a ticket
	stateRendered  = 3 // the results are at the provider
	stateStored    = 4 // the results are in the media store
)

// The statuses of a job (interface.md, States and transitions).
const (
	statusQueued     = "queued"
	statusProcessing = "processing"
	statusSucceeded  = "succeeded"
	statusFailed     = "failed"
)

// record is a row of job: what is to be made, and for whom.
type record struct {
	id, request, account, key     string
	kind, model, endpoint         string
	revision                      int64
	plan                          catalog.Plan
	prompt                        string
	params                        string
	materials                     materials
	callback                      string
	free                          bool
	held, cost                    money.Amount
	status, code, line            string
	trace                         trace
	body                          string
	createdMS, startedMS, endedMS int64
}

// materials are the files that a job works from.
type materials struct {
	References []media.File `json:"references,omitempty"`
	Roles      []string     `json:"roles,omitempty"` // of the references, one each; none: not said
	Mask       *media.File  `json:"mask,omitempty"`
}

// progress is a row of job_run: where a running job stands.
type progress struct {
	state                       int64
	turn                        int64
	queuedMS, wakeMS, startedMS int64
	epoch                       string
	fence                       int64
	line                        string
	revision, number            int64
	ticket                      string
	submittedMS                 int64
	results                     []jobcall.Result
	files                       []media.File
	trace                       trace
}

// start notes that the job has started: from then on it is processing.
func (p *progress) start(atMS int64) {
	if p.startedMS == 0 {
		p.startedMS = atMS
		p.trace.step(stepProcessing, atMS, "")
	}
}

// trace is how a job fared, for the operator and for what is decided next.
type trace struct {
	Steps    []Step          `json:"steps,omitempty"`
	Attempts []TracedAttempt `json:"attempts,omitempty"`
}

// Step is one step of a job.
type Step struct {
	Name string `json:"name"`
	At   int64  `json:"at_ms"` // Unix milliseconds, by the database
	Line string `json:"line,omitempty"`
}

// TracedAttempt is one submission to a line.
type TracedAttempt struct {
	Line      string `json:"line"`
	Submitted int64  `json:"submitted_ms"`
	Ended     int64  `json:"ended_ms,omitempty"`
	Ticket    string `json:"ticket,omitempty"`
	// Code, Param and Message are what the job's error would be; empty while it
	// runs and when it went well.
	Code    string `json:"code,omitempty"`
	Param   string `json:"param,omitempty"`
	Message string `json:"message,omitempty"`
	// Cause is for the operator.
	Cause string `json:"cause,omitempty"`
	// Next is what could be done about it: see the words below.
	Next string `json:"next,omitempty"`
	// Lost says that its answer did not arrive.
	Lost bool `json:"lost,omitempty"`
	// Tokens are what the provider has counted for it, however it ended.
	upstream.TokenCounts
	// LineCost is what the provider takes for it; nil: nobody knows.
	LineCost *money.Amount `json:"line_cost_usd,omitempty"`
}

// The values of Attempt.Next.
const (
	nextLater = "later"     // the line was busy: it counts for nothing
	nextSame  = "same_line" // once more there
	nextOther = "other_line"
	nextNone  = "none"
)

// The most of a trace that is kept: the first ones and the last.
const (
	maxSteps    = 100
	maxAttempts = 50
)

// step adds a step.
func (t *trace) step(name string, atMS int64, line string) {
	s := Step{Name: name, At: atMS, Line: line}
	if len(t.Steps) >= maxSteps {
		t.Steps[maxSteps-1] = s
		return
	}
	t.Steps = append(t.Steps, s)
}

// begin adds an attempt.
func (t *trace) begin(line string, atMS int64) {
	if len(t.Attempts) >= maxAttempts {
		// Attempts on busy lines count for nothing, so one of them can go.
		for i := range t.Attempts {
			if t.Attempts[i].Next == nextLater {
				t.Attempts = append(t.Attempts[:i], t.Attempts[i+1:]...)
				break
			}
		}
	}
	t.Attempts = append(t.Attempts, TracedAttempt{Line: line, Submitted: atMS})
}

// current returns the attempt that runs, or ended last; nil: there was none.
func (t *trace) current() *TracedAttempt {
	if len(t.Attempts) == 0 {
		return nil
	}
	return &t.Attempts[len(t.Attempts)-1]
}

// spent notes what the provider has counted for the current attempt. It may say
// so more than once, and knows all at the end.
func (t *trace) spent(tokens upstream.TokenCounts) {
	if a := t.current(); a != nil {
		a.Prompt, a.Cached, a.Completion = max(a.Prompt, tokens.Prompt), max(a.Cached, tokens.Cached), max(a.Completion, tokens.Completion)
		if cost := money.Amount(tokens.CostNano); cost > 0 && (a.LineCost == nil || *a.LineCost < cost) {
			a.LineCost = &cost
		}
	}
}

// clone returns a copy that changes apart from t.
func (t *trace) clone() trace {
	return trace{Steps: append([]Step(nil), t.Steps...), Attempts: append([]TracedAttempt(nil), t.Attempts...)}
}

// text encodes what is stored as JSON, without the NUL characters that providers
// may have sent. All of it is made here, so it encodes.
func text(v any) string {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("job: encode %T: %v", v, err))
	}
	const null = `\u0000`
	if !bytes.Contains(raw, []byte(null)) {
		return string(raw)
	}
	out := make([]byte, 0, len(raw))
	for i := 0; i < len(raw); i++ {
		if raw[i] != '\\' {
			out = append(out, raw[i])
			continue
		}
		if bytes.HasPrefix(raw[i:], []byte(null)) {
			i += len(null) - 1
			continue
		}
		out = append(out, raw[i], raw[i+1]) // an escape: what follows a backslash that is escaped is no escape
		i++
	}
	return string(out)
}

// errDamaged means that a row holds what text has not written.
var errDamaged = errors.New("the row is damaged")

// decode reads what text wrote; empty text leaves v as it is. errDamaged.
func decode(raw string, v any) error {
	if raw == "" {
		return nil
	}
	if err := json.Unmarshal([]byte(raw), v); err != nil {
		return fmt.Errorf("%w: %w", errDamaged, err)
	}
	return nil
}

const recordColumns = `j.id, j.request, j.account, j.key, j.kind, j.model, j.endpoint, j.revision, j.plan, j.prompt, j.params, j.materials,
	j.callback, j.free, j.held_nano, j.cost_nano, j.status, j.code, j.line, j.trace, j.body, j.created_ms, j.started_ms, j.ended_ms`

const progressColumns = `r.state, r.turn, r.queued_ms, r.wake_ms, r.started_ms, r.epoch, r.fence, r.line, r.revision, r.number, r.ticket,
	r.submitted_ms, r.results, r.files, r.trace`

// scanRecord reads a row of recordColumns.
func scanRecord(row store.Row, more ...any) (*record, error) {
	var r record
	var free int64
	var plan, materials, trace string
	err := row.Scan(append([]any{&r.id, &r.request, &r.account, &r.key, &r.kind, &r.model, &r.endpoint, &r.revision, &plan,
		&r.prompt, &r.params,
		&materials, &r.callback, &free, (*int64)(&r.held), (*int64)(&r.cost), &r.status, &r.code, &r.line, &trace, &r.body,
		&r.createdMS, &r.startedMS, &r.endedMS}, more...)...)
	if err != nil {
		return nil, err
	}
	r.free = free != 0
	if err := errors.Join(decode(plan, &r.plan), decode(materials, &r.materials), decode(trace, &r.trace)); err != nil {
		return nil, fmt.Errorf("read job %s: %w", r.id, err)
	}
	return &r, nil
}

// progressRow is a row of progressColumns as it is scanned.
type progressRow struct {
	progress
	resultsJSON, filesJSON, traceJSON string
}

func (p *progressRow) dest() []any {
	return []any{&p.state, &p.turn, &p.queuedMS, &p.wakeMS, &p.startedMS, &p.epoch, &p.fence, &p.line, &p.revision, &p.number, &p.ticket,
		&p.submittedMS, &p.resultsJSON, &p.filesJSON, &p.traceJSON}
}

func (p *progressRow) read() (*progress, error) {
	if err := decode(p.resultsJSON, &p.results); err != nil {
		return nil, err
	}
	if err := decode(p.filesJSON, &p.files); err != nil {
		return nil, err
	}
	return &p.progress, decode(p.traceJSON, &p.trace)
}

// readTx reads a running job; nil: it is not there, or has ended.
func readTx(tx *store.Tx, id string) (*record, *progress, error) {
	rows, err := tx.Query(`SELECT `+recordColumns+`, `+progressColumns+` FROM job j JOIN job_run r ON r.id = j.id WHERE j.id = $1`, id)
	if err != nil {
		return nil, nil, err
	}
	defer rows.Close()
	if !rows.Next() {
		return nil, nil, rows.Err()
	}
	var p progressRow
	rec, err := scanRecord(rows, p.dest()...)
	if err != nil {
		return nil, nil, err
	}
	run, err := p.read()
	return rec, run, err
}
