package exchange

import (
	"strings"
	"testing"
)

// TestIsTicket tests which task IDs are safe in an address.
func TestIsTicket(t *testing.T) {
	t.Parallel()
	for id, want := range map[string]bool{
		"cgt-20260101-abcde": true, "0385dc79-5ff8-4d82-bcb6-7f2a": true, "task_1.2:3": true, strings.Repeat("a", maxTicket): true,
		"": false, ".": false, "..": false, "a/b": false, "a?b": false, "a#b": false, "%2e%2e": false, "a b": false, "ä": false,
		strings.Repeat("a", maxTicket+1): false,
	} {
		if IsTicket(id) != want {
			t.Errorf("IsTicket(%q) = %t, want %t", id, !want, want)
		}
	}
}

// TestTaskUnknown tests that a 404 or 410 means an unknown task, unless the body is a web page.
func TestTaskUnknown(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		status int
		body   string
		want   bool
	}{
		{404, `{"error":{}}`, true}, {410, `{}`, true}, {404, ``, true},
		{404, ` <html>`, false}, {400, `{}`, false}, {200, `{}`, false}, {500, ``, false},
	} {
		if got := (&Reply{Status: tt.status, Body: []byte(tt.body)}).TaskUnknown(); got != tt.want {
			t.Errorf("TaskUnknown of %d %q = %t, want %t", tt.status, tt.body, got, tt.want)
		}
	}
}
