package catalog

import "testing"

// TestAllowsFlag checks that a line gets a flag only if the catalog's limit is as high as the
// flag's, in any spelling and for later dates and sizes.
func TestAllowsFlag(t *testing.T) {
	t.Parallel()
	small := &Model{ContextWindow: 200_000, MaxOutputTokens: 64_000}
	large := &Model{ContextWindow: 1_000_000, MaxOutputTokens: 128_000}
	for flag, want := range map[string][2]bool{
		"context-1m-2025-08-07":                    {false, true},
		"context-1m-2027-01-01":                    {false, true},
		"context-1m":                               {false, true},
		" Context-1M-2025-08-07 ":                  {false, true},
		"context-2m-2026-12-01":                    {false, false},
		"context-500k-2026-12-01":                  {false, true},
		"context-200k-2026-12-01":                  {true, true},
		"output-128k-2025-02-19":                   {false, true},
		"output-300k-2026-03-24":                   {false, false},
		"output-64k-2026-03-24":                    {true, true},
		"context-management-2025-06-27":            {true, true},
		"interleaved-thinking-2025-05-14":          {true, true},
		"model-context-window-exceeded-2025-08-26": {true, true},
		"output-config-2026-01-01":                 {true, true},
		"claude-code-20250219":                     {true, true},
		"":                                         {true, true},
	} {
		if got := [2]bool{small.AllowsFlag(flag), large.AllowsFlag(flag)}; got != want {
			t.Errorf("AllowsFlag(%q) of the small and the large model = %v, want %v", flag, got, want)
		}
	}
}
