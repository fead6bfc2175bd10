package minimax

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"

	"tollgate/internal/fault"
	"tollgate/internal/upstream"
	"tollgate/internal/upstream/chatcall"
	"tollgate/internal/upstream/exchange"
	"tollgate/internal/upstream/voice"
	"tollgate/internal/wire/rawjson"
)

// maxSpeech is the maximum length of a speech event, in bytes. The last event may repeat all sound in
// hexadecimal.
const maxSpeech = 48 << 20

// abilities are the abilities of the models for speech.
var abilities = voice.Abilities{Formats: []string{voice.MP3, voice.FLAC, voice.WAV, voice.PCM}, MinSpeed: 0.5, MaxSpeed: 2}

// Sample rate of compressed sound, and the bit rate of MP3. The gateway counts the seconds of a broken answer by
// this bit rate.
const (
	compressedRate = 32_000
	bitRate        = 128_000
)

// speech is the body of a call.
type speech struct {
	Model         string        `json:"model"`
	Text          string        `json:"text"`
	Stream        bool          `json:"stream"`
	StreamOptions streamOptions `json:"stream_options"`
	Voice         voiceSetting  `json:"voice_setting"`
	Audio         audioSetting  `json:"audio_setting"`
}

type streamOptions struct {
	ExcludeWhole bool `json:"exclude_aggregated_audio"`
}

type voiceSetting struct {
	ID    string  `json:"voice_id"`
	Speed float64 `json:"speed"`
}

type audioSetting struct {
	Format  string `json:"format"`
	Rate    int    `json:"sample_rate"`
	BitRate int    `json:"bitrate"`
	Channel int    `json:"channel"`
}

// Chat implements chatcall.Adapter for speech, which is streamed.
func (a *Adapter) Chat(ctx context.Context, c chatcall.Call) (*chatcall.Response, error) {
	if c.Form != voice.Kind {
		return a.NoChat.Chat(ctx, c)
	}
	r := voice.Read(c.Body.Bytes(), a.options)
	if err := r.Check(abilities); err != nil {
		return nil, err
	}
	audio := audioSetting{r.Format, compressedRate, bitRate, 1}
	if r.Format == voice.WAV || r.Format == voice.PCM {
		audio.Format, audio.Rate = voice.PCM, voice.Rate
	}
	body, _ := json.Marshal(speech{c.Model, r.Input, true, streamOptions{true}, voiceSetting{r.Voice, r.Speed}, audio}) // cannot fail
	c.Body, c.Stream, c.AnyType = rawjson.Pieces{body}, true, false
	answer, err := a.Line.Send(ctx, exchange.Post{URL: a.Line.URL("v1", "t2a_v2"), Header: a.Header, Call: c})
	if err != nil {
		return nil, err
	}
	hasSound := false
	return r.Answer(ctx, answer, voice.Events(c, answer, maxSpeech, func(data []byte) (voice.Piece, error) {
		if f := a.Line.Classify(c, data); f != nil {
			return voice.Piece{}, f
		}
		piece, err := readSpeech(data)
		if piece.Last && hasSound {
			piece.Sound = nil // a repetition of all sound
		}
		hasSound = hasSound || len(piece.Sound) > 0
		return piece, err
	}))
}

// statusEnd is the status of the last event.
const statusEnd = 2

// readSpeech reads an event of speech.
func readSpeech(data []byte) (voice.Piece, error) {
	var event struct {
		Data struct {
			Audio  string `json:"audio"`
			Status int    `json:"status"`
		} `json:"data"`
	}
	if err := json.Unmarshal(data, &event); err != nil {
		return voice.Piece{}, upstream.Fail(fault.UpstreamUnavailable, err)
	}
	sound, err := hex.DecodeString(event.Data.Audio)
	if err != nil {
		return voice.Piece{}, upstream.Fail(fault.UpstreamUnavailable, errors.New("an event has sound that is not hexadecimal"))
	}
	return voice.Piece{Sound: sound, Last: event.Data.Status == statusEnd}, nil
}
