package books

import (
	"testing"

	"pgregory.net/rapid"

	"tollgate/internal/money"
)

// TestLowIsAnnouncedOncePerDrop moves a balance up and down: a charge or take-back that brings the
// balance below the level is announced once, until a credit brings the balance above the level.
func TestLowIsAnnouncedOncePerDrop(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		level := money.Amount(rapid.Int64Range(-5, 5).Draw(t, "level"))
		balance := money.Amount(rapid.Int64Range(-10, 10).Draw(t, "balance"))
		row := Level{Set: true, Amount: level, Armed: balance >= level}
		announcedBefore := balance < level
		for range rapid.IntRange(1, 30).Draw(t, "moves") {
			before := balance
			balance += money.Amount(rapid.Int64Range(-4, 4).Draw(t, "move"))
			announced := row.Drops(before, balance)
			armed := row.Rises(before, balance)
			if announced && armed {
				t.Fatal("a move is both a drop and a rise, want at most one")
			}
			want := balance < before && balance < level && !announcedBefore
			if announced != want {
				t.Fatalf("from %d to %d at level %d: announced %t, want %t", before, balance, level, announced, want)
			}
			if announced {
				announcedBefore = true
			}
			if balance > before && balance > level {
				announcedBefore = false
			}
		}
	})
}
