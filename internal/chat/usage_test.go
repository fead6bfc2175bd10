package chat

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"tollgate/internal/call"
	"tollgate/internal/fault"
	"tollgate/internal/gatewaytest/fakeprovider"
	"tollgate/internal/ledger"
	"tollgate/internal/wire"
)

// reportedUsage returns a usage object of a form with a prompt, its cached part, and a completion.
func reportedUsage(on wire.Form, prompt, cached, completion int) string {
	switch on {
	case wire.FormResponses:
		return fmt.Sprintf(`{"input_tokens":%d,"input_tokens_details":{"cached_tokens":%d},"output_tokens":%d,"total_tokens":%d}`, prompt, cached,
			completion, prompt+completion)
	case wire.FormMessages: // the cached tokens stand beside the others
		return fmt.Sprintf(`{"input_tokens":%d,"cache_read_input_tokens":%d,"output_tokens":%d}`, prompt-max(cached, 0), cached, completion)
	case wire.FormGemini:
		return fmt.Sprintf(`{"promptTokenCount":%d,"cachedContentTokenCount":%d,"candidatesTokenCount":%d,"totalTokenCount":%d}`, prompt, cached,
			completion, prompt+completion)
	}
	return fmt.Sprintf(`{"prompt_tokens":%d,"prompt_tokens_details":{"cached_tokens":%d},"completion_tokens":%d,"total_tokens":%d}`, prompt,
		cached, completion, prompt+completion)
}

// reportingStream returns a stream with the text "Hello\n world". Its events before the finish
// carry the usage early, and the events from the finish carry late, if the form has a place for
// usage; an empty usage is omitted. begun is the number of events before the finish.
func reportingStream(on wire.Form, early, late string) (events []string, begun int) {
	with := func(name, usage string) string {
		if usage == "" {
			return ""
		}
		return `,"` + name + `":` + usage
	}
	switch on {
	case wire.FormResponses:
		for i, e := range append(fakeprovider.ResponsesBegin(), fakeprovider.ResponsesText("Hello\n"), fakeprovider.ResponsesText(" world")) {
			if i < 2 && early != "" {
				e = strings.Replace(e, `"usage":null`, `"usage":`+early, 1)
			}
			events = append(events, e)
		}
		if late == "" {
			late = "null"
		}
		end := fakeprovider.ResponsesEnd("completed", late, fakeprovider.ResponsesMessage("Hello\n world"))
		return append(events, end), len(events)
	case wire.FormMessages:
		start := `"message":{"id":"m","type":"message","role":"assistant","model":"vendor-model","content":[],"stop_reason":null` +
			with("usage", early) + `}`
		events = []string{
			fakeprovider.NativeEvent("message_start", start),
			fakeprovider.NativeEvent("content_block_start", `"index":0,"content_block":{"type":"text","text":""}`),
			fakeprovider.NativeText("Hello\n"), fakeprovider.NativeText(" world"),
			fakeprovider.NativeEvent("message_delta", `"delta":{"stop_reason":null}`+with("usage", early)),
		}
		end := fakeprovider.NativeEvent("message_delta", `"delta":{"stop_reason":"end_turn","stop_sequence":null}`+with("usage", late))
		return append(events, end, fakeprovider.NativeStop()), len(events)
	case wire.FormGemini:
		event := func(text, finish, usage string) string {
			return `data: {"candidates":[{"content":{"parts":[` + fakeprovider.GeminiText(text) + `],"role":"model"}` + finish + `,"index":0}]` +
				with("usageMetadata", usage) + "}\n\n"
		}
		return []string{event("Hello\n", "", early), event(" world", "", early), event("", `,"finishReason":"STOP"`, late)}, 2
	}
	frame := func(delta, finish, usage string) string {
		return `data: {"id":"c","created":7,"model":"vendor-model","choices":[{"index":0,"delta":` + delta + `,"finish_reason":` + finish + `}]` +
			with("usage", usage) + "}\n\n"
	}
	events = []string{frame(`{"role":"assistant","content":""}`, "null", early), frame(`{"content":"Hello\n"}`, "null", early),
		frame(`{"content":" world"}`, "null", early), frame(`{}`, `"stop"`, late)}
	if late != "" {
		events = append(events, `data: {"id":"c","choices":[],"usage":`+late+"}\n\n")
	}
	return append(events, doneEvent), 3
}

// Where a stream ends.
const (
	isWhole   = "whole"
	breaksOff = "breaks off"
	isLeft    = "left by its client"
)

// TestUsageOfStreams checks that the usage of a stream is final only from the finish, that a later
// zero does not reset a count, and that a broken or abandoned stream is charged by the larger of
// the reported and the own counts: 8 tokens of prompt, 3 of the answer.
func TestUsageOfStreams(t *testing.T) {
	t.Parallel()
	type counts struct{ prompt, cached, completion int }
	none, zero, negative := (*counts)(nil), &counts{}, &counts{-5, -5, -5}
	for _, test := range []struct {
		name        string
		early, late *counts
		end         string
		want        counts
	}{
		{"zeros in every event", zero, zero, isLeft, counts{8, 0, 3}},
		{"zeros in every event", zero, zero, breaksOff, counts{8, 0, 3}},
		{"zeros in every event", zero, zero, isWhole, counts{}},
		{"zeros before the finish alone", zero, none, isWhole, counts{8, 0, 3}},
		{"usage, then zeros", &counts{100, 40, 10}, zero, isWhole, counts{100, 40, 10}},
		{"usage before the finish alone", &counts{100, 40, 10}, none, isWhole, counts{100, 40, 10}},
		{"usage before the finish alone", &counts{100, 40, 10}, none, breaksOff, counts{100, 40, 10}},
		{"usage before the finish alone", &counts{100, 40, 10}, none, isLeft, counts{100, 40, 10}},
		{"the prompt alone", &counts{100, 40, 0}, none, isWhole, counts{100, 40, 3}},
		{"the prompt alone", &counts{100, 40, 0}, none, breaksOff, counts{100, 40, 3}},
		{"the prompt alone", &counts{100, 40, 0}, none, isLeft, counts{100, 40, 3}},
		{"one token at first", &counts{100, 0, 1}, none, isLeft, counts{100, 0, 3}},
		{"one token at first, then zeros", &counts{100, 0, 1}, zero, isWhole, counts{100, 0, 3}},
		{"less at the finish", &counts{100, 40, 500}, &counts{90, 30, 10}, isWhole, counts{90, 30, 10}},
		{"one token at the finish", zero, &counts{100, 0, 1}, isWhole, counts{100, 0, 1}},
		{"negative", negative, negative, isWhole, counts{8, 0, 3}},
		{"negative", negative, negative, isLeft, counts{8, 0, 3}},
		{"usage, then negative", &counts{100, 40, 10}, negative, isWhole, counts{100, 40, 10}},
		{"negative, then usage", negative, &counts{100, 40, 10}, isWhole, counts{100, 40, 10}},
		{"only the cached part negative", none, &counts{100, -40, 10}, isWhole, counts{100, 0, 10}},
	} {
		t.Run(test.name+", "+test.end, func(t *testing.T) {
			t.Parallel()
			eachPair(t, func(t *testing.T, client, on wire.Form) {
				usage := func(c *counts) string {
					if c == nil {
						return ""
					}
					return reportedUsage(on, c.prompt, c.cached, c.completion)
				}
				tr := playReporting(t, client, on, usage(test.early), usage(test.late), test.end)
				e := tr.end()
				want := ledger.Tokens{Prompt: int64(test.want.prompt), Cached: int64(test.want.cached), Completion: int64(test.want.completion)}
				if cost := int64(e.Cost); e.Outcome != ledger.Billed || e.Tokens != want || cost != want.Prompt*1000+want.Completion*10_000 {
					t.Errorf("outcome %d, charged %d for %+v; want %+v", e.Outcome, cost, e.Tokens, want)
				}
				ours := 0 // of the prompt we count 8, of the completion 3
				if want.Prompt == 8 {
					ours++
				}
				if want.Completion == 3 {
					ours++
				}
				if source := []ledger.UsageSource{ledger.SourceProvider, ledger.SourceBoth, ledger.SourceGateway}[ours]; e.Source != source {
					t.Errorf("%+v is of source %d, want %d", e.Tokens, e.Source, source)
				}
			})
		})
	}
}

// playReporting plays a reportingStream to an end. It runs in a bubble of time
// of its own.
func playReporting(t *testing.T, client, on wire.Form, early, late, end string) (tr *testRequest) {
	events, begun := reportingStream(on, early, late)
	synctest.Test(t, func(t *testing.T) {
		r := reply{pieces: events}
		if end != isWhole {
			r.pieces, r.stall = events[:begun], end == isLeft
		}
		tr = newTrial(t, r)
		if end == isLeft {
			tr.leaveAfter(time.Second)
		}
		out := tr.send(formCall(t, client, on, true))
		code := map[string]fault.Code{isLeft: fault.ClientClosed, breaksOff: fault.UpstreamConnectionError}[end]
		if out.err != nil || out.cut != (end == isLeft) || tr.end().Code != string(code) {
			t.Errorf("%+v, end %+v", out, tr.end())
		}
	})
	return tr
}

// TestZerosBesideTheFinish checks that zeros with the finish are not final before the end of the
// stream, because the usage may follow.
func TestZerosBesideTheFinish(t *testing.T) {
	t.Parallel()
	zero := reportedUsage(wire.FormChat, 0, 0, 0)
	events, begun := reportingStream(wire.FormChat, zero, zero)
	for name, rest := range map[string]reply{"stalls": {stall: true}, "resets": {err: errors.New("reset")}, "left": {stall: true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				rest.pieces = events[:begun+1]
				tr := newTrial(t, rest)
				code := fault.Code("")
				if name == "left" {
					tr.leaveAfter(time.Second)
					code = fault.ClientClosed
				}
				tr.run(askStream)
				tr.want(ledger.Billed, "0.000038", 200, code)
			})
		})
	}
}

// TestClientsSeeWhatTheyPay checks that a client with a request for the usage frame gets the
// gateway's usage if the provider's frames had only placeholders.
func TestClientsSeeWhatTheyPay(t *testing.T) {
	t.Parallel()
	zero, real := reportedUsage(wire.FormChat, 0, 0, 0), reportedUsage(wire.FormChat, 100, 40, 10)
	for name, test := range map[string]struct {
		early, late string
		want        string // the last frame's usage
	}{
		"zeros before the finish": {zero, "", `"usage":{"prompt_tokens":8,"completion_tokens":3,"total_tokens":11,`},
		"usage, then zeros":       {real, zero, `"usage":{"prompt_tokens":100,"completion_tokens":10,"total_tokens":110,`},
		"zeros, then usage":       {zero, real, `"usage":` + real + "}\n\n"},
		"zeros to the end":        {zero, zero, `"usage":` + zero + "}\n\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			events, _ := reportingStream(wire.FormChat, test.early, test.late)
			tr := newTrial(t, reply{pieces: events})
			tr.mustRun(askUsage)
			got := tr.client.body()
			if last := got[strings.LastIndex(got, `"usage":{`):]; !strings.HasPrefix(last, test.want) ||
				!strings.HasSuffix(last, "}\n\n"+doneEvent) {
				t.Errorf("the client's last usage is %s", last)
			}
		})
	}
}

// TestUsageOfWholeAnswers checks the usage of whole answers; an explicit zero of the provider is
// final there.
func TestUsageOfWholeAnswers(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		prompt, cached, completion int
		want                       ledger.Tokens
	}{
		"zero":                     {0, 0, 0, ledger.Tokens{}},
		"negative":                 {-5, -5, -5, ledger.Tokens{Prompt: 8, Completion: 3}},
		"negative prompt":          {-5, 0, 10, ledger.Tokens{Prompt: 8, Completion: 10}},
		"negative completion":      {100, 0, -5, ledger.Tokens{Prompt: 100, Completion: 3}},
		"negative cached part":     {100, -40, 10, ledger.Tokens{Prompt: 100, Completion: 10}},
		"no completion, says it":   {100, 0, 0, ledger.Tokens{Prompt: 100}},
		"more cached than prompts": {100, 900, 10, ledger.Tokens{Prompt: 100, Cached: 100, Completion: 10}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			eachPair(t, func(t *testing.T, client, on wire.Form) {
				usage := reportedUsage(on, test.prompt, test.cached, test.completion)
				if on == wire.FormMessages && test.cached > test.prompt { // it has no such thing: both are parts
					usage = reportedUsage(on, test.prompt, test.prompt, test.completion)
				}
				tr := newTrial(t, pieces(withUsage(t, on, usage)))
				tr.mustSend(formCall(t, client, on, false))
				if e := tr.end(); e.Tokens != test.want || int64(e.Cost) != test.want.Prompt*1000+test.want.Completion*10_000 {
					t.Errorf("charged %s for %+v; want %+v", e.Cost, e.Tokens, test.want)
				}
			})
		})
	}
}

// withUsage returns a good answer of a form with a usage object.
func withUsage(t *testing.T, on wire.Form, usage string) string {
	t.Helper()
	var answer map[string]json.RawMessage
	if err := json.Unmarshal([]byte(good(on, false).pieces[0]), &answer); err != nil {
		t.Fatal(err)
	}
	name := "usage"
	if on == wire.FormGemini {
		name = "usageMetadata"
	}
	answer[name] = json.RawMessage(usage)
	body, err := json.Marshal(answer)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

// TestProgressOfPlaceholders checks that the charge after a node's death ignores placeholders too.
func TestProgressOfPlaceholders(t *testing.T) {
	t.Parallel()
	eachPair(t, func(t *testing.T, client, on wire.Form) {
		noted := formCall(t, client, on, true).Body.Estimate()
		for _, test := range []struct {
			prompt, completion int
			want               ledger.Tokens
		}{
			{0, 0, ledger.Tokens{Prompt: noted, Completion: 3}}, {100, 0, ledger.Tokens{Prompt: 100, Completion: 3}},
			{100, 70, ledger.Tokens{Prompt: 100, Completion: 70}},
		} {
			events, begun := reportingStream(on, reportedUsage(on, test.prompt, 0, test.completion), "")
			synctest.Test(t, func(t *testing.T) {
				tr := newTrial(t, reply{pieces: slices.Concat(events[:begun], []string{": x\n\n"}),
					delays: append(make([]time.Duration, begun), call.ProgressInterval+time.Second)})
				tr.send(formCall(t, client, on, true))
				if len(tr.books.progress) != 1 {
					t.Fatalf("%d notes of progress", len(tr.books.progress))
				}
				last := tr.books.progress[0]
				if last.Tokens != test.want || int64(last.Cost) != test.want.Prompt*1000+test.want.Completion*10_000 {
					t.Errorf("%d and %d reported: noted %+v; want %+v", test.prompt, test.completion, last, test.want)
				}
			})
		}
	})
}

// oddUsage is a usage object of a form whose counts have odd values.
func oddUsage(on wire.Form, prompt, completion string) string {
	switch on {
	case wire.FormResponses, wire.FormMessages:
		return fmt.Sprintf(`{"input_tokens":%s,"output_tokens":%s,"input_tokens_details":%[1]s,"cache_creation":%[1]s,`+
			`"server_tool_use":%[1]s,"iterations":%[2]s}`, prompt, completion)
	case wire.FormGemini:
		return fmt.Sprintf(`{"promptTokenCount":%s,"candidatesTokenCount":%s,"promptTokensDetails":%[1]s,"thoughtsTokenCount":null}`,
			prompt, completion)
	}
	return fmt.Sprintf(`{"prompt_tokens":%s,"completion_tokens":%s,"prompt_tokens_details":%[1]s,"plugins":%[1]s,"cost":%[1]s}`,
		prompt, completion)
}

// TestOddUsage checks that the gateway counts tokens itself if a provider's counts are not numbers,
// and that no number makes an answer free or breaks the settlement.
func TestOddUsage(t *testing.T) {
	t.Parallel()
	for value, isCount := range map[string]bool{
		`"100"`: false, `""`: false, `null`: false, `true`: false, `{"a":1}`: false, `[1]`: false, `{}`: false, `[[[[[[7]]]]]]`: false,
		`-1`: false, `-1e300`: false, `{"total":{"a":[1e9]}}`: false,
		`1e999`: true, `99999999999999999999999`: true, `9223372036854775808`: true, `1.8e308`: true,
	} {
		t.Run(value, func(t *testing.T) {
			t.Parallel()
			eachPair(t, func(t *testing.T, client, on wire.Form) {
				usage := oddUsage(on, value, value)
				check := func(how string, e ledger.End) {
					got := e.Tokens
					if got.Prompt <= 0 || got.Completion <= 0 || e.Cost <= 0 ||
						!isCount && got != (ledger.Tokens{Prompt: 8, Completion: 3}) {
						t.Errorf("%s: %+v, cost %s", how, got, e.Cost)
					}
				}
				for _, end := range []string{isWhole, breaksOff, isLeft} {
					check(end, playReporting(t, client, on, usage, usage, end).end())
				}
				tr := newTrial(t, pieces(withUsage(t, on, usage)))
				tr.mustSend(formCall(t, client, on, false))
				check("in one piece", tr.end())
			})
		})
	}
}
