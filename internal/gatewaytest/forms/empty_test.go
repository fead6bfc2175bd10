package forms

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"tollgate/internal/gatewaytest/fakeprovider"
	"tollgate/internal/gatewaytest/scene"
	"tollgate/internal/money"
)

// emptyAnswer is a provider's answer with status 200 but without content. want has the result for
// each form of clients: the status, and for a 200 the finish reason, otherwise the code and the
// param. Errors of /native have the type instead.
type emptyAnswer struct {
	name, line    string
	whole, stream fakeprovider.Reply
	want          map[scene.Form]string // for whole answers and streams
	streamed      map[scene.Form]string // for streams, if different
}

func emptyAnswers() []emptyAnswer {
	native := func(content, reason string) fakeprovider.Reply {
		return fakeprovider.JSON(200,
			`{"id":"msg_fake","type":"message","role":"assistant","model":"vendor-model","content":[`+content+`],"stop_reason":"`+reason+
				`","stop_sequence":null,"usage":{"input_tokens":10,"output_tokens":5}}`)
	}
	nativeStream := func(reason string, blocks ...string) fakeprovider.Reply {
		return fakeprovider.NativeEvents(append(append([]string{fakeprovider.NativeStart(10)}, blocks...), fakeprovider.NativeEnd(reason, 5),
			fakeprovider.NativeStop())...)
	}
	thinking := []string{
		fakeprovider.NativeEvent("content_block_start", `"index":0,"content_block":{"type":"thinking","thinking":"","signature":""}`),
		fakeprovider.NativeEvent("content_block_delta", `"index":0,"delta":{"type":"thinking_delta","thinking":"hm"}`),
		fakeprovider.NativeEvent("content_block_stop", `"index":0`)}
	google := func(finish string, parts ...string) (whole, stream fakeprovider.Reply) {
		body := fakeprovider.GeminiEvent(finish, 10, 5, parts...)
		return fakeprovider.JSON(200, body), fakeprovider.Reply{Events: []string{body}}
	}
	both := func(data string) (whole, stream fakeprovider.Reply) {
		return fakeprovider.JSON(200, data), fakeprovider.Reply{ContentType: "text/event-stream", Raw: []string{"data: " + data + "\n\n"}}
	}
	chatStream := func(deltas ...string) fakeprovider.Reply {
		return *fakeprovider.Events(append(deltas, fakeprovider.UsageFrame(10, 5), "[DONE]")...)
	}
	// all returns one result for each form of clients.
	all := func(chat, messages, responses string) map[scene.Form]string {
		return map[scene.Form]string{scene.Chat: chat, scene.Messages: messages, scene.Responses: responses}
	}
	limited, filtered := all("400 max_tokens_too_small max_tokens", "200 max_tokens", "200 incomplete"),
		all("400 content_filter", "200 refusal", "200 incomplete")
	length := map[scene.Form]string{scene.Chat: "200 length"}
	failed := func(code string) map[scene.Form]string { return all("502 "+code, "502 api_error", "502 "+code) }
	safety, safetyStream := google("SAFETY")
	maxTokens, maxStream := google("MAX_TOKENS", fakeprovider.GeminiThought("hm"))
	nothing, nothingStream := google("STOP")
	malformed, malformedStream := google("MALFORMED_FUNCTION_CALL")
	half, halfStream := google("OTHER", fakeprovider.GeminiText("half"))
	blocked, blockedStream := both(fakeprovider.GeminiBlocked("SAFETY", 10).Body)
	overloaded, _ := both(`{"type":"error","error":{"type":"overloaded_error","message":"x"}}`)
	thought := `{"type":"thought","signature":"c2ln","summary":[{"type":"text","text":"hm"}]}`
	halfStep := fakeprovider.InteractionText("half")
	steps := func(status string, list ...string) fakeprovider.Reply {
		return fakeprovider.JSON(200, fakeprovider.Interaction(status, fakeprovider.InteractionUsage(10, 5), list...))
	}
	stepStream := func(status string, list ...string) fakeprovider.Reply {
		var events []string
		for i, step := range list {
			events = append(events, fakeprovider.InteractionStep(i, step)...)
		}
		return fakeprovider.InteractionEvents(status, fakeprovider.InteractionUsage(10, 5), events...)
	}
	withSafety := func(r fakeprovider.Reply) fakeprovider.Reply {
		return replaceIn(r, `"status":"failed"`, `"status":"failed","errors":[{"code":"safety","message":"x"}]`)
	}
	sentence := "service overloaded, try again"
	usage := fakeprovider.ResponsesUsage(10, 5)
	responses := func(status, change string) (whole, stream fakeprovider.Reply) {
		object := strings.Replace(fakeprovider.ResponsesObject(status, usage), "server_error", change, 1)
		end := strings.Replace(fakeprovider.ResponsesEnd(status, usage), "server_error", change, 1)
		return fakeprovider.JSON(200, object), fakeprovider.ResponsesEvents(append(fakeprovider.ResponsesBegin()[:2], end)...)
	}
	incomplete, incompleteStream := responses("incomplete", "")
	complete, completeStream := responses("completed", "")
	down, downStream := responses("failed", "server_error")
	rateLimited, rateLimitedStream := responses("failed", "rate_limit_exceeded")
	stopped, stoppedStream := responses("failed", "invalid_prompt")
	responsesOnly := func(want string) map[scene.Form]string { return map[scene.Form]string{scene.Responses: want} }
	return []emptyAnswer{
		{"only thinking up to the limit", "messages", native(`{"type":"thinking","thinking":"hm","signature":"x"}`, "max_tokens"),
			nativeStream("max_tokens", thinking...), limited, length},
		{"empty at the limit", "messages", native("", "max_tokens"), nativeStream("max_tokens"), limited, length},
		{"refused", "messages", native("", "refusal"), nativeStream("refusal"), filtered, nil},
		{"empty", "messages", native("", "end_turn"), nativeStream("end_turn"),
			all("502 empty_completion", "200 end_turn", "502 empty_completion"), nil},
		{"an error inside", "messages", overloaded, fakeprovider.NativeEvents(fakeprovider.NativeStart(10),
			fakeprovider.NativeFailure("overloaded_error", "x")), failed("upstream_busy"), nil},
		{"an error sentence", "messages", fakeprovider.NativeAnswer(sentence, 10, 5), fakeprovider.NativeStream(10, 5, sentence),
			failed("upstream_error"), nil},
		{"only a ping", "messages", fakeprovider.JSON(200, "{}"), fakeprovider.NativeEvents(fakeprovider.NativePing()),
			failed("empty_completion"), failed("upstream_connection_error")},
		{"withheld", "gemini", safety, safetyStream, filtered, nil},
		{"only thinking up to the limit", "gemini", maxTokens, maxStream, limited, length},
		{"empty", "gemini", nothing, nothingStream, failed("empty_completion"), nil},
		{"a partial answer with a failure", "gemini", half, halfStream, failed("upstream_unavailable"), nil},
		{"a partial answer with a failure", "chat", *fakeprovider.Completion(`{"role":"assistant","content":"half"}`, `"error"`),
			chatStream(fakeprovider.RawFrame(`{"content":"half"}`, `"network_error"`)), failed("upstream_unavailable"), nil},
		{"a partial answer with a failure", "messages", native(`{"type":"text","text":"half"}`, "error"),
			nativeStream("error"), failed("upstream_unavailable"), nil},
		{"malformed", "gemini", malformed, malformedStream, failed("upstream_unavailable"), nil},
		{"empty", "interactions", steps("completed"), stepStream("completed"), failed("empty_completion"), nil},
		{"only thinking up to the limit", "interactions", steps("incomplete", thought), stepStream("incomplete", thought), limited, length},
		{"withheld", "interactions", withSafety(steps("failed")), withSafety(stepStream("failed")), filtered, nil},
		{"a partial answer with a failure", "interactions", steps("failed", halfStep), stepStream("failed", halfStep),
			failed("upstream_unavailable"), nil},
		{"an unknown status", "interactions", steps("paused", halfStep), stepStream("paused", halfStep), failed("upstream_unavailable"), nil},
		{"cancelled", "interactions", steps("cancelled", halfStep), fakeprovider.InteractionEvents("", "",
			`{"interaction_id":"x","status":"cancelled","event_type":"interaction.status_update"}`), failed("upstream_unavailable"), nil},
		{"blocked", "gemini", blocked, blockedStream, failed("upstream_prompt_filter"), nil},
		{"an error sentence", "gemini", fakeprovider.GeminiAnswer(sentence, 10, 5), fakeprovider.GeminiStream(10, 5, sentence),
			failed("upstream_error"), nil},
		{"only thinking, limit", "chat", *fakeprovider.Completion(`{"role":"assistant","content":"","reasoning_content":"hm"}`, `"length"`),
			chatStream(fakeprovider.RawFrame(`{"reasoning_content":"hm"}`, `null`), fakeprovider.RawFrame(`{}`, `"length"`)), limited, length},
		{"withheld", "chat", *fakeprovider.Completion(`{"role":"assistant","content":""}`, `"content_filter"`),
			chatStream(fakeprovider.RawFrame(`{}`, `"content_filter"`)), filtered, nil},
		{"empty", "chat", *fakeprovider.Completion(`{"role":"assistant","content":""}`, `"stop"`),
			chatStream(fakeprovider.RawFrame(`{}`, `"stop"`)), failed("empty_completion"), nil},
		{"an error sentence", "chat", fakeprovider.Answer(sentence, 10, 5), fakeprovider.Stream(10, 5, sentence), failed("upstream_error"), nil},
		{"incomplete and empty", "responses", incomplete, incompleteStream, responsesOnly("200 incomplete"), nil},
		{"completed and empty", "responses", complete, completeStream, responsesOnly("200 completed"), nil},
		{"failed", "responses", down, downStream, responsesOnly("502 upstream_unavailable"), nil},
		{"failed because of a rate limit", "responses", rateLimited, rateLimitedStream, responsesOnly("502 upstream_busy"), nil},
		{"failed because of the prompt", "responses", stopped, stoppedStream, responsesOnly("502 upstream_prompt_filter"), nil},
		{"an error sentence", "responses", fakeprovider.ResponsesAnswer(sentence, 10, 5), fakeprovider.ResponsesStream(10, 5, sentence),
			responsesOnly("502 upstream_error"), nil},
	}
}

// emptyAnswerScenes play each empty answer for every form of clients.
func emptyAnswerScenes(t testing.TB) []scene.Scenario {
	var scenes []scene.Scenario
	for i, j := range emptyAnswers() {
		for form, want := range j.want {
			for _, stream := range []bool{false, true} {
				reply, want := j.whole, want
				if stream {
					reply = j.stream
					if other, ok := j.streamed[form]; ok {
						want = other
					}
				}
				model := fmt.Sprintf("emptyAnswer-%d-%s-%v", i, form, stream)
				p := fakeprovider.New(t, reply)
				scenes = append(scenes, single{name: fmt.Sprintf("%s on %s, %s, stream %v", form, j.line, j.name, stream),
					in: form, line: j.line, model: model, provider: p, lineMore: map[string]any{"error_sentences": []string{"^service overloaded"}},
				}.plays(func(t *testing.T, s scene.FormClient) {
					a := s.Ask(scene.Request(form, model, stream, nil))
					r := read(t, form, a, model)
					got := fmt.Sprint(a.Status, " ", r.end)
					if a.Status != 200 {
						got = strings.TrimSuffix(fmt.Sprint(a.Status, " ", r.fault.Code, " ", r.fault.Param()), " ")
					}
					if a.Status != 200 && form == scene.Messages {
						got = fmt.Sprint(a.Status, " ", r.fault.Type)
					}
					if got != want || (a.Status == 200) != r.whole {
						t.Errorf("the client got %q, want %q: %s", got, want, a.Raw)
					}
					cost := money.Amount(0)
					if a.Status == 200 {
						cost = 20_000
					}
					s.CheckCharge(a, cost)
				}))
			}
		}
	}
	return append(scenes, leftFormScenes(t)...)
}

// leftFormScenes disconnect the client in the middle of a stream. The gateway must also disconnect
// from the provider, and charge the produced tokens.
func leftFormScenes(t testing.TB) []scene.Scenario {
	var scenes []scene.Scenario
	for _, form := range scene.ClientForms() {
		for _, line := range lineForms() {
			model := fmt.Sprintf("left-%s-%s", form, line)
			p := fakeprovider.New(t, fakeprovider.Reply{ContentType: "text/event-stream", Raw: brokenBegin(line), End: fakeprovider.Stall})
			scenes = append(scenes, single{name: fmt.Sprintf("%s on %s, client disconnects", form, line),
				in: form, line: line, model: model, provider: p,
			}.plays(func(t *testing.T, s scene.FormClient) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				var answer *http.Response
				var err error
				scene.Eventually(t, "the gateway takes a request", func() bool { // as in scene.FormClient.Post
					body := strings.NewReader(scene.Request(form, model, true, nil))
					r, err := http.NewRequestWithContext(ctx, "POST", s.Gateway.Process.URL+form.Path(), body)
					if err != nil {
						t.Fatal(err)
					}
					r.Header.Set("Authorization", "Bearer "+s.Key)
					if answer, err = s.Gateway.Client.Do(r); err != nil {
						t.Fatal(err)
					}
					if answer.StatusCode == http.StatusServiceUnavailable {
						_ = answer.Body.Close()
					}
					return answer.StatusCode != http.StatusServiceUnavailable
				})
				defer answer.Body.Close()
				got := ""
				for buffer := make([]byte, 4096); err == nil; {
					var n int
					n, err = answer.Body.Read(buffer)
					if got += string(buffer[:n]); strings.Contains(got, brokenText) {
						cancel()
					}
				}
				if !errors.Is(err, context.Canceled) {
					t.Fatalf("%v after %s", err, got)
				}
				scene.Eventually(t, "the provider sees the disconnect", func() bool { return p.Disconnects() == 1 })
				rc := s.Gateway.Receipt(t, s.Account, answer.Header.Get("x-request-id"))
				if rc.Code != "client_closed" || rc.Prompt <= 0 || rc.Completion <= 0 || rc.Cost != money.Amount(rc.Prompt*1000+rc.Completion*2000) {
					t.Errorf("receipt %+v", rc)
				}
				checkFree(t, s.Gateway, s.Account, scene.Credit-rc.Cost)
				if state := s.Gateway.Lines.Of(t, model); state.SuccessRate != nil && *state.SuccessRate != 1 {
					t.Errorf("line: %s", state)
				}
			}))
		}
	}
	return scenes
}
