// Package speech owns the kind of models for speaking a text.
//
// Invariants: sound reaches the client byte for byte; the gateway counts the delivered bytes; the last
// byte, or the last event, is sent after the charge.
package speech

import (
	"tollgate/internal/wire/kind"
	"tollgate/internal/wire/rawjson"
)

// openAI is the reference of the fields.
const openAI = "https://platform.openai.com/docs/api-reference/audio/createSpeech"

// Fields of models.
const (
	maxCharacters        = "max_characters"
	wideCharacters       = "wide_characters"
	maxOutputTokens      = "max_output_tokens"
	maxSeconds           = "max_seconds"
	audioTokensPerSecond = "audio_tokens_per_second"
	voiceList            = "voices"
)

// characters counts the characters of the text.
const characters kind.PriceUnit = "characters"

// slack is the number of tokens a provider may add to the text.
const slack = 8

// fields are the documented fields of requests. Never changed.
var fields = []kind.RequestField{
	{Name: "model", Source: openAI}, {Name: "input", Source: openAI}, {Name: "voice", Source: openAI},
	{Name: "response_format", Source: openAI}, {Name: "speed", Source: openAI}, {Name: "instructions", Source: openAI},
	{Name: "stream_format", Source: openAI},
}

// Definition returns the kind.
func Definition() *kind.Definition {
	d := &kind.Definition{
		Name:      "speech",
		Endpoints: []kind.CallPath{{Path: "/v1/audio/speech", LinePath: "/audio/speech"}},
		Measures: []kind.Measure{
			{Name: "million_characters", Per: 1_000_000, Noun: "million characters", Units: []kind.PriceUnit{characters}, Quantity: "character",
				Own: true},
			kind.Minutes(true),
			kind.Tokens(kind.Input, kind.OutputAudio),
		},
		Numbers: []kind.Number{
			{Name: maxCharacters, Max: 10_000_000, Default: 4096},
			{Name: wideCharacters, Max: 10, Default: 1},
			{Name: maxOutputTokens, Max: 100_000_000, RequiredWith: kind.OutputAudio},
			{Name: maxSeconds, Max: 1_000_000, RequiredWith: kind.Minute},
			{Name: audioTokensPerSecond, Max: 100_000, Default: 32},
		},
		Lists:   []kind.WordList{{Name: voiceList}, {Name: kind.FormatList, Values: formatNames()}},
		Fields:  fields,
		Advice:  "send a shorter text",
		AnyType: true,
		Examples: []kind.Example{
			{Language: "curl", Text: `curl BASE/v1/audio/speech \
  -H "Authorization: Bearer SECRET" \
  -H "Content-Type: application/json" \
  -d '{"model": MODEL, "voice": "alloy", "input": "A lighthouse in the fog."}' \
  --output speech.mp3`},
			{Language: "Python", Text: `from openai import OpenAI

client = OpenAI(base_url="BASE/v1", api_key="SECRET")
with client.audio.speech.with_streaming_response.create(
    model=MODEL, voice="alloy", input="A lighthouse in the fog."
) as answer:
    answer.stream_to_file("speech.mp3")`},
			{Language: "Node", Text: `import { writeFile } from "node:fs/promises";
import OpenAI from "openai";

const client = new OpenAI({ baseURL: "BASE/v1", apiKey: "SECRET" });
const answer = await client.audio.speech.create({ model: MODEL, voice: "alloy", input: "A lighthouse in the fog." });
await writeFile("speech.mp3", Buffer.from(await answer.arrayBuffer()));`},
		},
		Open:  open,
		Probe: probe,
	}
	d.Sandbox = func(body []byte, _ *kind.Upload) (kind.Made, error) { return speak(d, body) }
	return d
}

// probe uses a known voice. A line that rejects the voice works too.
func probe(model string, l kind.ModelLimits) ([]byte, *kind.Upload) {
	voice := "alloy"
	if voices := l.List(voiceList); len(voices) > 0 {
		voice = voices[0]
	}
	return []byte(`{"model":` + string(rawjson.Quote(model)) + `,"input":"ping","voice":` + string(rawjson.Quote(voice)) +
		kind.ProbeFormat(l) + `}`), nil
}
