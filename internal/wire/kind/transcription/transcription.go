// Package transcription owns the kind of models for writing down speech.
//
// Invariants: the file is never in memory; the held duration is never below the duration in
// the file's headers; answers pass byte for byte.
package transcription

import (
	"tollgate/internal/wire/kind"
)

// References of the fields.
const (
	openAI   = "https://platform.openai.com/docs/api-reference/audio/createTranscription"
	groq     = "https://console.groq.com/docs/speech-to-text"
	deepInfo = "https://docs.vllm.ai/en/latest/serving/openai_compatible_server.html"
)

// Fields of models.
const (
	maxFileMB            = "max_file_mb"
	maxSeconds           = "max_seconds"
	minSeconds           = "min_seconds"
	maxOutputTokens      = "max_output_tokens"
	audioTokensPerSecond = "audio_tokens_per_second"
	translations         = "translations"
)

// slack is the number of tokens a provider may add to the prompt.
const slack = 8

// fields are the documented fields of forms. Never changed.
var fields = []kind.RequestField{
	{Name: "model", Source: openAI}, {Name: "language", Source: openAI}, {Name: "prompt", Source: openAI},
	{Name: "response_format", Source: openAI}, {Name: "temperature", Source: openAI}, {Name: "stream", Source: openAI},
	{Name: "timestamp_granularities[]", Source: openAI}, {Name: "include[]", Source: openAI}, {Name: "chunking_strategy", Source: openAI},
	{Name: "known_speaker_names[]", Source: openAI}, {Name: "known_speaker_references[]", Source: openAI},
	{Name: "timestamp_granularities", Source: groq}, {Name: "to_language", Source: deepInfo},
}

// Definition returns the kind.
func Definition() *kind.Definition {
	return &kind.Definition{
		Name: "transcription",
		Endpoints: []kind.CallPath{
			{Path: "/v1/audio/transcriptions", LinePath: "/audio/transcriptions"},
			{Path: "/v1/audio/translations", LinePath: "/audio/translations", Flag: translations},
		},
		Measures: []kind.Measure{
			kind.Minutes(false),
			{Name: kind.TokensName, Per: 1_000_000, Noun: "million tokens", Units: []kind.PriceUnit{kind.InputAudio, kind.Output, kind.Input},
				Defaults: map[kind.PriceUnit]kind.PriceUnit{kind.Input: kind.InputAudio}},
		},
		Numbers: []kind.Number{
			{Name: maxFileMB, Max: 100_000, Default: 25},
			{Name: maxSeconds, Max: 10_000_000},
			{Name: minSeconds, Max: 3600},
			{Name: maxOutputTokens, Max: 100_000_000, RequiredWith: kind.Output},
			{Name: audioTokensPerSecond, Max: 100_000, Default: 32},
		},
		Lists:     []kind.WordList{{Name: kind.FormatList, Values: formats}},
		Flags:     []string{translations},
		Fields:    fields,
		Advice:    "send a shorter file",
		AnyType:   true,
		Multipart: true,
		MaxFile:   func(l kind.ModelLimits) int64 { return l.Number(maxFileMB) << 20 },
		Examples: []kind.Example{
			{Language: "curl", Text: `curl BASE/v1/audio/transcriptions \
  -H "Authorization: Bearer SECRET" \
  -F model=MODEL \
  -F file=@speech.mp3`},
			{Language: "Python", Text: `from openai import OpenAI

client = OpenAI(base_url="BASE/v1", api_key="SECRET")
with open("speech.mp3", "rb") as file:
    print(client.audio.transcriptions.create(model=MODEL, file=file).text)`},
			{Language: "Node", Text: `import { createReadStream } from "node:fs";
import OpenAI from "openai";

const client = new OpenAI({ baseURL: "BASE/v1", apiKey: "SECRET" });
const answer = await client.audio.transcriptions.create({ model: MODEL, file: createReadStream("speech.mp3") });
console.log(answer.text);`},
		},
		Open:    open,
		Probe:   probe,
		Sandbox: sandbox,
	}
}
