package errormap

import (
	"testing"
	"time"

	"tollgate/internal/gatewaytest/scene"
)

// shortestCool is the shortest pause after a rate limit.
const shortestCool = 5 * time.Second

// state returns the state of one line. The list of all lines is too long to read for each row.
func (f *fixture) state(t *testing.T, line string) scene.LineState {
	t.Helper()
	query := "/lines?limit=1"
	if previous := f.previous[line]; previous != "" {
		query += "&after=" + previous
	}
	var page struct{ Data []scene.LineState }
	f.Process.Admin("GET", query, nil, &page)
	if len(page.Data) != 1 || page.Data[0].ID != line {
		t.Fatalf("GET %s: %+v, want line %s", query, page, line)
	}
	return page.Data[0]
}

// checkHealth checks the state of a line after one request at the time sent.
func (f *fixture) checkHealth(t *testing.T, e entry, line string, sent time.Time) {
	t.Helper()
	s := f.state(t, line)
	switch e.want.health { // the gateway may probe the line first
	case cred:
		scene.Eventually(t, line+" is credentials_out", func() bool { s = f.state(t, line); return s.State == "credentials_out" })
	case pair:
		scene.Eventually(t, line+" lacks its model", func() bool { s = f.state(t, line); return len(s.ModelsOut) == 1 })
	}
	if e.want.health == cool && s.State == "in_service" && time.Since(sent) > shortestCool {
		return // the pause is over on a slow machine
	}
	attempts, rate, state := 1, 0.0, "in_service"
	switch e.want.health {
	case none:
		attempts = 0
	case good:
		rate = 1
	case half:
		rate = 0.5
	case cool:
		state = "cooling"
	case cred:
		state = "credentials_out"
	}
	if e.want.health == broke { // the code decides the rest
		if s.SuccessRate == nil || *s.SuccessRate != 0 {
			t.Errorf("line: %s; want a success rate of 0", s)
		}
		return
	}
	if s.State != state {
		t.Errorf("line: %s; want the state %s", s, state)
	}
	switch out := len(s.ModelsOut) == 1 && s.ModelsOut[0].Model == line; {
	case e.want.health == pair && !out:
		t.Errorf("line: %s; want its model out of service", s)
	case e.want.health != pair && len(s.ModelsOut) > 0:
		t.Errorf("line: %s; want no model out of service", s)
	case e.want.health == cool && (len(s.CoolingUntil) == 0 || string(s.CoolingUntil) == "null" || string(s.CoolingUntil) == "0"):
		t.Errorf("line: %s; want a time in cooling_until", s)
	}
	switch e.want.health {
	case none, good, fail, half:
		if s.Attempts != attempts || (s.SuccessRate != nil) != (attempts > 0) || attempts > 0 && *s.SuccessRate != rate {
			t.Errorf("line: %s; want %d attempts with a rate of %.1f", s, attempts, rate)
		}
	}
}
