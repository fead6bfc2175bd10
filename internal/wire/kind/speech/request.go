package speech

import (
	"slices"
	"strconv"
	"strings"
	"unicode"

	"tollgate/internal/wire"
	"tollgate/internal/wire/kind"
	"tollgate/internal/wire/rawjson"
)

// formats has the content type of each `response_format`, the default first. Never changed.
var formats = []struct{ name, contentType string }{
	{"mp3", "audio/mpeg"}, {"opus", "audio/opus"}, {"aac", "audio/aac"}, {"flac", "audio/flac"}, {"wav", "audio/wav"}, {"pcm", "audio/pcm"},
}

// formatNames returns the values of `response_format`.
func formatNames() (names []string) {
	for _, f := range formats {
		names = append(names, f.name)
	}
	return names
}

// Bounds of `speed`.
const (
	minSpeed = 0.25
	maxSpeed = 4
)

// request is a body of POST /v1/audio/speech.
type request struct {
	kind.JSONRequest

	limits       kind.ModelLimits
	text         string // input
	instructions string
	characters   int64  // of text, as they are charged
	format       string // response_format
	events       bool   // the client asked for events
}

func open(body []byte) (kind.Request, error) {
	doc, err := kind.OpenJSON(body)
	return &request{JSONRequest: doc}, err
}

// Check implements kind.Request.
func (r *request) Check(l kind.ModelLimits) error {
	r.limits = l
	if err := r.CheckFields(fields); err != nil {
		return err
	}
	readFormat := func() (err error) {
		r.format, err = r.Format(l, formatNames())
		return err
	}
	for _, check := range []func() error{r.readInput, r.checkVoice, readFormat, r.checkSpeed, r.readStreamFormat} {
		if err := check(); err != nil {
			return err
		}
	}
	raw := r.JSON.Raw("instructions")
	if raw != nil && !rawjson.IsText(raw) {
		return kind.Invalid("instructions", "`{param}` must be a string.")
	}
	r.instructions = rawjson.Unquote(raw)
	return nil
}

// readInput reads the text and counts its characters.
func (r *request) readInput() error {
	raw := r.JSON.Raw("input")
	if r.text = rawjson.Unquote(raw); r.text == "" {
		return kind.Invalid("input", "`{param}` is required: the text to speak, as a string.")
	}
	wide := r.limits.Number(wideCharacters)
	var n int64
	r.characters = 0
	for _, c := range r.text {
		n++
		if isWide(c) {
			r.characters += wide
		} else {
			r.characters++
		}
	}
	if most := r.limits.Number(maxCharacters); n > most {
		return kind.Invalid("input", "`{param}` has %d characters. This model reads at most %d; split the text.", n, most)
	}
	return nil
}

// isWide reports whether a character is Chinese, Japanese or Korean.
func isWide(c rune) bool {
	return unicode.In(c, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul, unicode.Bopomofo)
}

func (r *request) checkVoice() error {
	raw := r.JSON.Raw("voice")
	voice := rawjson.Unquote(raw)
	switch voices := r.limits.List(voiceList); {
	case raw != nil && raw[0] == '{':
		return kind.StoredError("voice")
	case voice == "":
		return kind.Invalid("voice", "`{param}` is required: the name of a voice, as a string.")
	case len(voices) > 0 && !slices.Contains(voices, voice):
		return kind.Invalid("voice", "`{param}` must be one of %s for this model.", strings.Join(voices, ", "))
	}
	return nil
}

func (r *request) checkSpeed() error {
	raw := r.JSON.Raw("speed")
	if raw == nil {
		return nil
	}
	if speed, err := strconv.ParseFloat(string(raw), 64); err != nil || speed < minSpeed || speed > maxSpeed {
		return kind.Invalid("speed", "`{param}` must be a number from %v to %v.", minSpeed, maxSpeed)
	}
	return nil
}

// readStreamFormat reads `stream_format`.
func (r *request) readStreamFormat() error {
	r.events = false
	raw := r.JSON.Raw("stream_format")
	switch value := rawjson.Unquote(raw); {
	case raw == nil, value == "audio":
	case value == "sse":
		r.events = true
	default:
		return kind.Invalid("stream_format", "`{param}` must be audio or sse.")
	}
	return nil
}

// asksEvents reports whether the line is asked for events. Only events report usage.
func (r *request) asksEvents() bool { return r.events || r.limits.Priced(kind.OutputAudio) }

// Parts implements kind.Request. A request is one part.
func (r *request) Parts(int64) []kind.Part { return []kind.Part{r} }

// Body implements kind.Part.
func (r *request) Body(model string, omit []string) rawjson.Pieces {
	return r.Edited(model, omit, func(m *rawjson.Edits) {
		if r.asksEvents() && !r.events {
			m.Set("stream_format", []byte(`"sse"`))
		}
	})
}

// Bound implements kind.Part.
func (r *request) Bound() kind.Quantities {
	return kind.Quantities{
		characters:       r.characters,
		kind.Minute:      r.limits.Number(maxSeconds) * 1000,
		kind.Input:       int64(len(r.text)+len(r.instructions)) + slack,
		kind.OutputAudio: r.limits.Number(maxOutputTokens),
	}.Only(r.limits)
}

// Count implements kind.Part. Streams have their own Count.
func (r *request) Count(c *wire.Counter) kind.Quantities { return (&answer{request: r}).Count(c, true) }

// Read implements kind.Part. Every answer is a stream.
func (r *request) Read([]byte) (kind.Quantities, error) {
	return nil, kind.Incomplete("it was read whole")
}

// Answer implements kind.Request. Every answer is a stream.
func (r *request) Answer([]kind.Part, kind.Charged) [][]byte { return nil }

// AsksStream implements kind.StreamedPart.
func (r *request) AsksStream() bool { return true }
