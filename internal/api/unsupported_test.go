package api

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"tollgate/internal/catalog"
	"tollgate/internal/fault"
	"tollgate/internal/httpapi"
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

// TestUnknownPaths checks that the 404 of an unknown path names a path that is offered: for a path
// of the official clients an alternative, for a wrong base address the right one.
func TestUnknownPaths(t *testing.T) {
	t.Parallel()
	known := newKnownPaths(new(server).routes())
	routes := Routes()
	for path, want := range map[string]string{
		"/v1/audio/voices":                       "Lists of voices are not offered here. The endpoints are POST /v1/chat/completions",
		"/v1/files/file-1/content":               "as data addresses",
		"/v1/batches":                            "one by one",
		"/v1/assistants/":                        "POST /v1/responses",
		"/v1/chat/completions/chatcmpl-1":        "nothing is stored here",
		"/v1/responses/compact":                  "Compaction of conversations is not offered here. POST /v1/responses",
		"/v1/responses/resp_1/cancel":            "Background responses are not offered here. To cancel a response, close",
		"/v1/videos":                             "POST /v1/videos/generations",
		"/v1/agents/sessions":                    "Hosted agents are not offered here. POST /v1/responses",
		"/v1/agents/sessions/s/turns":            "Hosted agents are not offered here. POST /v1/responses",
		"/v1/chatkit/sessions":                   "POST /v1/responses",
		"/v1/live/sessions":                      "with `stream`",
		"/v1/projects/p/api_keys":                "GET /v1/usage",
		"/v1/webhook_endpoints":                  "`callback_url`",
		"/v1/decisions":                          "The endpoints are POST /v1/chat/completions",
		"/v1beta/interactions":                   "Gemini's interactions are not offered here. POST /v1/responses",
		"/v1beta/models/m:embedContent":          "POST /v1beta/models/{id}:generateContent",
		"/v1beta/files":                          "Stored files are not offered here. POST /v1beta/models/{id}:generateContent",
		"/native/v1/agents":                      "POST /native/v1/messages takes",
		"/native/v1/sessions/s/events/stream":    "POST /native/v1/messages takes",
		"/native/v1/memory_stores/m/memories":    "POST /native/v1/messages takes",
		"/native/v1/deployment_runs":             "The endpoints are POST /v1/chat/completions",
		"/native/v1/complete":                    "POST /native/v1/messages takes",
		"/native/v1/messages/batches/b/cancel":   "one by one",
		"/v1/evalsx":                             "base address of your client. The endpoints are POST /v1/chat/completions",
		"/native":                                "Check the path and the base address",
		"/":                                      "Check the path and the base address",
		"*":                                      "Check the path and the base address",
		"/chat/completions":                      "Use /v1/chat/completions: the base address of your client must end in /v1.",
		"/models/":                               "Use /v1/models: the base address of your client must end in /v1.",
		"/v3/chat/completions":                   "Use /v1/chat/completions: the base address of your client must end in /v1.",
		"/native/chat/completions":               "Use /v1/chat/completions: the base address of your client must end in /v1.",
		"/openai/deployments/m/chat/completions": "Use /v1/chat/completions: the base address of your client must end in /v1.",
		"/v1/chat/completions/chat/completions":  "Use /v1/chat/completions: the base address of your client must end in /v1.",
		"/v1/v1/chat/completions": "Use /v1/chat/completions: the base address of your client must end in /v1 " +
			"if the client appends /chat/completions, and before /v1 if it appends /v1/chat/completions.",
		"/native/v1/chat/completions": "Use /v1/chat/completions: the base address of your client must end in /v1 " +
			"if the client appends /chat/completions, and before /v1 if it appends /v1/chat/completions.",
		"/messages":        "Use /native/v1/messages: the base address of your client must end in /native/v1.",
		"/native/messages": "Use /native/v1/messages: the base address of your client must end in /native/v1.",
		"/v1/messages": "Use /native/v1/messages: the base address of your client must end in /native/v1 " +
			"if the client appends /messages, and in /native if it appends /v1/messages.",
		"/native/v1/v1/messages/count_tokens": "Use /native/v1/messages/count_tokens: the base address of your client must end in /native/v1 " +
			"if the client appends /messages/count_tokens, and in /native if it appends /v1/messages/count_tokens.",
		"/native/models":            "Use /native/v1/models: the base address of your client must end in /native/v1.",
		"//v1/chat/completions":     "Use /v1/chat/completions: remove the slash at the end of your client's base address.",
		"/v1//chat/completions":     "Use /v1/chat/completions: remove the slash at the end of your client's base address.",
		"/native//v1/messages":      "Use /native/v1/messages: remove the slash at the end of your client's base address.",
		"/v1/chat/completions/":     "Use /v1/chat/completions, without a slash at its end.",
		"/v1/images/jobs/job_1/":    "Use /v1/images/jobs/job_1, without a slash at its end.",
		"/v1/x/../chat/completions": "Use /v1/chat/completions.",
		"//chat/completions":        "Use /v1/chat/completions: the base address of your client must end in /v1.",
	} {
		r := httptest.NewRequest("POST", "/", nil)
		r.URL.Path = path
		f := fault.Of(known.notFound(r))
		if f.Code != fault.NotFound || f.Param != "" || !strings.Contains(f.Message(), want) {
			t.Errorf("%s: %s %q, want a message with %q", path, f.Code, f.Message(), want)
		}
		_, advice, _ := strings.Cut(f.Message(), ". ")
		if !slices.ContainsFunc(routes, func(route string) bool { return strings.Contains(advice, route[strings.Index(route, "/"):]) }) &&
			path != "/v1/images/jobs/job_1/" {
			t.Errorf("%s: %q names no path that is offered", path, f.Message())
		}
	}
}

// TestUnsupportedPathsNameEndpoints checks that each alternative in a message is a route, and that
// no unsupported path is a route.
func TestUnsupportedPathsNameEndpoints(t *testing.T) {
	t.Parallel()
	routes := Routes()
	for _, u := range unsupportedPaths {
		below := strings.HasPrefix(u.subject, "Stored") || strings.HasPrefix(u.subject, "Background") // only paths below the route
		if !below && slices.ContainsFunc(routes, func(route string) bool { return strings.HasSuffix(route, " "+u.path) }) {
			t.Errorf("unsupportedPaths has %s, which is a route", u.path)
		}
		words := strings.FieldsFunc(strings.ReplaceAll(u.instead, ": ", " "), func(r rune) bool { return strings.ContainsRune(" ,;().`", r) })
		for i, word := range words {
			if (word == "POST" || word == "GET") && !slices.Contains(routes, word+" "+words[i+1]) {
				t.Errorf("the message for %s names %s %s, which is not a route", u.path, word, words[i+1])
			}
		}
		if u.instead != "" && !slices.Contains(words, "POST") && !slices.Contains(words, "GET") {
			t.Errorf("the message for %s names no endpoint: %q", u.path, u.instead)
		}
	}
}

// TestWebSocketIsRefused checks that a WebSocket at the path of responses gets 426 without a key,
// and that other requests there do not.
func TestWebSocketIsRefused(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		method, path, upgrade string
		status                int
	}{
		{"GET", "/v1/responses", "websocket", 426},
		{"GET", "/v1/responses", "WebSocket", 426},
		{"GET", "/v1/responses", "", 405},
		{"GET", "/v1/responses", "h2c", 405},
		{"GET", "/v1/chat/completions", "websocket", 405},
		{"GET", "/v1/realtime", "websocket", 404},
	} {
		r := httptest.NewRequest(test.method, test.path, nil)
		if test.upgrade != "" {
			r.Header.Set("Connection", "Upgrade")
			r.Header.Set("Upgrade", test.upgrade)
		}
		w := httptest.NewRecorder()
		New(Options{Options: httpapi.Options{Log: slog.New(slog.DiscardHandler)}, MaxBody: 1 << 20}).ServeHTTP(w, r)
		if w.Code != test.status {
			t.Errorf("%s %s with Upgrade %q: %d, want %d: %s", test.method, test.path, test.upgrade, w.Code, test.status, w.Body)
		}
		refused := w.Header().Get("Upgrade") == "HTTP/1.1" && strings.Contains(w.Body.String(), `"code":"invalid_request"`) &&
			strings.Contains(w.Body.String(), "POST /v1/responses")
		if test.status == 426 && !refused {
			t.Errorf("%s %s: Upgrade %q, body %s", test.method, test.path, w.Header().Get("Upgrade"), w.Body)
		}
	}
}
