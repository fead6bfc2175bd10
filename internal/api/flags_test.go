package api

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"tollgate/internal/catalog"
	"tollgate/internal/wire"
)

// TestLimitFlagsAreDropped checks that a line does not get the client's flags that exceed the
// catalog's limits.
func TestLimitFlagsAreDropped(t *testing.T) {
	t.Parallel()
	small := &catalog.Model{ContextWindow: 200_000, MaxOutputTokens: 64_000}
	large := &catalog.Model{ContextWindow: 1_000_000, MaxOutputTokens: 64_000}
	for _, test := range []struct {
		model      *catalog.Model
		sent, want []string
		dropped    string
	}{
		{small, []string{"context-1m-2025-08-07"}, nil, "anthropic-beta:context-1m-2025-08-07"},
		{small, []string{"a-1, context-1m-2025-08-07 ,b-2"}, []string{"a-1,b-2"}, "anthropic-beta:context-1m-2025-08-07"},
		{small, []string{"a-1", "CONTEXT-1M-2025-08-07", "b-2"}, []string{"a-1", "b-2"}, "anthropic-beta:CONTEXT-1M-2025-08-07"},
		{small, []string{"output-300k-2026-03-24,context-1m-2025-08-07"}, nil,
			"anthropic-beta:output-300k-2026-03-24 anthropic-beta:context-1m-2025-08-07"},
		{large, []string{"a-1, context-1m-2025-08-07"}, []string{"a-1, context-1m-2025-08-07"}, ""},
		{large, []string{"context-1m-2025-08-07,output-128k-2025-02-19"}, []string{"context-1m-2025-08-07"},
			"anthropic-beta:output-128k-2025-02-19"},
		{small, []string{"a-1, b-2,,"}, []string{"a-1, b-2,,"}, ""},
		{small, nil, nil, ""},
	} {
		h := http.Header{"Anthropic-Beta": test.sent, "Anthropic-Version": {"2023-06-01"}}
		got, dropped := forwardedHeaders(h, wire.FormMessages, test.model)
		if !slices.Equal(got["Anthropic-Beta"], test.want) || got.Get("Anthropic-Version") == "" || strings.Join(dropped, " ") != test.dropped {
			t.Errorf("%q: %q, want %q; dropped %q", test.sent, got, test.want, dropped)
		}
	}
}
