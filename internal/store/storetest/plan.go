package storetest

import (
	"strings"
	"testing"

	"tollgate/internal/store"
)

// Plan returns the steps by which the database would run a statement.
func Plan(t testing.TB, tx *store.Tx, text string, args ...any) []string {
	t.Helper()
	explain := "EXPLAIN "
	if tx.Dialect() == store.SQLite {
		explain = "EXPLAIN QUERY PLAN "
	}
	rows, err := tx.Query(explain+text, args...)
	if err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		t.Fatal(err)
	}
	var plan []string
	for rows.Next() {
		cells := make([]any, len(columns))
		var step string
		for i := range cells {
			cells[i] = new(any)
		}
		cells[len(cells)-1] = &step
		if err := rows.Scan(cells...); err != nil {
			t.Fatal(err)
		}
		plan = append(plan, step)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return plan
}

// ReadsAll reports whether a step of a plan reads a whole table. A SCAN by an index, in a list's
// order, stops at the list's end.
func ReadsAll(step string) bool {
	step = strings.TrimSpace(step)
	return strings.Contains(step, "Seq Scan on ") || (strings.HasPrefix(step, "SCAN ") && !strings.Contains(step, " USING INDEX ") &&
		!strings.Contains(step, " USING COVERING INDEX ") && !strings.HasPrefix(step, "SCAN json_each"))
}

// WalksIndex checks that a statement reads the tables by an index in the order of its result: it
// reads no whole table and sorts nothing. The tables must be filled and analyzed.
func WalksIndex(t testing.TB, tx *store.Tx, name, text string, args ...any) {
	t.Helper()
	plan := Plan(t, tx, text, args...)
	for i, step := range plan {
		if ReadsAll(step) || sorts(plan[i:]) || strings.Contains(step, "USE TEMP B-TREE") {
			t.Errorf("%s: %s\n%s\n%s", name, step, text, strings.Join(plan, "\n"))
		}
	}
}

// sorts reports whether the first step of a plan of PostgreSQL sorts rows. A statement that no
// partition can match sorts the empty Result in the second line after the step.
func sorts(plan []string) bool {
	step := strings.TrimPrefix(strings.TrimSpace(plan[0]), "->  ")
	if !strings.HasPrefix(step, "Sort  (") && !strings.HasPrefix(step, "Incremental Sort  (") {
		return false
	}
	return len(plan) < 3 || !strings.Contains(plan[2], "->  Result ")
}
