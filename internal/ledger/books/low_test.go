package books

import (
	"testing"

	"pgregory.net/rapid"

	"tollgate/internal/money"
)

// TestLowIsToldOnceADrop moves a balance up and down: a charge or take-back that brings the balance
// below the level is announced once, until a credit has brought it above.
func TestLowIsToldOnceADrop(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		level := money.Amount(rapid.Int64Range(-5, 5).Draw(t, "level"))
		balance := money.Amount(rapid.Int64Range(-10, 10).Draw(t, "balance"))
		row := Level{Set: true, Amount: level, Armed: balance >= level}
		heard := balance < level
		for range rapid.IntRange(1, 30).Draw(t, "moves") {
			before := balance
			balance += money.Amount(rapid.Int64Range(-4, 4).Draw(t, "move"))
			told := row.Drops(before, balance)
			armed := row.Rises(before, balance)
			if told && armed {
				t.Fatal("a move is both a drop and a rise")
			}
			want := balance < before && balance < level && !heard
			if told != want {
				t.Fatalf("from %d to %d at level %d: told %t, want %t", before, balance, level, told, want)
			}
			if told {
				heard = true
			}
			if balance > before && balance > level {
				heard = false
			}
		}
	})
}
