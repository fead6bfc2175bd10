package api

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"tollgate/internal/catalog"
	"tollgate/internal/fault"
	"tollgate/internal/wire"
)

// TestLimitFlagsAreDropped checks that flags of the client that exceed the catalog's limits are not
// forwarded to a line.
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

// TestUnsupportedPathsListEndpoints checks that a path of the official clients that the gateway
// does not support gets a 404 whose message names an alternative.
func TestUnsupportedPathsListEndpoints(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]string{
		"/v1/embeddings":                       "Embeddings are not offered here. The endpoints are chat",
		"/v1/audio/speech":                     "The endpoints are chat",
		"/v1/files/file-1/content":             "as data addresses",
		"/v1/batches":                          "one by one",
		"/v1/assistants/":                      "POST /v1/responses",
		"/v1/threads/t/runs":                   "POST /v1/responses",
		"/v1/fine_tuning/jobs":                 "Fine-tuning is not offered here",
		"/v1/moderations":                      "The endpoints are chat",
		"/v1/completions":                      "POST /v1/chat/completions takes",
		"/v1/vector_stores/v/search":           "The endpoints are chat",
		"/v1/responses/resp_1":                 "nothing is stored here",
		"/v1/videos":                           "POST /v1/videos/generations",
		"/v1/agents/sessions/s/turns":          "Hosted agents are not offered here. POST /v1/responses",
		"/v1/chatkit/sessions":                 "POST /v1/responses",
		"/v1/live/sessions":                    "with `stream`",
		"/v1/projects/p/api_keys":              "GET /v1/usage",
		"/v1/webhook_endpoints":                "`callback_url`",
		"/v1/decisions":                        "The endpoints are chat",
		"/v1/rerank":                           "Reranking is not offered here. The endpoints are chat",
		"/native/v1/agents":                    "POST /native/v1/messages takes",
		"/native/v1/sessions/s/events/stream":  "POST /native/v1/messages takes",
		"/native/v1/memory_stores/m/memories":  "POST /native/v1/messages takes",
		"/native/v1/deployment_runs":           "The endpoints are chat",
		"/v1/messages":                         "POST /native/v1/messages",
		"/native/v1/complete":                  "POST /native/v1/messages takes",
		"/native/v1/messages/batches/b/cancel": "one by one",
		"/native/v1/chat/completions":          "ends in /v1",
		"/v1/embeddingsx":                      "Check the path and the base address",
		"/v2/embeddings":                       "Check the path and the base address",
		"/v3/chat/completions":                 "Check the path and the base address",
		"/chat/completions":                    "Use /v1/chat/completions: the base address of your client must end in /v1.",
		"/models/":                             "Use /v1/models: the base",
		"/v1/v1/chat/completions":              "Use /v1/chat/completions: the base",
		"/messages":                            "Use /native/v1/messages: the base address of your client must end in /native.",
		"/native/messages":                     "Use /native/v1/messages: the base",
		"/native/v1/v1/messages":               "Use /native/v1/messages: the base",
		"/native/v1/v1/messages/count_tokens":  "Use /native/v1/messages/count_tokens: the base",
		"/native/models":                       "Use /native/v1/models: the base",
	} {
		f := fault.Of(notFound(httptest.NewRequest("POST", path, nil)))
		if f.Code != fault.NotFound || f.Param != "" || !strings.Contains(f.Message(), want) {
			t.Errorf("%s: %s %q, want a message with %q", path, f.Code, f.Message(), want)
		}
	}
}

// TestUnsupportedPathsNameEndpoints checks that each alternative in a message is a route, and that
// no unsupported path is a route.
func TestUnsupportedPathsNameEndpoints(t *testing.T) {
	t.Parallel()
	routes := Routes()
	for _, below := range basePaths {
		for _, p := range below.paths {
			if !slices.ContainsFunc(routes, func(route string) bool { return strings.HasSuffix(route, " "+below.base+p) }) {
				t.Errorf("basePaths has %s, which is not a route", below.base+p)
			}
		}
	}
	for _, u := range unsupportedPaths {
		if slices.ContainsFunc(routes, func(route string) bool { return strings.HasSuffix(route, " "+u.path) }) &&
			!strings.HasPrefix(u.subject, "Stored") {
			t.Errorf("unsupportedPaths has %s, which is a route", u.path)
		}
		words := strings.FieldsFunc(u.instead+" "+offeredEndpoints, func(r rune) bool { return strings.ContainsRune(" ,;:().`", r) })
		for i, word := range words {
			if (word == "POST" || word == "GET") && !slices.Contains(routes, word+" "+words[i+1]) {
				t.Errorf("the message for %s names %s %s, which is not a route", u.path, word, words[i+1])
			}
		}
	}
}
