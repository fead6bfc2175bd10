package chat

import (
	"errors"
	"strings"
	"testing"

	"tollgate/internal/fault"
	"tollgate/internal/ledger"
	"tollgate/internal/wire"
)

// soundModels are models with and without prices of sound. A token of text costs a dollar a million in
// and ten out, one of sound 100 in and 200 out.
const soundModels = `
models:
  - id: talker
    kind: chat
    context_window: 10000
    max_output_tokens: 1000
    price: {input: 1, output: 10, modalities: {audio: {input: 100, output: 200}}}
  - id: listener
    kind: chat
    context_window: 10000
    max_output_tokens: 1000
    price: {input: 1, output: 10, modalities: {audio: {input: 100}}}
  - id: reader
    kind: chat
    context_window: 10000
    max_output_tokens: 1000
    price: {input: 1, output: 10}
lines:
  - id: first
    provider: script
    models: {talker: m, listener: m, reader: m}
`

// soundPart is a part with a second of sound: 8,000 bytes, in base64.
var soundPart = `{"type":"input_audio","input_audio":{"data":"` + strings.Repeat("A", 10_664) + `","format":"mp3"}}`

// askWithSound returns a request for a model with sound as input, and as output if spoken.
func askWithSound(model string, spoken, stream bool) string {
	body := `{"model":"` + model + `","max_tokens":100,"messages":[{"role":"user","content":[{"type":"text","text":"What is said?"},` +
		soundPart + `]}]`
	if spoken {
		body += `,"modalities":["text","audio"],"audio":{"voice":"alloy","format":"pcm16"}`
	}
	if stream {
		body += `,"stream":true`
	}
	return body + "}"
}

// TestSoundHasItsPrice checks the hold and the charge of sound in a prompt and an answer.
func TestSoundHasItsPrice(t *testing.T) {
	const answer = `{"id":"c","object":"chat.completion","choices":[{"index":0,"finish_reason":"stop",` +
		`"message":{"role":"assistant","content":null,"audio":{"id":"audio_1","data":"AAAA","transcript":"hello","expires_at":1}}}]%}`
	const usage = `,"usage":{"prompt_tokens":42,"prompt_tokens_details":{"audio_tokens":32},` +
		`"completion_tokens":30,"completion_tokens_details":{"audio_tokens":20}}`
	for name, tt := range map[string]struct {
		model  string
		spoken bool
		answer string
		cost   string
	}{
		// 10 × 1 + 32 × 100 + 10 × 10 + 20 × 200 micro-dollars
		"in and out": {"talker", true, strings.Replace(answer, "%", usage, 1), "0.00731"},
		// The client did not ask for sound, so it does not pay more than for text.
		"in, and out unasked": {"talker", false, strings.Replace(answer, "%", usage, 1), "0.00351"},
		"in only":             {"listener", false, strings.Replace(answer, "%", usage, 1), "0.00351"},
	} {
		t.Run(name, func(t *testing.T) {
			s := snapshotOf(t, soundModels, wire.FormChat)
			tr := newTrial(t, pieces(tt.answer))
			tr.mustSend(chatCall(t, s, askWithSound(tt.model, tt.spoken, false)))
			tr.want(ledger.Billed, tt.cost, 200, "")
			if body := tr.client.body(); !strings.Contains(body, `"audio":{"id":"audio_1","data":"AAAA"`) {
				t.Errorf("the answer has no sound: %s", body)
			}
		})
	}
}

// TestSoundWithoutUsage checks that the gateway counts the sound of a stream that breaks off.
func TestSoundWithoutUsage(t *testing.T) {
	s := snapshotOf(t, soundModels, wire.FormChat)
	second := strings.Repeat("A", 64_000) // one second of 16 bits at 24 kHz
	tr := newTrial(t, pieces(
		`data: {"id":"c","choices":[{"index":0,"delta":{"role":"assistant","audio":{"id":"a","transcript":"hi"}}}]}`+"\n\n",
		`data: {"id":"c","choices":[{"index":0,"delta":{"audio":{"data":"`+second+`"}}}]}`+"\n\n"))
	tr.mustSend(chatCall(t, s, askWithSound("talker", true, true)))
	if e := tr.end(); e.Tokens.Completion < 32 || e.Tokens.Completion > 40 || e.Tokens.Prompt < 32 || e.Cost < 32*300_000 {
		t.Errorf("charged %s for %+v; want at least 32 tokens of sound in and out at their price", e.Cost, e.Tokens)
	}
}

// TestSoundNeedsAPrice checks that sound is refused by models without its price.
func TestSoundNeedsAPrice(t *testing.T) {
	s := snapshotOf(t, soundModels, wire.FormChat)
	for name, tt := range map[string]struct {
		model  string
		spoken bool
		param  string
	}{
		"no price":        {"reader", false, "messages[0].content[1].input_audio"},
		"no output price": {"listener", true, "modalities"},
	} {
		t.Run(name, func(t *testing.T) {
			tr := newTrial(t)
			out := tr.send(chatCall(t, s, askWithSound(tt.model, tt.spoken, false)))
			var f *fault.Error
			if !errors.As(out.err, &f) || f.Code != fault.InvalidRequest || f.Param != tt.param {
				t.Errorf("%v; want invalid_request at %s", out.err, tt.param)
			}
		})
	}
}
