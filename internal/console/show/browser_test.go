package show

import (
	"strings"
	"testing"
)

func TestBrowserName(t *testing.T) {
	t.Parallel()
	for agent, want := range map[string]string{
		"": "unnamed",
		"Mozilla/5.0 (Windows NT 10.0; Win64; x64; rv:136.0) Gecko/20100101 Firefox/136.0": "Firefox on Windows",
		"Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.3 " +
			"Safari/605.1.15": "Safari on macOS",
		"Mozilla/5.0 (iPhone; CPU iPhone OS 18_3 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) CriOS/134.0 Mobile/15E148 " +
			"Safari/604.1": "Chrome on iPhone",
		"Mozilla/5.0 (Linux; Android 10; K) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/134.0.0.0 Mobile Safari/537.36": "Chrome on Android",
		"Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/134.0.0.0 Safari/537.36 " +
			"Edg/134.0.0.0": "Edge on Windows",
		"Mozilla/5.0 (compatible; Orders/3.14; +https://orders.example)": "another program",
		"Mozilla/5.0 (X11; Linux x86_64) Konqueror/22":                   "another program on Linux",
		"curl/8.5.0":            "curl",
		"Test browser":          "Test browser",
		"(nothing)":             "another program",
		strings.Repeat("ä", 99): strings.Repeat("ä", 29) + "…",
	} {
		if got := browserName(agent).String(); got != want {
			t.Errorf("browserName(%q) = %q, want %q", agent, got, want)
		}
	}
}
