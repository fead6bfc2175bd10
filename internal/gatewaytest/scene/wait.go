package scene

import (
	"testing"
	"time"
)

// waitTimeout is long because the test machine may be busy.
const waitTimeout = 2 * time.Minute

// Eventually waits until condition returns true. It fails the test after waitTimeout; what
// describes the condition.
func Eventually(t testing.TB, what string, condition func() bool) {
	t.Helper()
	deadline := time.Now().Add(waitTimeout)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !condition() {
		if time.Now().After(deadline) {
			t.Fatalf("not within %v: %s", waitTimeout, what)
		}
		<-tick.C
	}
}

// Sleep waits before an event at a random time, such as a kill. For a condition, use Eventually.
func Sleep(d time.Duration) {
	timer := time.NewTimer(d)
	<-timer.C
}
