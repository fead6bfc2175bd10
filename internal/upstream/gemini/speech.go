package gemini

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"strconv"
	"strings"

	"tollgate/internal/fault"
	"tollgate/internal/upstream"
	"tollgate/internal/upstream/chatcall"
	"tollgate/internal/upstream/exchange"
	"tollgate/internal/upstream/voice"
	"tollgate/internal/wire/rawjson"
)

// maxSpeech is the maximum length of a speech event, in bytes. One event may have all sound of an answer
// in base64.
const maxSpeech = 48 << 20

// abilities are the abilities of the models for speech. They only make PCM; WAV is PCM with a header.
// Instructions are sent before the text.
var abilities = voice.Abilities{Formats: []string{voice.WAV, voice.PCM}, Instructions: true}

// speak makes a call for speech, which is streamed.
func (a *Adapter) speak(ctx context.Context, c chatcall.Call) (*chatcall.Response, error) {
	r := voice.Read(c.Body.Bytes(), a.options)
	if err := r.Check(abilities); err != nil {
		return nil, err
	}
	address, f := a.address(a.resource(c.Model), "streamGenerateContent")
	if f != nil {
		return nil, f
	}
	address.RawQuery = "alt=sse"
	c.Body, c.Stream, c.AnyType = rawjson.Pieces{speechBody(&r)}, true, false
	answer, err := a.line.Send(ctx, exchange.Post{URL: address, Header: a.header, Call: c})
	if err != nil {
		return nil, err
	}
	return r.Answer(ctx, answer, voice.Events(c, answer, maxSpeech, func(data []byte) (voice.Piece, error) {
		piece, err := readSpeech(data)
		if err != nil {
			if f := a.line.Classify(c, data); f != nil {
				return piece, f
			}
		}
		return piece, err
	}))
}

// speechBody returns the body of a call.
func speechBody(r *voice.SpeechRequest) []byte {
	text := r.Input
	if r.Instructions != "" {
		text = r.Instructions + ":\n" + text
	}
	type object = map[string]any
	raw, _ := json.Marshal(object{ // cannot fail
		"contents": []object{{"role": "user", "parts": []object{{"text": text}}}},
		"generationConfig": object{"responseModalities": []string{"AUDIO"}, "speechConfig": object{
			"voiceConfig": object{"prebuiltVoiceConfig": object{"voiceName": r.Voice}}}},
	})
	return raw
}

// readSpeech reads an event of speech.
func readSpeech(data []byte) (p voice.Piece, err error) {
	var event struct {
		Candidates []struct {
			Content struct {
				Parts []struct {
					Inline struct {
						Type string `json:"mimeType"`
						Data []byte `json:"data"`
					} `json:"inlineData"`
				} `json:"parts"`
			} `json:"content"`
			Reason string `json:"finishReason"`
		} `json:"candidates"`
		Usage struct {
			Input  int64 `json:"promptTokenCount"`
			Output int64 `json:"candidatesTokenCount"`
		} `json:"usageMetadata"`
		Error    json.RawMessage `json:"error"`
		Feedback struct {
			Reason string `json:"blockReason"`
		} `json:"promptFeedback"`
	}
	if err := json.Unmarshal(data, &event); err != nil || event.Error != nil || event.Feedback.Reason != "" {
		return p, upstream.Fail(fault.UpstreamUnavailable, fmt.Errorf("an event without sound (%v)", err))
	}
	p.Input, p.Output = event.Usage.Input, event.Usage.Output
	if len(event.Candidates) == 0 {
		return p, nil
	}
	c := event.Candidates[0]
	for _, part := range c.Content.Parts {
		if len(part.Inline.Data) > 0 && !isRaw(part.Inline.Type) {
			return p, upstream.Fail(fault.UpstreamUnavailable, fmt.Errorf("sound of the type %.60q", part.Inline.Type))
		}
		p.Sound = append(p.Sound, part.Inline.Data...)
	}
	switch c.Reason {
	case "", "FINISH_REASON_UNSPECIFIED":
	case "STOP", "MAX_TOKENS":
		p.Last = true
	case "SAFETY", "PROHIBITED_CONTENT", "BLOCKLIST", "RECITATION", "SPII":
		return p, upstream.Fail(fault.ContentFilter, errors.New(c.Reason))
	default:
		return p, upstream.Fail(fault.UpstreamError, fmt.Errorf("the answer ended with %.60q", c.Reason))
	}
	return p, nil
}

// isRaw reports whether a content type is PCM at the rate of OpenAI's.
func isRaw(contentType string) bool {
	name, params, err := mime.ParseMediaType(contentType)
	rate := params["rate"]
	return err == nil && (strings.EqualFold(name, "audio/l16") || strings.EqualFold(name, "audio/pcm")) &&
		(rate == "" || rate == strconv.Itoa(voice.Rate))
}
