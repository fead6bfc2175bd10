package row

import (
	"strconv"
	"strings"

	"tollgate/internal/store"
)

// Columns of a run's row as SaveTx writes them.
const (
	ColState     = "state"
	ColQueued    = "queued_ms"
	ColWake      = "wake_ms"
	ColStarted   = "started_ms"
	ColEpoch     = "epoch"
	ColFence     = "fence"
	ColLine      = "line"
	ColRevision  = "revision"
	ColNumber    = "number"
	ColTicket    = "ticket"
	ColSubmitted = "submitted_ms"
	ColResults   = "results"
	ColFiles     = "files"
	ColTrace     = "trace"
	// ColTurn is not written from the row: a job that comes back keeps its turn
	// or, if the queue has moved on, gets that of its head. An older one would let
	// all jobs to come pass those that wait.
	ColTurn = "turn"
)

const turnBack = `CASE WHEN turn < COALESCE((SELECT q.turn FROM job_run q WHERE q.model = job_run.model AND q.state = 0
	ORDER BY q.turn, q.id LIMIT 1), 0)
	THEN (SELECT q.turn FROM job_run q WHERE q.model = job_run.model AND q.state = 0 ORDER BY q.turn, q.id LIMIT 1) ELSE turn END`

// value is what a column is set to.
func (p *Run) value(column string) any {
	switch column {
	case ColState:
		return p.State
	case ColQueued:
		return p.QueuedMS
	case ColWake:
		return p.WakeMS
	case ColStarted:
		return p.StartedMS
	case ColEpoch:
		return p.Epoch
	case ColFence:
		return p.Fence
	case ColLine:
		return p.Line
	case ColRevision:
		return p.Revision
	case ColNumber:
		return p.Number
	case ColTicket:
		return p.Ticket
	case ColSubmitted:
		return p.SubmittedMS
	case ColResults:
		return texts(p.Results)
	case ColFiles:
		return texts(p.Files)
	case ColTrace:
		return Text(p.Trace)
	}
	panic("job: no column " + column)
}

// texts is text, empty for an empty list.
func texts[T any](list []T) string {
	if len(list) == 0 {
		return ""
	}
	return Text(list)
}

// guard is the condition under which a run's row may be written. Its parameters
// are written as ?.
type guard struct {
	where string
	args  []any
}

// KeptBy holds while a fence keeps the job: nobody has taken it over.
func KeptBy(fence int64) guard { return guard{"fence = ?", []any{fence}} }

// Unticketed holds while the fence keeps the job and nobody has brought another
// ticket.
func Unticketed(fence int64, ticket string) guard {
	return guard{"fence = ? AND ticket = ?", []any{fence, ticket}}
}

// Waiting holds while the job waits in its queue as it did under the fence.
func Waiting(fence int64) guard { return guard{"fence = ? AND state = 0", []any{fence}} }

// Running holds while the fence keeps the job and it has left its queue.
func Running(fence int64) guard { return guard{"fence = ? AND state > 0", []any{fence}} }

// Submitted holds, whoever keeps the job, while the submission of a number has
// no ticket yet, or this one. Whoever keeps it may be further than that.
func Submitted(number int64, ticket string) guard {
	return guard{"number = ? AND (state = 1 AND ticket = '' OR state = 2 AND ticket = ?)", []any{number, ticket}}
}

// SaveTx is the one writer of a running job's row: where the guard holds it sets
// the columns to what p says, those alone, and returns how many rows changed,
// which is none if it does not hold.
func (p *Run) SaveTx(tx *store.Tx, id string, g guard, columns ...string) (changed int64, err error) {
	var b strings.Builder
	args := make([]any, 0, len(columns)+1+len(g.args))
	parameter := func(v any) {
		args = append(args, v)
		b.WriteByte('$')
		b.WriteString(strconv.Itoa(len(args)))
	}
	b.WriteString(`UPDATE job_run SET `)
	for i, column := range columns {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(column)
		b.WriteString(" = ")
		if column == ColTurn {
			b.WriteString(turnBack)
			continue
		}
		parameter(p.value(column))
	}
	b.WriteString(` WHERE id = `)
	parameter(id)
	b.WriteString(" AND ")
	where := g.where
	for _, arg := range g.args {
		before, after, _ := strings.Cut(where, "?")
		b.WriteString(before)
		parameter(arg)
		where = after
	}
	b.WriteString(where)
	return tx.Exec(b.String(), args...)
}

// TouchTx writes a row as it is: that waits for whoever is writing it, and the
// commit proves what was read after it.
func TouchTx(tx *store.Tx, id string) error {
	_, err := tx.Exec(`UPDATE job_run SET epoch = epoch WHERE id = $1`, id)
	return err
}
