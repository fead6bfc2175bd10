package job

import (
	"strconv"
	"strings"

	"tollgate/internal/store"
)

// Columns of a run's row as saveTx writes them.
const (
	colState     = "state"
	colQueued    = "queued_ms"
	colWake      = "wake_ms"
	colStarted   = "started_ms"
	colEpoch     = "epoch"
	colFence     = "fence"
	colLine      = "line"
	colRevision  = "revision"
	colNumber    = "number"
	colTicket    = "ticket"
	colSubmitted = "submitted_ms"
	colResults   = "results"
	colFiles     = "files"
	colTrace     = "trace"
	// colTurn is not written from the row: a job that comes back keeps its turn
	// or, if the queue has moved on, gets that of its head. An older one would let
	// all jobs to come pass those that wait.
	colTurn = "turn"
)

const turnBack = `CASE WHEN turn < COALESCE((SELECT q.turn FROM job_run q WHERE q.model = job_run.model AND q.state = 0
	ORDER BY q.turn, q.id LIMIT 1), 0)
	THEN (SELECT q.turn FROM job_run q WHERE q.model = job_run.model AND q.state = 0 ORDER BY q.turn, q.id LIMIT 1) ELSE turn END`

// value is what a column is set to.
func (p *progress) value(column string) any {
	switch column {
	case colState:
		return p.state
	case colQueued:
		return p.queuedMS
	case colWake:
		return p.wakeMS
	case colStarted:
		return p.startedMS
	case colEpoch:
		return p.epoch
	case colFence:
		return p.fence
	case colLine:
		return p.line
	case colRevision:
		return p.revision
	case colNumber:
		return p.number
	case colTicket:
		return p.ticket
	case colSubmitted:
		return p.submittedMS
	case colResults:
		return texts(p.results)
	case colFiles:
		return texts(p.files)
	case colTrace:
		return text(p.trace)
	}
	panic("job: no column " + column)
}

// texts is text, empty for an empty list.
func texts[T any](list []T) string {
	if len(list) == 0 {
		return ""
	}
	return text(list)
}

// guard is the condition under which a run's row may be written. Its parameters
// are written as ?.
type guard struct {
	where string
	args  []any
}

// keptBy holds while a fence keeps the job: nobody has taken it over.
func keptBy(fence int64) guard { return guard{"fence = ?", []any{fence}} }

// unticketed holds while the fence keeps the job and nobody has brought another
// ticket.
func unticketed(fence int64, ticket string) guard {
	return guard{"fence = ? AND ticket = ?", []any{fence, ticket}}
}

// waiting holds while the job waits in its queue as it did under the fence.
func waiting(fence int64) guard { return guard{"fence = ? AND state = 0", []any{fence}} }

// running holds while the fence keeps the job and it has left its queue.
func running(fence int64) guard { return guard{"fence = ? AND state > 0", []any{fence}} }

// submitted holds, whoever keeps the job, while the submission of a number has
// no ticket yet, or this one. Whoever keeps it may be further than that.
func submitted(number int64, ticket string) guard {
	return guard{"number = ? AND (state = 1 AND ticket = '' OR state = 2 AND ticket = ?)", []any{number, ticket}}
}

// saveTx is the one writer of a running job's row: where the guard holds it sets
// the columns to what p says, those alone, and returns how many rows changed,
// which is none if it does not hold.
func (p *progress) saveTx(tx *store.Tx, id string, g guard, columns ...string) (changed int64, err error) {
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
		if column == colTurn {
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

// touchTx writes a row as it is: that waits for whoever is writing it, and the
// commit proves what was read after it.
func touchTx(tx *store.Tx, id string) error {
	_, err := tx.Exec(`UPDATE job_run SET epoch = epoch WHERE id = $1`, id)
	return err
}
