package line

import (
	"context"
	"maps"
	"testing"

	"tollgate/internal/catalog"
	"tollgate/internal/line/health"
	"tollgate/internal/store"
	"tollgate/internal/store/storetest"
)

// view returns the result of a read and fails the test on an error.
func view[T any](t *testing.T, db *store.DB, read func(tx *store.Tx) (T, error)) (result T) {
	t.Helper()
	result, err := store.Read(context.Background(), db, read)
	if err != nil {
		t.Fatal(err)
	}
	return result
}

// count returns the result of a query for a number.
func count(t *testing.T, db *store.DB, query string) int {
	t.Helper()
	return view(t, db, func(tx *store.Tx) (n int, err error) { err = tx.QueryRow(query).Scan(&n); return n, err })
}

// TestControls checks the decisions after drains and resumes of lines.
func TestControls(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		for _, step := range []struct {
			name string
			do   func(tx *store.Tx) error
			want map[string]control
		}{
			{"no decision", func(*store.Tx) error { return nil }, map[string]control{}},
			{"drain", func(tx *store.Tx) error { return DrainTx(tx, "a") }, map[string]control{"a": {drained: true}}},
			{"drain again", func(tx *store.Tx) error { return DrainTx(tx, "a") }, map[string]control{"a": {drained: true}}},
			{"resume another", func(tx *store.Tx) error { return ResumeTx(tx, "b") }, map[string]control{"a": {drained: true}, "b": {resumes: 1}}},
			{"resume", func(tx *store.Tx) error { return ResumeTx(tx, "a") }, map[string]control{"a": {resumes: 1}, "b": {resumes: 1}}},
			{"resume again", func(tx *store.Tx) error { return ResumeTx(tx, "a") }, map[string]control{"a": {resumes: 2}, "b": {resumes: 1}}},
			{"a drain keeps the resumes", func(tx *store.Tx) error { return DrainTx(tx, "a") },
				map[string]control{"a": {true, 2}, "b": {resumes: 1}}},
		} {
			storetest.Update(t, db, step.do)
			got := view(t, db, controlsTx)
			if !maps.Equal(got, step.want) {
				t.Errorf("%s: %v, want %v", step.name, got, step.want)
			}
		}
	})
}

// TestOperatorStatus checks the states of enabled, disabled and drained lines.
func TestOperatorStatus(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		storetest.Update(t, db, func(tx *store.Tx) error { return DrainTx(tx, "drained") })
		for id, want := range map[string]string{"free": health.StateInService, "drained": stateDrained} {
			for enabled, want := range map[bool]string{true: want, false: stateDisabled} {
				got := view(t, db, func(tx *store.Tx) (Status, error) {
					return OperatorStatusTx(tx, catalog.LineSpec{ID: id, Provider: "fake", MaxConcurrent: 7, Enabled: enabled})
				})
				if got.State != want || got.Line != id || got.Provider != "fake" || got.MaxConcurrent != 7 || got.SuccessRate != nil ||
					(got.Cause != "") != (want == stateDrained) {
					t.Errorf("%+v, want %s", got, want)
				}
			}
		}
	})
}
