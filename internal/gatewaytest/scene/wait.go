package scene

import (
	"testing"
	"time"
)

// Eventually waits until something holds, for longer than it takes on a busy
// machine.
func Eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	deadline := time.Now().Add(30 * time.Second)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain: %s", what)
		}
		<-tick.C
	}
}

// Pass lets time pass before what a test does at a moment that it has drawn, as
// a kill. What has to be waited for is for Eventually.
func Pass(d time.Duration) {
	timer := time.NewTimer(d)
	<-timer.C
}
