package app

import (
	"fmt"
	"testing"
)

// TestUnknownMembersAreBounded checks that each member is logged once a day for each line, and that
// a provider cannot create unlimited labels.
func TestUnknownMembersAreBounded(t *testing.T) {
	t.Parallel()
	u := &unknownMembers{lines: map[string]map[string]string{}}
	for i, want := range []bool{true, false, false} {
		if label, log := u.note("a", "critic", "2026-11-28"); label != "critic" || log != want {
			t.Errorf("note %d: %s, %v", i, label, log)
		}
	}
	if _, log := u.note("b", "critic", "2026-11-28"); !log {
		t.Error("the member of another line is not logged")
	}
	if _, log := u.note("a", "critic", "2026-11-29"); !log {
		t.Error("the member is not logged on the next day")
	}
	labels, logged := map[string]bool{}, 0
	for i := range 1000 {
		label, log := u.note("c", fmt.Sprint("m", i), "2026-11-28")
		labels[label] = true
		if log {
			logged++
		}
	}
	if len(labels) != maxUnknownMembers+1 || logged != maxUnknownMembers+1 || !labels["other"] {
		t.Errorf("%d labels, %d lines of log", len(labels), logged)
	}
}
