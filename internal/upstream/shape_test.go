package upstream

import (
	"strings"
	"testing"
)

// TestClassifyHostileBodies checks that bodies that would exhaust a reader's stack or memory are
// classified by their status and their beginning.
func TestClassifyHostileBodies(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]string{
		"brackets":         strings.Repeat("[", 8<<20),
		"inside an error":  `{"error":{"message":"x","details":` + strings.Repeat(`[{"a":`, 1<<20),
		"nested and whole": `{"error":{"message":` + strings.Repeat("[", 5000) + strings.Repeat("]", 5000) + `}}`,
		"a long list":      `{"detail":[` + strings.Repeat(`{"type":"x"},`, 1<<20) + `{}]}`,
	} {
		for _, status := range []int{200, 400, 503} {
			f := Classify(status, "application/json", []byte(body), nil)
			if f != nil && f.Rejection != nil && f.Rejection.Message() == "x" {
				t.Errorf("%s, status %d: the body was read: %+v", name, status, f)
			}
			if f == nil && status != 200 {
				t.Errorf("%s: %d is not a failure", name, status)
			}
		}
	}
}
