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

// readRun reads a run.
func readRun(t *testing.T, db *store.DB, id string) Run {
	t.Helper()
	var r RunScan
	if err := db.View(t.Context(), func(tx *store.Tx) error {
		return tx.QueryRow(`SELECT `+RunColumns+` FROM job_run r WHERE r.id = $1`, id).Scan(r.Dest()...)
	}); err != nil {
		t.Fatal(err)
	}
	p, err := r.Read()
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
	values := Run{
		State: StateRendered, QueuedMS: 1, WakeMS: 2, StartedMS: 3, Epoch: "node_1", Fence: 4, Line: "line", Revision: 5, Number: 6,
		Ticket: "ticket", SubmittedMS: 7, Results: []jobcall.Result{{Ref: "there"}}, Files: []media.File{{Name: "file"}},
		Trace: Trace{Steps: []Step{{Name: StepQueued, At: 8}}},
	}
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		full := values
		for i, column := range runColumns() {
			id, other := fmt.Sprintf("job_%d", i), fmt.Sprintf("job_other_%d", i)
			enqueue(t, db, id)
			enqueue(t, db, other)
			want := readRun(t, db, id)
			otherBefore := readRun(t, db, other)
			full.Turn = want.Turn
			if changed := save(t, db, full, id, IfFence(0), column); changed != 1 {
				t.Errorf("%s: SaveTx changed %d rows, want 1", column, changed)
			}
			got := readRun(t, db, id)
			for _, c := range runColumns() {
				after, before, saved := got.value(c), want.value(c), full.value(c)
				switch {
				case c == column && (!reflect.DeepEqual(after, saved) || reflect.DeepEqual(after, before)):
					t.Errorf("%s is %v, want %v instead of %v", c, after, saved, before)
				case c != column && !reflect.DeepEqual(after, before):
					t.Errorf("SaveTx of %s changed %s to %v, want %v", column, c, after, before)
				}
			}
			if after := readRun(t, db, other); !reflect.DeepEqual(after, otherBefore) {
				t.Errorf("%s: SaveTx changed another row to %+v", column, after)
			}
		}
		enqueue(t, db, "job_all")
		full.Turn = readRun(t, db, "job_all").Turn
		save(t, db, full, "job_all", IfFence(0), runColumns()...)
		if got := readRun(t, db, "job_all"); !reflect.DeepEqual(got, full) {
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
			name string
			row  Run
			cond condition
			want int64
		}{
			{"same fence", row(StateRendering, 3, 1, "a"), IfFence(3), 1},
			{"taken over", row(StateRendering, 4, 1, "a"), IfFence(3), 0},
			{"the same ticket", row(StateRendering, 3, 1, "a"), IfTicket(3, "a"), 1},
			{"a ticket was recorded", row(StateRendering, 3, 1, "a"), IfTicket(3, ""), 0},
			{"taken over without a ticket", row(StateSending, 4, 1, ""), IfTicket(3, ""), 0},
			{"queued", row(StateQueued, 3, 0, ""), IfQueued(3), 1},
			{"started", row(StateSending, 3, 1, ""), IfQueued(3), 0},
			{"requeued with a higher fence", row(StateQueued, 5, 1, ""), IfQueued(3), 0},
			{"running", row(StateSending, 3, 1, ""), IfRunning(3), 1},
			{"back in the queue", row(StateQueued, 3, 1, ""), IfRunning(3), 0},
			{"running on another node", row(StateSending, 4, 1, ""), IfRunning(3), 0},
			{"same submission of another owner", row(StateSending, 9, 2, ""), IfSubmission(2, "a"), 1},
			{"same ticket recorded", row(StateRendering, 9, 2, "a"), IfSubmission(2, "a"), 1},
			{"another ticket recorded", row(StateRendering, 9, 2, "b"), IfSubmission(2, "a"), 0},
			{"submitted again", row(StateSending, 9, 3, ""), IfSubmission(2, "a"), 0},
			{"already rendered", row(StateRendered, 9, 2, "a"), IfSubmission(2, "a"), 0},
		} {
			id := fmt.Sprintf("job_%d", i)
			enqueue(t, db, id)
			save(t, db, c.row, id, IfFence(0), ColState, ColFence, ColNumber, ColTicket)
			next := c.row
			next.Line = "line"
			if got := save(t, db, next, id, c.cond, ColLine); got != c.want {
				t.Errorf("%s: SaveTx changed %d rows, want %d", c.name, got, c.want)
			}
			if got := readRun(t, db, id).Line; (got == "line") != (c.want == 1) {
				t.Errorf("%s: the line is %q, want written %t", c.name, got, c.want == 1)
			}
		}
	})
}
