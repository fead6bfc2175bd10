// Package voice owns the translation of speech for vendors with an API of their own: the client's request,
// the abilities of a vendor, and the answer in OpenAI's shape.
//
// Invariants:
//   - A field beyond the vendor's abilities is refused before the call, or changes nothing in the sound.
//   - Sound is passed on as it arrives. A broken answer never looks complete.
package voice

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"tollgate/internal/upstream"
	"tollgate/internal/wire/rawjson"
)

// Kind is the kind of models.
const Kind = "speech"

// Formats of sound.
const (
	MP3  = "mp3"
	Opus = "opus"
	FLAC = "flac"
	WAV  = "wav"
	PCM  = "pcm"
)

// Rate is the sample rate of PCM and WAV in OpenAI's shape, in hertz. A sample is 16 bits of one channel.
const Rate = 24_000

// voicesOption is the option of a line with the vendor's voices by the clients' names for them.
const voicesOption = "voices"

// CheckOptions returns an error unless options has at most the option `voices`.
func CheckOptions(provider string) func(options map[string]any) error {
	return func(options map[string]any) error {
		for name, value := range options {
			if name != voicesOption {
				return fmt.Errorf("%s: unknown option. Provider %s has the option %s", name, provider, voicesOption)
			}
			if err := CheckVoices(value); err != nil {
				return err
			}
		}
		return nil
	}
}

// CheckVoices returns an error unless the value of the option `voices` maps names to names.
func CheckVoices(value any) error {
	names, ok := value.(map[string]any)
	for _, voice := range names {
		text, isText := voice.(string)
		ok = ok && isText && text != ""
	}
	if !ok {
		return fmt.Errorf("%s: must map the names that clients send to names of the provider", voicesOption)
	}
	return nil
}

// SpeechRequest is a client's request for speech.
type SpeechRequest struct {
	Input, Voice, Instructions string
	Format                     string  // response_format
	Speed                      float64 // 1 by default
	Events                     bool    // the answer is events, not sound
}

// Read reads the body of a call that has passed the checks of package wire/kind. It replaces the voice by
// the vendor's name in the line's option `voices`.
func Read(body []byte, options map[string]any) SpeechRequest {
	text := func(name string) string { return rawjson.Unquote(rawjson.NonNull(rawjson.Field(body, name))) }
	r := SpeechRequest{
		Input: text("input"), Voice: text("voice"), Instructions: text("instructions"),
		Format: cmp.Or(text("response_format"), MP3), Events: text("stream_format") == "sse", Speed: 1,
	}
	if speed, err := strconv.ParseFloat(string(rawjson.Field(body, "speed")), 64); err == nil {
		r.Speed = speed
	}
	names, _ := options[voicesOption].(map[string]any)
	if voice, ok := names[r.Voice].(string); ok {
		r.Voice = voice
	}
	return r
}

// Abilities are the fields of requests with a counterpart at a vendor.
type Abilities struct {
	Formats            []string
	MinSpeed, MaxSpeed float64 // both 0 without a choice of the speed
	Instructions       bool
}

// Check returns a failure with the name of a field beyond the vendor's abilities, or nil.
func (r *SpeechRequest) Check(a Abilities) error {
	switch {
	case !slices.Contains(a.Formats, r.Format):
		return upstream.Unsupported("response_format", "`{param}` must be one of %s for this model.", strings.Join(a.Formats, ", "))
	case r.Speed != 1 && a.MaxSpeed == 0:
		return upstream.Unsupported("speed", "`{param}` is not offered with this model. Leave it out.")
	case r.Speed != 1 && (r.Speed < a.MinSpeed || r.Speed > a.MaxSpeed):
		return upstream.Unsupported("speed", "`{param}` must be from %v to %v for this model.", a.MinSpeed, a.MaxSpeed)
	case r.Instructions != "" && !a.Instructions:
		return upstream.Unsupported("instructions", "`{param}` is not offered with this model. Leave it out.")
	}
	return nil
}
