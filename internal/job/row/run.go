package row

import (
	"strconv"
	"strings"

	"tollgate/internal/store"
)

// Columns for SaveTx.
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
	// ColTurn is computed by SQL: a job that returns to its queue keeps its turn, or gets the first
	// turn of the queue if the first turn is later. With an earlier turn, all new jobs would pass the
	// queued jobs.
	ColTurn = "turn"
)

const turnBack = `CASE WHEN turn < COALESCE((SELECT q.turn FROM job_run q WHERE q.model = job_run.model AND q.state = 0
	ORDER BY q.turn, q.id LIMIT 1), 0)
	THEN (SELECT q.turn FROM job_run q WHERE q.model = job_run.model AND q.state = 0 ORDER BY q.turn, q.id LIMIT 1) ELSE turn END`

// value returns the value of a column.
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
		return listText(p.Results)
	case ColFiles:
		return listText(p.Files)
	case ColTrace:
		return Text(p.Trace)
	}
	panic("job: no column " + column)
}

// listText is like Text, but returns an empty string for an empty list.
func listText[T any](list []T) string {
	if len(list) == 0 {
		return ""
	}
	return Text(list)
}

// condition is the condition of an update, with ? for each parameter.
type condition struct {
	where string
	args  []any
}

// IfFence requires the fence: the job was not taken over.
func IfFence(fence int64) condition { return condition{"fence = ?", []any{fence}} }

// IfTicket requires the fence and the ticket.
func IfTicket(fence int64, ticket string) condition {
	return condition{"fence = ? AND ticket = ?", []any{fence, ticket}}
}

// IfQueued requires the fence and a queued job.
func IfQueued(fence int64) condition { return condition{"fence = ? AND state = 0", []any{fence}} }

// IfRunning requires the fence and a job that has left its queue.
func IfRunning(fence int64) condition { return condition{"fence = ? AND state > 0", []any{fence}} }

// IfSubmission requires the number of the submission and no other ticket, for any fence.
func IfSubmission(number int64, ticket string) condition {
	return condition{"number = ? AND (state = 1 AND ticket = '' OR state = 2 AND ticket = ?)", []any{number, ticket}}
}

// SaveTx writes columns of the run if the condition is true, and returns the number of changed rows.
func (p *Run) SaveTx(tx *store.Tx, id string, g condition, columns ...string) (changed int64, err error) {
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

// TouchTx writes a row without changes. The write waits for another writer of the row. The commit of
// the write confirms later reads of the transaction.
func TouchTx(tx *store.Tx, id string) error {
	_, err := tx.Exec(`UPDATE job_run SET epoch = epoch WHERE id = $1`, id)
	return err
}
