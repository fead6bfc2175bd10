package line

import (
	"encoding/json"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"tollgate/internal/line/health"
	"tollgate/internal/node"
	"tollgate/internal/store"
	"tollgate/internal/store/storetest"
)

// ptr returns a pointer to a copy of v.
func ptr[T any](v T) *T { return &v }

// partOut returns a model that is out of service on a line.
func partOut(model, cause string, since, until int64) health.PartOut {
	return health.PartOut{Model: model, Cause: cause, Since: since, Until: until}
}

func modelsOut(models ...health.PartOut) health.PartsOut { return health.PartsOut{ModelsOut: models} }

// TestReports checks that ReportsTx returns the last report of each living node, and that reports of
// dead nodes are deleted.
func TestReports(t *testing.T) {
	t.Parallel()
	now := time.UnixMilli(1_700_000_000_123)
	storetest.EachURL(t, func(t *testing.T, url string) {
		db := storetest.Open(t, url, store.Options{Now: func() time.Time { return now }})
		read := func() []Report { return view(t, db, ReportsTx) }
		report := func(epoch string, states ...Status) {
			t.Helper()
			storetest.Update(t, db, func(tx *store.Tx) error { return reportTx(tx, epoch, states) })
		}
		countRows := func() int { return count(t, db, `SELECT COUNT(*) FROM line_report`) }
		for _, epoch := range []string{"node_b", "node_a", "node_silent"} {
			if err := node.Register(t.Context(), db, epoch); err != nil {
				t.Fatal(err)
			}
		}
		if got := read(); len(got) != 0 {
			t.Errorf("reports before the first report: %v, want none", got)
		}

		fullStatus := Status{
			Line: "main", Provider: "fake", State: health.StateCircuitOpen, CoolingUntil: 1_700_000_030, InFlight: 3, MaxConcurrent: 10, Granted: 5,
			Attempts: 4, SuccessRate: ptr(0.25), FirstByteMS: ptr(int64(30)), Cause: "5 failures in a row — “odd”", CauseAt: 1_700_000_000,
			PartsOut: modelsOut(partOut("swift-1", "no such model", 1, 2)),
		}
		report("node_b", Status{Line: "main", State: health.StateInService})
		report("node_b", fullStatus, Status{Line: "other", State: stateDisabled})
		report("node_a")
		report("node_unknown", fullStatus)
		host, err := os.Hostname()
		if err != nil {
			t.Fatal(err)
		}
		want := []Report{
			{Epoch: "node_a", Host: host, AtMS: 1_700_000_000_123},
			{Epoch: "node_b", Host: host, AtMS: 1_700_000_000_123, Statuses: []Status{fullStatus, {Line: "other", State: stateDisabled}}},
		}
		if got := read(); !reflect.DeepEqual(got, want) {
			t.Errorf("reports %+v\nwant %+v", got, want)
		}

		// Reports of dead or unknown nodes are ignored and deleted.
		if dead, err := node.Fence(t.Context(), db, "node_b", 0); err != nil || !dead {
			t.Fatalf("Fence(node_b) = %t, %v, want true", dead, err)
		}
		if got := read(); !reflect.DeepEqual(got, want[:1]) {
			t.Errorf("reports after the death of node_b: %+v, want only node_a", got)
		}
		if n := countRows(); n != 3 {
			t.Errorf("%d rows are stored, want 3", n)
		}
		for range 2 {
			storetest.Update(t, db, forgetReportsTx)
			if got := read(); !reflect.DeepEqual(got, want[:1]) || countRows() != 1 {
				t.Errorf("after the deletion: reports %+v, %d rows; want node_a only", got, countRows())
			}
		}

		// The error about an unreadable report names its node.
		storetest.Update(t, db, func(tx *store.Tx) error {
			_, err := tx.Exec(`UPDATE line_report SET states = $1 WHERE epoch = $2`, `{"id":`, "node_a")
			if err == nil {
				_, err = ReportsTx(tx)
			}
			if err == nil || !strings.Contains(err.Error(), "node_a") {
				t.Errorf("error %v, want an error that names node_a", err)
			}
			return nil
		})
	})
}

// TestJoin checks the combined status of lines for reports of several nodes.
func TestJoin(t *testing.T) {
	t.Parallel()
	reportOf := func(epoch string, seconds int64, states ...Status) Report {
		return Report{Epoch: epoch, AtMS: seconds*1000 + 999, Statuses: states}
	}
	for _, tt := range []struct {
		name    string
		reports []Report
		want    []Status // expected statuses without Nodes
	}{
		{"no reports", nil, []Status{}},
		{"a report without lines", []Report{reportOf("a", 1)}, []Status{}},
		{"one node", []Report{reportOf("a", 1, Status{Line: "main", Provider: "p", State: health.StateInService, InFlight: 2,
			MaxConcurrent: 9, Granted: 9,
			Attempts: 3, SuccessRate: ptr(1.0), FirstByteMS: ptr(int64(7)), Cause: "once", CauseAt: 1})},
			[]Status{{Line: "main", Provider: "p", State: health.StateInService, InFlight: 2, MaxConcurrent: 9, Granted: 9,
				Attempts: 3, SuccessRate: ptr(1.0), FirstByteMS: ptr(int64(7)), Cause: "once", CauseAt: 1}}},
		{"the order of the first report", []Report{
			reportOf("a", 1, Status{Line: "z", State: health.StateInService}, Status{Line: "a", State: health.StateInService}),
			reportOf("b", 1, Status{Line: "new", State: health.StateInService}, Status{Line: "a", State: health.StateInService},
				Status{Line: "z", State: health.StateInService}),
		}, []Status{{Line: "z", State: health.StateInService}, {Line: "a", State: health.StateInService},
			{Line: "new", State: health.StateInService}}},
		{"sums and weighted means", []Report{
			reportOf("a", 1, Status{Line: "m", State: health.StateInService, InFlight: 1, Granted: 4, Attempts: 30, SuccessRate: ptr(1.0),
				FirstByteMS: ptr(int64(100))}),
			reportOf("b", 1, Status{Line: "m", State: health.StateInService, InFlight: 2, Granted: 6, Attempts: 10, SuccessRate: ptr(0.0)}),
			reportOf("c", 1, Status{Line: "m", State: health.StateInService, Attempts: 10, SuccessRate: ptr(1.0), FirstByteMS: ptr(int64(502))}),
			reportOf("d", 1, Status{Line: "m", State: health.StateInService, InFlight: 4}),
		}, []Status{{Line: "m", State: health.StateInService, InFlight: 7, Granted: 10, Attempts: 50, SuccessRate: ptr(0.8),
			FirstByteMS: ptr(int64(201))}}},
		{"a new catalog on one node", []Report{
			reportOf("a", 5, Status{Line: "m", Provider: "new", State: health.StateInService, MaxConcurrent: 20}),
			reportOf("b", 4, Status{Line: "m", Provider: "old", State: stateDisabled, MaxConcurrent: 10}),
		}, []Status{{Line: "m", Provider: "new", State: stateDisabled, MaxConcurrent: 20}}},
		{"the latest cause", []Report{
			reportOf("a", 1, Status{Line: "m", State: health.StateInService, Cause: "later", CauseAt: 9}),
			reportOf("b", 1, Status{Line: "m", State: health.StateInService, Cause: "earlier", CauseAt: 8}),
			reportOf("c", 1, Status{Line: "m", State: health.StateInService}),
		}, []Status{{Line: "m", State: health.StateInService, Cause: "later", CauseAt: 9}}},
		{"the cause of the worst state", []Report{
			reportOf("a", 1, Status{Line: "m", State: health.StateInService, Cause: "a failure", CauseAt: 9}),
			reportOf("b", 1, Status{Line: "m", State: stateOutOfService, Cause: "KEY is not set"}),
		}, []Status{{Line: "m", State: stateOutOfService, Cause: "KEY is not set"}}},
		{"a state without a cause", []Report{
			reportOf("a", 1, Status{Line: "m", State: health.StateInService, Cause: "a failure", CauseAt: 9}),
			reportOf("b", 1, Status{Line: "m", State: stateDrained}),
		}, []Status{{Line: "m", State: stateDrained, Cause: "a failure", CauseAt: 9}}},
		{"the longest pause", []Report{
			reportOf("a", 1, Status{Line: "m", State: health.StateCooling, CoolingUntil: 50}),
			reportOf("b", 1, Status{Line: "m", State: health.StateCooling, CoolingUntil: 70}),
			reportOf("c", 1, Status{Line: "m", State: health.StateInService}),
		}, []Status{{Line: "m", State: health.StateCooling, CoolingUntil: 70}}},
		{"the pause of the state", []Report{
			reportOf("a", 1, Status{Line: "m", State: health.StateCooling, CoolingUntil: 50}),
			reportOf("b", 1, Status{Line: "m", State: stateDrained}),
		}, []Status{{Line: "m", State: stateDrained}}},
		{"models out on one node", []Report{
			reportOf("a", 1, Status{Line: "m", State: health.StateInService, PartsOut: modelsOut(
				partOut("y", "first", 10, 90), partOut("z", "gone", 1, 2))}),
			reportOf("b", 1, Status{Line: "m", State: health.StateInService, PartsOut: modelsOut(
				partOut("x", "else", 3, 4), partOut("y", "second", 20, 80))}),
			reportOf("c", 1, Status{Line: "m", State: health.StateInService, PartsOut: modelsOut(partOut("y", "between", 15, 70))}),
		}, []Status{{Line: "m", State: health.StateInService, PartsOut: modelsOut(
			partOut("x", "else", 3, 4), partOut("y", "second", 10, 90), partOut("z", "gone", 1, 2))}}},
		{"forms out and models cooling", []Report{
			reportOf("a", 1, Status{Line: "m", State: health.StateInService, PartsOut: health.PartsOut{
				FormsOut:      []health.PartOut{{Model: "x", Form: "chat", Since: 3, Until: 9}},
				ModelsCooling: []health.PartOut{partOut("y", "slow", 1, 5)}}}),
			reportOf("b", 1, Status{Line: "m", State: health.StateInService, PartsOut: health.PartsOut{
				FormsOut: []health.PartOut{{Model: "x", Form: "chat", Tools: true, Since: 1, Until: 2},
					{Model: "x", Form: "chat", Since: 2, Until: 8}},
				ModelsCooling: []health.PartOut{partOut("y", "slower", 2, 4)}}}),
		}, []Status{{Line: "m", State: health.StateInService, PartsOut: health.PartsOut{
			FormsOut: []health.PartOut{{Model: "x", Form: "chat", Since: 2, Until: 9},
				{Model: "x", Form: "chat", Tools: true, Since: 1, Until: 2}},
			ModelsCooling: []health.PartOut{partOut("y", "slower", 1, 5)}}}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			combined := Join(tt.reports)
			states, nodes, statuses := []Status{}, 0, 0
			for _, j := range combined {
				j.Status.ModelStates = nil // see TestModelStates
				states = append(states, j.Status)
				nodes += len(j.Nodes)
				for _, n := range j.Nodes {
					if n.Line != j.Line {
						t.Errorf("line %s has a node's state of another line: %+v", j.Line, n)
					}
				}
			}
			if !reflect.DeepEqual(states, tt.want) {
				t.Errorf("joined %+v\nwant %+v", states, tt.want)
			}
			for _, r := range tt.reports {
				statuses += len(r.Statuses)
			}
			if nodes != statuses {
				t.Errorf("the joined lines have %d states of nodes, want %d", nodes, statuses)
			}
		})
	}
}

// TestModelStates checks that a joined model has the state, cause and times of the node on which it
// is out.
func TestModelStates(t *testing.T) {
	t.Parallel()
	states := func(parts health.PartsOut, models ...string) Status {
		return Status{Line: "m", State: health.StateInService, PartsOut: parts, ModelStates: modelStates(models, parts)}
	}
	combined := Join([]Report{
		{Epoch: "a", AtMS: 1, Statuses: []Status{states(health.PartsOut{}, "x", "y")}},
		{Epoch: "b", AtMS: 1, Statuses: []Status{states(health.PartsOut{
			ModelsOut:     []health.PartOut{partOut("y", "gone", 1, 2)},
			ModelsCooling: []health.PartOut{partOut("w", "slow", 5, 6)},
			FormsOut:      []health.PartOut{{Model: "z", Form: "chat", Cause: "no", Since: 3, Until: 4}},
		}, "w", "x", "y", "z")}},
	})
	want := []ModelStatus{
		{Model: "w", State: health.StateCooling, Cause: "slow", Since: 5, Until: 6},
		{Model: "x", State: health.StateInService},
		{Model: "y", State: health.StateModelOut, Cause: "gone", Since: 1, Until: 2},
		{Model: "z", State: health.StateInService},
		{Model: "z", Form: "chat", State: health.StateFormOut, Cause: "no", Since: 3, Until: 4},
	}
	if got := combined[0].ModelStates; !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// TestWorstState checks that the worse state of every pair wins, in either order of the nodes.
func TestWorstState(t *testing.T) {
	t.Parallel()
	order := []string{stateDisabled, stateOutOfService, stateDrained, health.StateCredentialsOut, health.StateCircuitOpen,
		health.StateHalfOpen, health.StateCooling,
		"a_newer_word", health.StateInService}
	for i, worse := range order {
		for _, better := range order[i:] {
			for _, pair := range [][2]string{{worse, better}, {better, worse}} {
				combined := Join([]Report{
					{Epoch: "a", Statuses: []Status{{Line: "m", State: pair[0]}}},
					{Epoch: "b", Statuses: []Status{{Line: "m", State: pair[1]}}},
				})
				if got := combined[0].Status.State; got != worse {
					t.Errorf("states %v are joined to %s, want %s", pair, got, worse)
				}
			}
		}
	}
}

// TestJoinedJSON checks the JSON of a joined line and its nodes.
func TestJoinedJSON(t *testing.T) {
	t.Parallel()
	raw, err := json.Marshal(Join([]Report{{Epoch: "node_a", AtMS: 5999, Statuses: []Status{{Line: "main", Provider: "p",
		State: health.StateCooling, CoolingUntil: 9,
		Granted: 2, PartsOut: modelsOut(partOut("swift-1", "why", 1, 2))}}}}))
	if err != nil {
		t.Fatal(err)
	}
	head := `"id":"main","provider":"p","state":"cooling","cooling_until":9,"models_out":[` +
		`{"model":"swift-1","cause":"why","since":1,"until":2}],`
	models := `"model_states":[{"model":"swift-1","state":"model_out","cause":"why","since":1,"until":2}],`
	tail := `"in_flight":0,"max_concurrent":0,"granted":2,"recent_attempts":0,"success_rate":null,"first_byte_ms":null`
	if want := `[{` + head + models + tail + `,"nodes":[{"node":"node_a","at":5,` + head + tail + `}]}]`; string(raw) != want {
		t.Errorf("%s\nwant %s", raw, want)
	}
}
