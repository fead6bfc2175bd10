package secret

import (
	"fmt"
	"strings"
	"testing"
)

// TestKeysAreNotShown tests that printing a key does not show its value, that the value does not
// contain the mark, and that only a long value without spaces and quotes has a hint.
func TestKeysAreNotShown(t *testing.T) {
	t.Parallel()
	for value, hint := range map[string]string{
		"sk-proj-0123456789abcdefWXYZ": "…WXYZ", "sk-short-key": "", "{\"type\": \"service_account\"}": "", "": "",
	} {
		keys, why := Keys([]string{"${KEY}"}, func(string) (string, bool) { return value, true })
		if value == "" {
			if why == "" || keys != nil {
				t.Errorf("a key without a value: got %v, reason %q", keys, why)
			}
			continue
		}
		k := keys[0]
		if k.Value() != value || k.Hint() != hint || len(k.Fingerprint()) != 16 || strings.Contains(value, k.Fingerprint()) {
			t.Errorf("%s: hint %q, mark %q", value, k.Hint(), k.Fingerprint())
		}
		for _, format := range []string{"%v", "%+v", "%#v"} {
			if shown := fmt.Sprintf(format, k); strings.Contains(shown, value) {
				t.Errorf("%s shows %s", format, shown)
			}
		}
	}
}
