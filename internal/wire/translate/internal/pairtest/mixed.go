package pairtest

import (
	"math/rand/v2"
	"testing"
)

// RandomPieces returns up to limit pieces picked at random. Unlike random bytes, most such
// sequences have a meaning.
func RandomPieces(r *rand.Rand, pieces []string, limit int) []string {
	out := make([]string, r.IntN(limit+1))
	for i := range out {
		out[i] = pieces[r.IntN(len(pieces))]
	}
	return out
}

// EachSeed runs a test on many random sequences, the same in every run.
func EachSeed(t *testing.T, run func(t *testing.T, r *rand.Rand)) {
	t.Helper()
	for seed := range uint64(seeds) {
		run(t, rand.New(rand.NewPCG(seed, 1)))
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}
