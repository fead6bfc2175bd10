package row

import (
	"fmt"
	"reflect"
	"testing"

	"tollgate/internal/media"
	"tollgate/internal/store"
	"tollgate/internal/store/storetest"
	"tollgate/internal/upstream/jobcall"
)

// runColumns returns the columns written from a run.
func runColumns() []string {
	return []string{ColState, ColQueued, ColWake, ColStarted, ColEpoch, ColFence, ColLine, ColRevision, ColNumber, ColTicket, ColSubmitted,
		ColResults, ColFiles, ColTrace}
}

func rowOf(t *testing.T, db *store.DB, id string) Run {
	t.Helper()
	var scanned RunScan
	if err := db.View(t.Context(), func(tx *store.Tx) error {
		return tx.QueryRow(`SELECT `+RunColumns+` FROM job_run r WHERE r.id = $1`, id).Scan(scanned.Dest()...)
	}); err != nil {
		t.Fatal(err)
	}
	p, err := scanned.Read()
	if err != nil {
		t.Fatal(err)
	}
	return *p
}

// save calls SaveTx.
func save(t *testing.T, db *store.DB, p Run, id string, g condition, columns ...string) (changed int64) {
	t.Helper()
	if err := db.Update(t.Context(), func(tx *store.Tx) (err error) {
		changed, err = p.SaveTx(tx, id, g, columns...)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return changed
}

// enqueue inserts a queued run.
func enqueue(t *testing.T, db *store.DB, id string) {
	t.Helper()
	storetest.Exec(t, db, `INSERT INTO job_run (id, model, account, state, turn, queued_ms, wake_ms, started_ms, epoch, fence, line, revision,
		number, ticket, submitted_ms, results, files, trace)
		VALUES ($1, 'model', 'account', 0, 1, 1000, 0, 0, '', 0, '', 0, 0, '', 0, '', '', $2)`, id, Text(Trace{}))
}

// TestSaveColumns checks that SaveTx writes the given columns and no others.
func TestSaveColumns(t *testing.T) {
	t.Parallel()
	filled := Run{
		State: StateRendered, QueuedMS: 1, WakeMS: 2, StartedMS: 3, Epoch: "node_1", Fence: 4, Line: "line", Revision: 5, Number: 6,
		Ticket: "ticket", SubmittedMS: 7, Results: []jobcall.Result{{Ref: "there"}}, Files: []media.File{{Name: "file"}},
		Trace: Trace{Steps: []Step{{Name: StepQueued, At: 8}}},
	}
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		full := filled
		for i, column := range runColumns() {
			id, other := fmt.Sprintf("job_%d", i), fmt.Sprintf("job_other_%d", i)
			enqueue(t, db, id)
			enqueue(t, db, other)
			want := rowOf(t, db, id)
			beside := rowOf(t, db, other)
			full.Turn = want.Turn
			if changed := save(t, db, full, id, IfFence(0), column); changed != 1 {
				t.Errorf("%s: %d rows changed", column, changed)
			}
			got := rowOf(t, db, id)
			for _, c := range runColumns() {
				is, was, should := got.value(c), want.value(c), full.value(c)
				switch {
				case c == column && (!reflect.DeepEqual(is, should) || reflect.DeepEqual(is, was)):
					t.Errorf("%s is %v, want %v, was %v", c, is, should, was)
				case c != column && !reflect.DeepEqual(is, was):
					t.Errorf("%s was written for %s: %v, want %v", c, column, is, was)
				}
			}
			if after := rowOf(t, db, other); !reflect.DeepEqual(after, beside) {
				t.Errorf("%s: another row was written: %+v", column, after)
			}
		}
		enqueue(t, db, "job_all")
		full.Turn = rowOf(t, db, "job_all").Turn
		save(t, db, full, "job_all", IfFence(0), runColumns()...)
		if got := rowOf(t, db, "job_all"); !reflect.DeepEqual(got, full) {
			t.Errorf("all columns: %+v, want %+v", got, full)
		}
	})
}

// TestSaveConditions checks that SaveTx writes a row only under its condition.
func TestSaveConditions(t *testing.T) {
	t.Parallel()
	row := func(state, fence, number int64, ticket string) Run {
		return Run{State: state, Fence: fence, Number: number, Ticket: ticket}
	}
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		for i, c := range []struct {
			name  string
			row   Run
			guard condition
			want  int64
		}{
			{"kept", row(StateRendering, 3, 1, "a"), IfFence(3), 1},
			{"taken over", row(StateRendering, 4, 1, "a"), IfFence(3), 0},
			{"the same ticket", row(StateRendering, 3, 1, "a"), IfTicket(3, "a"), 1},
			{"a ticket was brought", row(StateRendering, 3, 1, "a"), IfTicket(3, ""), 0},
			{"taken over without a ticket", row(StateSending, 4, 1, ""), IfTicket(3, ""), 0},
			{"waits", row(StateQueued, 3, 0, ""), IfQueued(3), 1},
			{"was started", row(StateSending, 3, 1, ""), IfQueued(3), 0},
			{"came back since", row(StateQueued, 5, 1, ""), IfQueued(3), 0},
			{"runs", row(StateSending, 3, 1, ""), IfRunning(3), 1},
			{"is back in its queue", row(StateQueued, 3, 1, ""), IfRunning(3), 0},
			{"runs elsewhere", row(StateSending, 4, 1, ""), IfRunning(3), 0},
			{"submitted, kept by another", row(StateSending, 9, 2, ""), IfSubmission(2, "a"), 1},
			{"this ticket is there", row(StateRendering, 9, 2, "a"), IfSubmission(2, "a"), 1},
			{"another ticket is there", row(StateRendering, 9, 2, "b"), IfSubmission(2, "a"), 0},
			{"submitted once more", row(StateSending, 9, 3, ""), IfSubmission(2, "a"), 0},
			{"further than that", row(StateRendered, 9, 2, "a"), IfSubmission(2, "a"), 0},
		} {
			id := fmt.Sprintf("job_%d", i)
			enqueue(t, db, id)
			save(t, db, c.row, id, IfFence(0), ColState, ColFence, ColNumber, ColTicket)
			next := c.row
			next.Line = "line"
			if got := save(t, db, next, id, c.guard, ColLine); got != c.want {
				t.Errorf("%s: %d rows changed, want %d", c.name, got, c.want)
			}
			if got := rowOf(t, db, id).Line; (got == "line") != (c.want == 1) {
				t.Errorf("%s: the line is %q", c.name, got)
			}
		}
	})
}
