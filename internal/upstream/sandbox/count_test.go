package sandbox

import (
	"strings"
	"testing"
)

// TestCountingNeedsNoMemory checks that counting a long text allocates no more than counting a
// short text. It is not parallel, because it measures the allocations of the process.
func TestCountingNeedsNoMemory(t *testing.T) {
	count := func(size int) float64 {
		body := []byte(`{"messages":[{"role":"user","content":"` + strings.Repeat(" ", size) + `"}],"tools":[]}`)
		return testing.AllocsPerRun(5, func() {
			if r, problem := readPrompt(body); problem != nil || r.prompt < size {
				t.Fatalf("%+v, %d tokens", problem, r.prompt)
			}
		})
	}
	if short, long := count(1<<10), count(4<<20); long > short+8 { // a growing slice takes dozens
		t.Errorf("%v allocations for a long text, %v for a short one", long, short)
	}
}
