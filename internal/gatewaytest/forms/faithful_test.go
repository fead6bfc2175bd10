package forms

import (
	"bufio"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"tollgate/internal/gatewaytest/fakeprovider"
	"tollgate/internal/gatewaytest/scene"
)

// faithfulScenes compare requests and answers byte by byte if client and line have the same form. The
// gateway may only change the fields that it owns.
func faithfulScenes(t testing.TB) []scene.Scenario {
	return []scene.Scenario{faithfulMessagesScene(t), faithfulResponsesScene(t), eventByEventScene(t)}
}

// oddMessages is a request of the messages form with unusual but valid syntax.
const oddMessages = "{ \"max_tokens\" : 500,\n\t\"model\":\"%m\" , \"messages\":[ {\"role\":\"user\",\"content\":[{\"type\":\"text\"," +
	"\"text\":\"h\\u0069 \\ud83d\\ude00 é\",\"cache_control\":{\"type\":\"ephemeral\",\"ttl\":\"1h\"}}]},\n" +
	"{\"role\":\"assistant\",\"content\":[{\"type\":\"thinking\",\"thinking\":\"\",\"signature\":\"c2ln/+==\"}," +
	"{\"type\":\"redacted_thinking\",\"data\":\"eA==\"}," +
	"{\"type\":\"tool_use\",\"id\":\"toolu_1\",\"name\":\"t\",\"input\":{\"z\":1,\"a\":1.0,\"model\":\"%m\",\"Z\":2}}]}," +
	"{\"role\":\"user\",\"content\":[{\"type\":\"tool_result\",\"tool_use_id\":\"toolu_1\"}]}],\n" +
	"\"nobody_knows\":{\"b\":[],\"a\":null},\"temperature\":1.00,\"thinking\":{\"type\":\"adaptive\"}," +
	"\"tools\":[{\"type\":\"bash_20250124\",\"name\":\"bash\"}],\"top_k\":9007199254740993,\"stream\":%s }\r\n"

// oddAnswer is an answer of the messages form with unusual but valid syntax.
const oddAnswer = "{\"type\":\"message\", \"id\":\"msg_1\",\n \"role\":\"assistant\",\"model\" : \"%m\"," +
	"\"content\":[{\"type\":\"thinking\",\"thinking\":\"hm\",\"signature\":\"c2ln\"}," +
	"{\"type\":\"server_tool_use\",\"id\":\"srvtoolu_1\",\"name\":\"tool_search_tool_regex\",\"input\":{\"model\":\"vendor-odd\"}}," +
	"{\"type\":\"nobody_knows\",\"x\":1e3}," +
	"{\"type\":\"text\",\"text\":\"\\u0068i\",\"citations\":null}],\"stop_reason\":\"nobody_knows_either\"," +
	"\"stop_sequence\":null,\"container\":null," +
	"\"usage\":{\"input_tokens\":1000,\"output_tokens\":500,\"service_tier\":\"standard\",\"more\":{}}," +
	"\"context_management\":{\"applied_edits\":[]}}\n"

// withModel replaces %m by the name of a model.
func withModel(text, model string) string { return strings.ReplaceAll(text, "%m", model) }

// faithfulMessagesScene compares a complete answer of the messages form.
func faithfulMessagesScene(t testing.TB) scene.Scenario {
	reply := fakeprovider.JSON(200, withModel(oddAnswer, "vendor-odd"))
	reply.Header = map[string]string{"request-id": "req_theirs", "x-request-id": "req_theirs", "set-cookie": "a=b",
		"anthropic-ratelimit-requests-limit": "5",
		"anthropic-organization-id":          "org", "retry-after": "5", "x-should-retry": "true"}
	p := fakeprovider.New(t, reply, reply)
	return single{name: "messages",
		in: scene.Messages, line: "messages", model: "odd", provider: p, lineMore: map[string]any{"pass": []string{"nobody_knows"}},
	}.plays(func(t *testing.T, s scene.FormClient) {
		sent := withModel(strings.Replace(oddMessages, "%s", "false", 1), "odd")
		a := s.Post(scene.Messages.Path()+"?beta=true", sent, "anthropic-version", "2026-10-21", "anthropic-beta", "a-2026-01-01,b",
			"Cookie", "c=d",
			"User-Agent", "their-client/1", "x-custom", "secret", "anthropic-workspace-id", "w", "x-stainless-lang", "js",
			"Idempotency-Key", "theirs",
			"anthropic-dangerous-direct-browser-access", "true", "Accept-Language", "xx", "X-Forwarded-For", "192.0.2.1", "traceparent", "00-1-2-3")
		if want := withModel(oddAnswer, "odd"); a.Status != 200 || a.Raw != want {
			t.Fatalf("%d\n%s\nwant\n%s", a.Status, a.Raw, want)
		}
		if got := slices.Sorted(maps.Keys(a.Header)); strings.Join(got, " ") != "Content-Length Content-Type Date Request-Id X-Request-Id" {
			t.Errorf("the client got the headers %v", a.Header)
		}
		q := p.Requests()[0]
		// The gateway replaces only the top-level model.
		if want := strings.Replace(sent, `"model":"odd"`, `"model":"vendor-odd"`, 1); string(q.Body) != want {
			t.Errorf("the provider got\n%s\nwant\n%s", q.Body, want)
		}
		if q.URI != "/v1/messages" {
			t.Errorf("the provider got the path %s", q.URI)
		}
		wantHeader(t, q.Header, map[string]string{"Anthropic-Version": "2026-10-21", "Anthropic-Beta": "a-2026-01-01,b",
			"X-Api-Key": scene.Credential})
		s.CheckCharge(a, scene.AnswerCost)

		s.Ask(sent)
		wantHeader(t, p.Requests()[1].Header, map[string]string{"Anthropic-Version": "2023-06-01", "X-Api-Key": scene.Credential})
	})
}

// wantHeader checks the headers that a provider got, except the headers that the gateway sets itself.
func wantHeader(t *testing.T, got http.Header, want map[string]string) {
	t.Helper()
	for name := range got {
		switch name {
		case "Content-Type", "Accept", "Accept-Encoding", "Content-Length", "User-Agent", "Idempotency-Key":
			if value := got.Get(name); strings.Contains(value, "their") {
				t.Errorf("the provider got the client's %s: %s", name, value)
			}
			continue
		}
		if _, ok := want[name]; !ok {
			t.Errorf("the provider got the header %s: %s", name, got.Get(name))
		}
	}
	for name, value := range want {
		if strings.Join(got.Values(name), ",") != value {
			t.Errorf("%s is %q, want %q", name, got.Values(name), value)
		}
	}
}

// faithfulResponsesScene compares a complete answer of the responses form.
func faithfulResponsesScene(t testing.TB) scene.Scenario {
	const answer = "{ \"id\":\"resp_1\",\"object\":\"response\",\"created_at\":1,\"status\":\"completed\",\"model\":\"%m\"," +
		"\n\"nobody_knows\":1.0,\"output\":[" +
		"{\"type\":\"nobody_knows\",\"model\":\"x\"},{\"id\":\"msg_1\",\"type\":\"message\",\"role\":\"assistant\"," +
		"\"content\":[{\"type\":\"output_text\",\"text\":\"h\\u0069\",\"annotations\":[]}]}]," +
		"\"store\":%s, \"usage\":{\"input_tokens\":1000,\"output_tokens\":500,\"total_tokens\":1500}}"
	const request = "{ \"input\" : \"h\\u0069\",\"model\":\"%m\",\n\"store\":%s ,\"nobody_knows\":{\"b\":1,\"c\":2},\"temperature\":1.00}"
	fill := func(text, model, store string) string {
		return strings.Replace(withModel(text, model), "%s", store, 1)
	}
	reply := fakeprovider.JSON(200, fill(answer, "vendor-odder", "true"))
	p := fakeprovider.New(t, reply, reply)
	return single{name: "responses",
		in: scene.Responses, line: "responses", model: "odder", provider: p, lineMore: map[string]any{"pass": []string{"*"}},
	}.plays(func(t *testing.T, s scene.FormClient) {
		a := s.Post(scene.Responses.Path(), fill(request, "odder", "true"), "OpenAI-Organization", "theirs", "anthropic-beta", "x",
			"Cookie", "c=d")
		// The gateway stores the answer, and gives it an id.
		if want := strings.Replace(fill(answer, "odder", "true"), "resp_1", "resp_"+strings.TrimPrefix(a.ID(), "req_"), 1); a.Status != 200 ||
			a.Raw != want {
			t.Fatalf("%d\n%s\nwant\n%s", a.Status, a.Raw, want)
		}
		q := p.Requests()[0]
		if want := fill(request, "vendor-odder", "false"); string(q.Body) != want || q.URI != "/v1/responses" {
			t.Errorf("the provider got at %s\n%s\nwant\n%s", q.URI, q.Body, want)
		}
		wantHeader(t, q.Header, map[string]string{"Authorization": "Bearer " + scene.Credential})
		s.CheckCharge(a, scene.AnswerCost)

		a = s.Post(scene.Responses.Path(), fill(request, "odder", "false"))
		if want := fill(answer, "odder", "false"); a.Status != 200 || a.Raw != want {
			t.Fatalf("%d\n%s\nwant\n%s", a.Status, a.Raw, want)
		}
	})
}

// oddEvents returns the events of a stream of the messages form, with all kinds of events.
func oddEvents() []string {
	event := fakeprovider.NativeEvent
	return []string{
		fakeprovider.NativeStart(1000),
		fakeprovider.NativePing(),
		event("content_block_start", `"index":0,"content_block":{"type":"thinking","thinking":"","signature":""}`),
		event("content_block_delta", `"index":0,"delta":{"type":"thinking_delta","thinking":"h\u006d"}`),
		event("content_block_delta", `"index":0,"delta":{"type":"signature_delta","signature":"c2ln"}`),
		event("content_block_stop", `"index":0`),
		": a comment\n\n",
		event("nobody_knows", `"model":"vendor-flow","x":[1.0]`),
		event("content_block_start",
			`"index":1,"content_block":{"type":"server_tool_use","id":"srvtoolu_1","name":"tool_search_tool_regex","input":{}}`),
		event("content_block_delta", `"index":1,"delta":{"type":"input_json_delta","partial_json":""}`),
		event("content_block_delta", `"index":1,"delta":{"type":"input_json_delta","partial_json":"{\"a\":"}`),
		event("content_block_stop", `"index":1`),
		event("content_block_start",
			`"index":2,"content_block":{"type":"tool_search_tool_result","tool_use_id":"srvtoolu_1","content":{"type":"x"}}`),
		event("content_block_stop", `"index":2`),
		event("content_block_start", `"index":3,"content_block":{"type":"text","text":""}`),
		"event: content_block_delta\r\ndata:{\"type\":\"content_block_delta\",\"index\":3,\"delta\":{\"type\":\"text_delta\"," +
			"\"text\":\"hi\"}}\r\n\r\n",
		event("content_block_delta", `"index":3,"delta":{"type":"citations_delta","citation":{"type":"char_location"}}`),
		event("content_block_delta", `"index":3,"delta":{"type":"nobody_knows_delta","x":1}`),
		fakeprovider.NativePing(),
		event("content_block_stop", `"index":3`),
		event("message_delta",
			`"delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"input_tokens":1000,"output_tokens":500},"context_management":{}`),
		fakeprovider.NativePing(),
		fakeprovider.NativeStop(),
	}
}

// eventByEventScene checks that the gateway forwards each event of a stream immediately.
func eventByEventScene(t testing.TB) scene.Scenario {
	gate := make(chan struct{}, len(oddEvents()))
	stream := fakeprovider.NativeEvents(oddEvents()...)
	stream.Gate = gate
	p := fakeprovider.New(t, stream)
	return single{name: "event by event",
		in: scene.Messages, line: "messages", model: "flow", provider: p, lineMore: map[string]any{"pass": []string{"*"}},
	}.plays(func(t *testing.T, s scene.FormClient) {
		body := withModel(strings.Replace(oddMessages, "%s", "true", 1), "flow")
		r, err := http.NewRequestWithContext(t.Context(), "POST", s.Gateway.Process.URL+scene.Messages.Path(), strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("x-api-key", s.Key)
		// The gateway begins the answer at the first token, here the beginning of a thought.
		const first, finish = 3, 20
		for range first {
			gate <- struct{}{}
		}
		answer, err := s.Gateway.Client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		in := bufio.NewReader(answer.Body)
		got := ""
		for i, event := range oddEvents() {
			// The gateway withholds the last events until the answer is charged.
			if i >= first && i <= finish {
				gate <- struct{}{}
			}
			if i == finish {
				gate <- struct{}{}
				gate <- struct{}{}
			}
			want := strings.ReplaceAll(event, `"vendor-model"`, `"flow"`)
			for len(got) < len(want) {
				line, err := in.ReadString('\n')
				if got += line; err != nil {
					t.Fatalf("event %d: %v after %q", i, err, got)
				}
			}
			if got != want {
				t.Fatalf("event %d is %q; want %q", i, got, want)
			}
			got = ""
		}
		if rest, err := in.ReadString('\n'); err == nil || rest != "" {
			t.Errorf("%q after the end of the stream", rest)
		}
		if kind := answer.Header.Get("Content-Type"); kind != "text/event-stream; charset=utf-8" {
			t.Errorf("content type %q", kind)
		}
		s.CheckCharge(scene.FormAnswer{Status: 200, Header: answer.Header}, scene.AnswerCost)
		if want := strings.Replace(body, `"model":"flow"`, `"model":"vendor-flow"`, 1); string(p.Requests()[0].Body) != want {
			t.Errorf("the provider got\n%s", p.Requests()[0].Body)
		}
	})
}
