package dashscope

import (
	"bytes"
	"context"
	"encoding/json"

	"tollgate/internal/fault"
	"tollgate/internal/upstream"
	"tollgate/internal/upstream/chatcall"
	"tollgate/internal/upstream/exchange"
	"tollgate/internal/upstream/voice"
	"tollgate/internal/wire/rawjson"
)

// maxSpeech is the maximum length of a speech event, in bytes.
const maxSpeech = 8 << 20

// abilities are the abilities of Qwen-TTS. It only makes PCM; WAV is PCM with a header.
var abilities = voice.Abilities{Formats: []string{voice.WAV, voice.PCM}}

// speak makes a call of Qwen-TTS. The call is streamed, because an answer without a stream is a link.
func (a *Adapter) speak(ctx context.Context, c chatcall.Call) (*chatcall.Response, error) {
	r := voice.Read(c.Body.Bytes(), map[string]any{"voices": a.options.voices})
	if err := r.Check(abilities); err != nil {
		return nil, err
	}
	body, _ := json.Marshal(map[string]any{"model": c.Model, "input": map[string]string{"text": r.Input, "voice": r.Voice}}) // cannot fail
	c.Body, c.Stream, c.AnyType = rawjson.Pieces{body}, true, false
	header := a.Header.Clone()
	header.Set("X-DashScope-SSE", "enable")
	answer, err := a.Line.Send(ctx, exchange.Post{URL: a.Line.URL(path(multimodal)...), Header: header, Call: c})
	if err != nil {
		return nil, err
	}
	return r.Answer(ctx, answer, voice.Events(c, answer, maxSpeech, func(data []byte) (voice.Piece, error) {
		if f := a.Line.Classify(c, data); f != nil {
			return voice.Piece{}, f
		}
		return readSpeech(data)
	}))
}

// readSpeech reads an event of speech.
func readSpeech(data []byte) (voice.Piece, error) {
	var event struct {
		Output struct {
			Audio struct {
				Data []byte `json:"data"`
			} `json:"audio"`
			Reason string `json:"finish_reason"` // "null" until the last event
		} `json:"output"`
		Usage struct {
			Input  int64 `json:"input_tokens"`
			Output int64 `json:"output_tokens"`
		} `json:"usage"`
	}
	if err := json.Unmarshal(data, &event); err != nil {
		return voice.Piece{}, upstream.Fail(fault.UpstreamUnavailable, err)
	}
	return voice.Piece{
		Sound: withoutHeader(event.Output.Audio.Data), Input: event.Usage.Input, Output: event.Usage.Output, Last: event.Output.Reason == "stop",
	}, nil
}

// withoutHeader removes a WAV header from sound. Some models send a header before the first sound.
func withoutHeader(sound []byte) []byte {
	if !bytes.HasPrefix(sound, []byte("RIFF")) {
		return sound
	}
	const size = 8 // of the name and length of a chunk
	if i := bytes.Index(sound, []byte("data")); i >= 0 && i+size <= len(sound) {
		return sound[i+size:]
	}
	return sound
}
