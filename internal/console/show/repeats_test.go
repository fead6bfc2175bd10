package show

import (
	"slices"
	"testing"

	"tollgate/internal/ledger/requestlog"
)

// TestGroupRepeats checks that only consecutive failures of one program are grouped.
func TestGroupRepeats(t *testing.T) {
	t.Parallel()
	failed := requestlog.Receipt{Key: "k", Model: "m", Status: 503, Code: "service_unavailable"}
	other := failed
	other.Key = "other"
	billed := failed
	billed.Cost = 1
	answered := requestlog.Receipt{Key: "k", Model: "m", Status: 200}
	list := []requestlog.Receipt{failed, failed, failed, answered, answered, failed, other, other, billed, billed}
	counts := func(each bool) (n []int) {
		for _, g := range GroupRepeats(list, each) {
			n = append(n, g.N)
		}
		return n
	}
	if got, want := counts(false), []int{3, 1, 1, 1, 2, 1, 1}; !slices.Equal(got, want) {
		t.Errorf("groups of %v, want %v", got, want)
	}
	if got := len(counts(true)); got != len(list) {
		t.Errorf("%d groups of each request, want %d", got, len(list))
	}
	if got, want := GroupRepeats(list, false)[0].Status().Label, "503 service unavailable, 3 times"; got.String() != want {
		t.Errorf("label %q, want %q", got, want)
	}
}
