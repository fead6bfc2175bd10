package job

import (
	"fmt"
	"reflect"
	"testing"

	"tollgate/internal/media"
	"tollgate/internal/store"
	"tollgate/internal/store/storetest"
	"tollgate/internal/upstream/jobcall"
)

// runColumns are the columns of a run's row that are written from it.
func runColumns() []string {
	return []string{colState, colQueued, colWake, colStarted, colEpoch, colFence, colLine, colRevision, colNumber, colTicket, colSubmitted,
		colResults, colFiles, colTrace}
}

// rowOf reads a run's row.
func rowOf(t *testing.T, db *store.DB, id string) progress {
	t.Helper()
	var row progressRow
	if err := db.View(t.Context(), func(tx *store.Tx) error {
		return tx.QueryRow(`SELECT `+progressColumns+` FROM job_run r WHERE r.id = $1`, id).Scan(row.dest()...)
	}); err != nil {
		t.Fatal(err)
	}
	p, err := row.read()
	if err != nil {
		t.Fatal(err)
	}
	return *p
}

// save writes columns of a row.
func save(t *testing.T, db *store.DB, p progress, id string, g guard, columns ...string) (changed int64) {
	t.Helper()
	if err := db.Update(t.Context(), func(tx *store.Tx) (err error) {
		changed, err = p.saveTx(tx, id, g, columns...)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return changed
}

// enqueue puts a run into the queue.
func enqueue(t *testing.T, db *store.DB, id string) {
	t.Helper()
	if err := db.Update(t.Context(), func(tx *store.Tx) error {
		_, err := tx.Exec(insertRun, id, "model", "account", 1000, text(trace{}))
		return err
	}); err != nil {
		t.Fatal(err)
	}
}

// TestSaveColumns: what is named is written as the row says, and nothing else.
func TestSaveColumns(t *testing.T) {
	t.Parallel()
	filled := progress{
		state: stateRendered, queuedMS: 1, wakeMS: 2, startedMS: 3, epoch: "node_1", fence: 4, line: "line", revision: 5, number: 6,
		ticket: "ticket", submittedMS: 7, results: []jobcall.Result{{Ref: "there"}}, files: []media.File{{Name: "file"}},
		trace: trace{Steps: []Step{{Name: stepQueued, At: 8}}},
	}
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		full := filled
		for i, column := range runColumns() {
			id, other := fmt.Sprintf("job_%d", i), fmt.Sprintf("job_other_%d", i)
			enqueue(t, db, id)
			enqueue(t, db, other)
			want := rowOf(t, db, id)
			beside := rowOf(t, db, other)
			full.turn = want.turn
			if changed := save(t, db, full, id, keptBy(0), column); changed != 1 {
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
		full.turn = rowOf(t, db, "job_all").turn
		save(t, db, full, "job_all", keptBy(0), runColumns()...)
		if got := rowOf(t, db, "job_all"); !reflect.DeepEqual(got, full) {
			t.Errorf("all columns: %+v, want %+v", got, full)
		}
	})
}

// TestSaveGuards: a row is written where its guard holds, and left where not.
func TestSaveGuards(t *testing.T) {
	t.Parallel()
	row := func(state, fence, number int64, ticket string) progress {
		return progress{state: state, fence: fence, number: number, ticket: ticket}
	}
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		for i, c := range []struct {
			name  string
			row   progress
			guard guard
			want  int64
		}{
			{"kept", row(stateRendering, 3, 1, "a"), keptBy(3), 1},
			{"taken over", row(stateRendering, 4, 1, "a"), keptBy(3), 0},
			{"the same ticket", row(stateRendering, 3, 1, "a"), unticketed(3, "a"), 1},
			{"a ticket was brought", row(stateRendering, 3, 1, "a"), unticketed(3, ""), 0},
			{"taken over without a ticket", row(stateSending, 4, 1, ""), unticketed(3, ""), 0},
			{"waits", row(stateQueued, 3, 0, ""), waiting(3), 1},
			{"was started", row(stateSending, 3, 1, ""), waiting(3), 0},
			{"came back since", row(stateQueued, 5, 1, ""), waiting(3), 0},
			{"runs", row(stateSending, 3, 1, ""), running(3), 1},
			{"is back in its queue", row(stateQueued, 3, 1, ""), running(3), 0},
			{"runs elsewhere", row(stateSending, 4, 1, ""), running(3), 0},
			{"submitted, kept by another", row(stateSending, 9, 2, ""), submitted(2, "a"), 1},
			{"this ticket is there", row(stateRendering, 9, 2, "a"), submitted(2, "a"), 1},
			{"another ticket is there", row(stateRendering, 9, 2, "b"), submitted(2, "a"), 0},
			{"submitted once more", row(stateSending, 9, 3, ""), submitted(2, "a"), 0},
			{"further than that", row(stateRendered, 9, 2, "a"), submitted(2, "a"), 0},
		} {
			id := fmt.Sprintf("job_%d", i)
			enqueue(t, db, id)
			save(t, db, c.row, id, keptBy(0), colState, colFence, colNumber, colTicket)
			next := c.row
			next.line = "line"
			if got := save(t, db, next, id, c.guard, colLine); got != c.want {
				t.Errorf("%s: %d rows changed, want %d", c.name, got, c.want)
			}
			if got := rowOf(t, db, id).line; (got == "line") != (c.want == 1) {
				t.Errorf("%s: the line is %q", c.name, got)
			}
		}
	})
}
