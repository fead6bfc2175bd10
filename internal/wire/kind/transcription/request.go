package transcription

import (
	"maps"
	"strconv"
	"time"

	"tollgate/internal/wire"
	"tollgate/internal/wire/kind"
	"tollgate/internal/wire/rawjson"
)

// formats are the values of `response_format`, the default first. Never changed.
var formats = []string{"json", "text", "srt", "verbose_json", "vtt", "diarized_json"}

// Bit rates for a file without a readable duration.
const (
	lowestBitRate = 6_000  // for the hold
	usualBitRate  = 64_000 // for the charge
)

// request is a form of POST /v1/audio/transcriptions or translations.
type request struct {
	kind.JSONRequest

	limits kind.ModelLimits
	file   *kind.Upload
	format string // response_format
	stream bool
	prompt string

	whole answer // a line's whole answer
	raw   []byte // the bytes of whole
}

func open(body []byte) (kind.Request, error) {
	doc, err := kind.OpenJSON(body)
	return &request{JSONRequest: doc}, err
}

// SetFile implements kind.FileRequest.
func (r *request) SetFile(f *kind.Upload) { r.file = f }

// Check implements kind.Request.
func (r *request) Check(l kind.ModelLimits) error {
	r.limits = l
	if err := r.CheckFields(fields); err != nil {
		return err
	}
	for _, name := range []string{"url", "file_url"} {
		if r.JSON.Find(name) != nil {
			return kind.Invalid(name, "`{param}` is not offered. Send the sound as a file in the field `file`.")
		}
	}
	r.prompt = rawjson.Unquote(r.JSON.Raw("prompt"))
	if r.file == nil {
		return kind.Invalid(kind.FileField, "Send the file in the field `{param}`, with a file name.")
	}
	var err error
	if r.format, err = r.Format(l, formats); err != nil {
		return err
	}
	for _, check := range []func() error{r.readStream, r.checkTemperature, r.checkLength} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

func (r *request) readStream() error {
	raw := r.JSON.Raw("stream")
	switch value := rawjson.Unquote(raw); {
	case raw == nil, value == "false":
		r.stream = false
	case value == "true":
		r.stream = true
	default:
		return kind.Invalid("stream", "`{param}` must be true or false.")
	}
	return nil
}

func (r *request) checkTemperature() error {
	raw := r.JSON.Raw("temperature")
	if raw == nil {
		return nil
	}
	if t, err := strconv.ParseFloat(rawjson.Unquote(raw), 64); err != nil || !(t >= 0 && t <= 1) {
		return kind.Invalid("temperature", "`{param}` must be a number from 0 to 1.")
	}
	return nil
}

// checkLength refuses a file above max_seconds.
func (r *request) checkLength() error {
	most := r.limits.Number(maxSeconds)
	if most > 0 && r.file.Duration > time.Duration(most)*time.Second {
		return kind.Invalid(kind.FileField, "The file has %d seconds of sound. This model takes at most %d; split the file.",
			wholeSeconds(r.file.Duration), most)
	}
	return nil
}

// wholeSeconds returns d in seconds, rounded up.
func wholeSeconds(d time.Duration) int64 { return int64((d + time.Second - 1) / time.Second) }

// longest returns the highest possible number of seconds of sound in the file.
func (r *request) longest() int64 {
	if r.file.Duration > 0 {
		return wholeSeconds(r.file.Duration)
	}
	n := r.secondsAt(lowestBitRate)
	if most := r.limits.Number(maxSeconds); most > 0 {
		n = min(n, most)
	}
	return n
}

// secondsAt returns the seconds of the file at a bit rate, rounded up.
func (r *request) secondsAt(bitRate int64) int64 { return (r.file.Size*8 + bitRate - 1) / bitRate }

// Parts implements kind.Request. A request is one part.
func (r *request) Parts(int64) []kind.Part { return []kind.Part{r} }

// Body implements kind.Part.
func (r *request) Body(model string, omit []string) rawjson.Pieces { return r.Edited(model, omit, nil) }

// File implements kind.FilePart.
func (r *request) File() *kind.Upload { return r.file }

// Bound implements kind.Part.
func (r *request) Bound() kind.Quantities {
	return r.quantities(r.longest(), int64(len(r.prompt))+slack, r.limits.Number(maxOutputTokens)).Only(r.limits)
}

// quantities returns the counts of some seconds of sound, and of tokens of text.
func (r *request) quantities(seconds, prompt, output int64) kind.Quantities {
	return kind.Quantities{
		kind.Minute:     1000 * max(seconds, r.limits.Number(minSeconds)),
		kind.InputAudio: seconds * r.limits.Number(audioTokensPerSecond),
		kind.Input:      prompt,
		kind.Output:     output,
	}
}

// count returns the gateway's counts for an answer.
func (r *request) count(c *wire.Counter, a *answer) kind.Quantities {
	seconds := r.longest()
	if r.file.Duration == 0 {
		guess := r.secondsAt(usualBitRate)
		if a.ended > 0 {
			guess = wholeSeconds(a.ended)
		}
		seconds = min(seconds, guess)
	}
	return r.quantities(seconds, c.Count([]byte(r.prompt), int64(len(r.prompt))), c.Count([]byte(a.text), int64(len(a.text))))
}

// reported returns the provider's counts of an answer, for kind.Believed. A provider may round the
// duration up.
func (r *request) reported(a *answer) kind.Quantities {
	q := maps.Clone(a.reported) // a stream calls reported several times
	ms, ok := q[kind.Minute]
	if longest := 1000 * r.longest(); ok && ms > 0 && ms <= longest+1000 {
		q[kind.Minute] = max(min(ms, longest), 1000*r.limits.Number(minSeconds))
	} else if ok {
		q[kind.Minute] = -1
	}
	return q
}

// Count implements kind.Part.
func (r *request) Count(c *wire.Counter) kind.Quantities { return r.count(c, &r.whole) }

// Read implements kind.Part.
func (r *request) Read(raw []byte) (_ kind.Quantities, err error) {
	if r.whole, err = readAnswer(raw, r.format); err != nil {
		return nil, err
	}
	r.raw = raw
	return r.reported(&r.whole), nil
}

// Answer implements kind.Request.
func (r *request) Answer([]kind.Part, kind.Charged) [][]byte { return [][]byte{r.raw} }

// AsksStream implements kind.StreamedPart.
func (r *request) AsksStream() bool { return r.stream }
