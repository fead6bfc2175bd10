package secret

import (
	"fmt"
	"strings"
	"testing"
)

// TestKeysAreNotShown checks that printing a key does not show its value, that the fingerprint is
// not part of the value, and that only a long value without spaces and quotes has a hint.
func TestKeysAreNotShown(t *testing.T) {
	t.Parallel()
	for value, hint := range map[string]string{
		"sk-proj-0123456789abcdefWXYZ": "…WXYZ", "sk-short-key": "", "{\"type\": \"service_account\"}": "", "": "",
	} {
		keys, reason := Keys([]string{"${KEY}"}, func(string) (string, bool) { return value, true })
		if value == "" {
			if reason == "" || keys != nil {
				t.Errorf("Keys for an empty variable = %v, %q, want only a reason", keys, reason)
			}
			continue
		}
		k := keys[0]
		if k.Value() != value || k.Hint() != hint || len(k.Fingerprint()) != 16 || strings.Contains(value, k.Fingerprint()) {
			t.Errorf("key %s: hint %q, want %q; fingerprint %q, want 16 digits", value, k.Hint(), hint, k.Fingerprint())
		}
		for _, format := range []string{"%v", "%+v", "%#v"} {
			if text := fmt.Sprintf(format, k); strings.Contains(text, value) {
				t.Errorf("Sprintf(%q) = %s, want no value", format, text)
			}
		}
	}
}
