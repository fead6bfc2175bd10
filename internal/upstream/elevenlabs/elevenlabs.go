// Package elevenlabs owns calls to ElevenLabs: speech, streamed as it comes, and transcriptions.
//
// Invariants:
//   - A call is sent at most once (by package exchange).
//   - The line's credential is only sent to the line's base address.
package elevenlabs

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"

	"tollgate/internal/fault"
	"tollgate/internal/upstream"
	"tollgate/internal/upstream/chatcall"
	"tollgate/internal/upstream/exchange"
	"tollgate/internal/upstream/transcript"
	"tollgate/internal/upstream/voice"
	"tollgate/internal/wire/rawjson"
)

// Provider is the adapter's name in the catalog.
const Provider = "elevenlabs"

// defaultBaseURL is the base address of lines without base_url.
const defaultBaseURL = "https://api.elevenlabs.io/v1"

// Info describes the provider for the catalog.
func Info() upstream.Info {
	return upstream.Info{
		Kinds: []string{voice.Kind, transcript.Kind}, DefaultBaseURL: defaultBaseURL, NeedsKey: true,
		KeyHeaders: []string{"Xi-Api-Key"}, CheckOptions: voice.CheckOptions(Provider),
	}
}

// Adapter calls the provider for one line. It is safe for concurrent use.
type Adapter struct {
	line    *exchange.Client
	header  http.Header
	options map[string]any
}

// New returns the adapter of a line. transport carries the calls. New returns the errors of
// exchange.Open.
func New(t upstream.Target, transport http.RoundTripper) (*Adapter, error) {
	plain, err := exchange.OpenPlain(t, Info(), transport, "Xi-Api-Key")
	if err != nil {
		return nil, err
	}
	return &Adapter{plain.Line, plain.Header, t.Options}, nil
}

// Chat implements chatcall.Adapter for speech and transcriptions.
func (a *Adapter) Chat(ctx context.Context, c chatcall.Call) (*chatcall.Response, error) {
	switch c.Form {
	case voice.Kind:
		return a.speak(ctx, c)
	case transcript.Kind:
		return a.transcribe(ctx, c)
	}
	return nil, upstream.Fail(fault.UpstreamUnavailable, fmt.Errorf("provider %s does not speak the form %q", Provider, c.Form))
}

// outputFormats are the vendor's formats. WAV is PCM with a header. Never changed.
var outputFormats = map[string]string{
	voice.MP3: "mp3_44100_128", voice.Opus: "opus_48000_128", voice.PCM: "pcm_24000", voice.WAV: "pcm_24000",
}

// abilities are the vendor's formats and speeds.
var abilities = voice.Abilities{Formats: []string{voice.MP3, voice.Opus, voice.WAV, voice.PCM}, MinSpeed: 0.7, MaxSpeed: 1.2}

// speech is the body of a call for speech.
type speech struct {
	Text     string    `json:"text"`
	Model    string    `json:"model_id"`
	Settings *settings `json:"voice_settings,omitempty"`
}

type settings struct {
	Speed float64 `json:"speed"`
}

// speak makes a call for speech. The voice is a part of the address.
func (a *Adapter) speak(ctx context.Context, c chatcall.Call) (*chatcall.Response, error) {
	r := voice.Read(c.Body.Bytes(), a.options)
	if err := r.Check(abilities); err != nil {
		return nil, err
	}
	if !exchange.IsSafe(r.Voice, "-_") {
		return nil, upstream.Unsupported("voice", "`{param}` must be the id of a voice: letters and digits.")
	}
	body := speech{Text: r.Input, Model: c.Model}
	if r.Speed != 1 {
		body.Settings = &settings{r.Speed}
	}
	c.Body = rawjson.Pieces{encode(body)}
	address := a.line.URL("text-to-speech", r.Voice, "stream")
	address.RawQuery = url.Values{"output_format": {outputFormats[r.Format]}}.Encode()
	answer, err := a.line.Send(ctx, exchange.Post{URL: address, Header: a.header, Call: c})
	if err != nil {
		return nil, err
	}
	sound, err := voice.Bytes(answer)
	if err != nil {
		return nil, err
	}
	return r.Answer(ctx, answer, sound)
}

// transcription has the fields of a call for a transcription. Events is always false, because the vendor
// would also write down sounds such as laughter.
type transcription struct {
	Model       string `json:"model_id"`
	Language    string `json:"language_code,omitempty"`
	Temperature string `json:"temperature,omitempty"`
	Diarize     bool   `json:"diarize"`
	Events      bool   `json:"tag_audio_events"`
}

// transcribe makes a call for a transcription.
func (a *Adapter) transcribe(ctx context.Context, c chatcall.Call) (*chatcall.Response, error) {
	r := transcript.Read(c)
	if err := r.Check(true); err != nil {
		return nil, err
	}
	c.Body = rawjson.Pieces{encode(transcription{Model: c.Model, Language: r.Language, Temperature: r.Temperature, Diarize: r.Speakers})}
	raw, _, err := a.line.SendWhole(ctx, exchange.Post{URL: a.line.URL("speech-to-text"), Header: a.header, Call: c})
	if err != nil {
		return nil, err
	}
	t, err := readTranscript(raw)
	if err != nil {
		return nil, upstream.Fail(fault.UpstreamUnavailable, err)
	}
	return r.Answer(t), nil
}

// readTranscript reads the vendor's answer.
func readTranscript(raw []byte) (transcript.Transcript, error) {
	var answer struct {
		Text     *string `json:"text"`
		Language string  `json:"language_code"`
		Seconds  float64 `json:"audio_duration_secs"`
		Words    []struct {
			Text    string  `json:"text"`
			Type    string  `json:"type"` // word, spacing or audio_event
			Start   float64 `json:"start"`
			End     float64 `json:"end"`
			Speaker string  `json:"speaker_id"`
		} `json:"words"`
	}
	if err := json.Unmarshal(raw, &answer); err != nil || answer.Text == nil {
		return transcript.Transcript{}, fmt.Errorf("the answer has no text (%v)", err)
	}
	t := transcript.Transcript{Text: *answer.Text, Language: answer.Language, Seconds: answer.Seconds}
	space := ""
	for _, w := range answer.Words {
		if w.Type == "spacing" {
			space = w.Text
			continue
		}
		t.Words = append(t.Words, transcript.Word{Text: space + w.Text, Start: w.Start, End: w.End, Speaker: w.Speaker})
		space = ""
	}
	return t, nil
}

// encode returns a body as JSON.
func encode(body any) []byte {
	raw, _ := json.Marshal(body) // cannot fail for these types
	return raw
}
