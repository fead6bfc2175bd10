package transcription

import (
	"bytes"
	"io"
	"math"
	"mime"
	"regexp"
	"strconv"
	"time"

	"tollgate/internal/fault"
	"tollgate/internal/wire"
	"tollgate/internal/wire/kind"
	"tollgate/internal/wire/rawjson"
	"tollgate/internal/wire/sse"
)

const (
	// lastEvent is the type of the last event of a stream.
	lastEvent = "transcript.text.done"
	// maxWhole is the longest whole answer to a request for events, and the longest end of a stream, in
	// bytes.
	maxWhole = 8 << 20
)

// answer holds the data that the gateway reads in an answer.
type answer struct {
	text     string
	ended    time.Duration // the last time in the answer; 0 if the answer has no times
	reported kind.Quantities
}

// readAnswer reads a whole answer in a format. It returns an error for an answer in another
// format.
func readAnswer(raw []byte, format string) (a answer, err error) {
	switch format {
	case "text", "srt", "vtt":
		if bytes.HasPrefix(bytes.TrimSpace(raw), []byte("<")) {
			return answer{}, kind.Incomplete("it is a page")
		}
		return answer{text: string(raw), ended: lastTime(raw)}, nil
	}
	object, err := kind.ReadObject(raw)
	if err != nil {
		return answer{}, err
	}
	text := rawjson.Field(object, "text")
	if !rawjson.IsText(text) {
		return answer{}, kind.Incomplete("it has no text")
	}
	a = answer{text: rawjson.Unquote(text), reported: kind.Quantities{}}
	for _, list := range []string{"segments", "words"} {
		for _, element := range rawjson.Elements(rawjson.Field(object, list)) {
			if s, ok := readSeconds(rawjson.Field(element, "end")); ok {
				a.ended = max(a.ended, s)
			}
		}
	}
	a.readUsage(object)
	return a, nil
}

// readUsage reads the provider's counts of an answer or of the last event of a stream.
func (a *answer) readUsage(object []byte) {
	usage := rawjson.Field(object, "usage")
	length, ok := readSeconds(rawjson.Field(usage, "seconds"))
	if !ok {
		length, ok = readSeconds(rawjson.Field(object, "duration"))
	}
	if ok {
		a.reported[kind.Minute] = 1000 * wholeSeconds(length)
	}
	details := rawjson.Field(usage, "input_token_details")
	if details == nil {
		a.reported.AddCount(kind.InputAudio, usage, "input_tokens")
		if _, ok := a.reported[kind.InputAudio]; ok {
			a.reported[kind.Input] = 0
		}
	} else {
		a.reported.AddCount(kind.InputAudio, details, "audio_tokens")
		a.reported.AddCount(kind.Input, details, "text_tokens")
	}
	a.reported.AddCount(kind.Output, usage, "output_tokens")
}

// readSeconds reads a number of seconds, also one in a string, as some engines send it.
func readSeconds(raw []byte) (time.Duration, bool) {
	if rawjson.IsText(raw) {
		raw = rawjson.UnquoteBytes(raw)
	}
	s, err := strconv.ParseFloat(string(raw), 64)
	if err != nil || !(s >= 0) || s > math.MaxInt32 {
		return 0, false
	}
	return time.Duration(s * float64(time.Second)), true
}

// times matches the end of a subtitle in SRT and WebVTT.
var times = regexp.MustCompile(`--> *(?:(\d{1,4}):)?(\d{2}):(\d{2})[.,](\d{3})`)

// lastTime returns the end of the last subtitle, or 0.
func lastTime(raw []byte) (last time.Duration) {
	for _, m := range times.FindAllSubmatch(raw, -1) {
		number := func(i int) time.Duration {
			n, _ := strconv.Atoi(string(m[i])) // digits, or empty for no hours
			return time.Duration(n)
		}
		last = max(last, number(1)*time.Hour+number(2)*time.Minute+number(3)*time.Second+number(4)*time.Millisecond)
	}
	return last
}

// eventAnswer passes events on, or a whole answer to a request for events.
type eventAnswer struct {
	request     *request
	contentType string
	events      *kind.EventReader // nil for a whole answer
	from        io.Reader
	answer
}

// Stream implements kind.StreamedPart.
func (r *request) Stream(from io.Reader, contentType string, reserve func(int64) bool) kind.Stream {
	a := &eventAnswer{request: r, contentType: contentType, from: from}
	if lineType, _, _ := mime.ParseMediaType(contentType); lineType == "text/event-stream" {
		a.events = kind.NewEventReader(from, lastEvent, maxWhole, reserve)
	}
	return a
}

// ContentType implements kind.Stream.
func (a *eventAnswer) ContentType() string { return a.contentType }

// Next implements kind.Stream.
func (a *eventAnswer) Next(dst []byte) ([]byte, error) {
	if a.events == nil {
		return a.readWhole(dst)
	}
	return a.events.Next(dst, a.readEvent)
}

// readWhole reads an answer without events.
func (a *eventAnswer) readWhole(dst []byte) ([]byte, error) {
	raw, err := io.ReadAll(io.LimitReader(a.from, maxWhole+1))
	switch {
	case err != nil:
		return dst, err
	case len(raw) > maxWhole:
		return dst, kind.Incomplete("it is longer than %d bytes", maxWhole)
	}
	if a.answer, err = readAnswer(raw, a.request.format); err != nil {
		return dst, err
	}
	return append(dst, raw...), io.EOF
}

// Reported implements kind.Stream.
func (a *eventAnswer) Reported() kind.Quantities { return a.request.reported(&a.answer) }

// Count implements kind.Stream.
func (a *eventAnswer) Count(c *wire.Counter, _ bool) kind.Quantities {
	return a.request.count(c, &a.answer)
}

// Failure implements kind.Stream.
func (a *eventAnswer) Failure(dst []byte, f *fault.Error) []byte {
	if a.events == nil {
		return nil
	}
	return sse.AppendLines(dst, "", kind.ErrorEvent(f))
}

// readEvent reads an event and returns it for the client.
func (a *eventAnswer) readEvent(name string, e sse.Event) ([]byte, error) {
	switch name {
	case "transcript.text.delta":
		a.text += rawjson.Unquote(rawjson.Field(e.Data, "delta"))
	case "transcript.text.segment":
		if s, ok := readSeconds(rawjson.Field(e.Data, "end")); ok {
			a.ended = max(a.ended, s)
		}
	case lastEvent:
		if text := rawjson.Field(e.Data, "text"); rawjson.IsText(text) {
			a.text = rawjson.Unquote(text)
		}
		a.reported = kind.Quantities{}
		a.readUsage(e.Data)
	}
	return e.Raw, nil
}
