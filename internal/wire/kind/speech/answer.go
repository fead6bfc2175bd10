package speech

import (
	"bytes"
	"encoding/base64"
	"errors"
	"io"
	"mime"
	"strings"

	"tollgate/internal/fault"
	"tollgate/internal/wire"
	"tollgate/internal/wire/kind"
	"tollgate/internal/wire/rawjson"
	"tollgate/internal/wire/sse"
)

// Bytes of sound in a second.
const (
	rawRate        = 48_000 // of pcm and wav: 24,000 samples of 2 bytes
	compressedRate = 16_000
)

// charactersPerSecond is the highest charge for a second of a broken answer.
const charactersPerSecond = 16

const (
	// readSize is the size of a read of sound, in bytes.
	readSize = 16 << 10
	// startSize is the number of bytes needed to tell a text from sound.
	startSize = 16
	// lastEvent is the type of the last event.
	lastEvent = "speech.audio.done"
	// maxEnd bounds the last event and the bytes after it.
	maxEnd = 64 << 10
)

// answer reads the answer of a line. It implements the part of kind.Stream common to sound and
// events.
type answer struct {
	request     *request
	contentType string
	bytes       int64 // of sound passed on
	reported    kind.Quantities
}

// Stream implements kind.StreamedPart.
func (r *request) Stream(from io.Reader, contentType string, reserve func(int64) bool) kind.Stream {
	a := answer{request: r, contentType: contentType}
	lineType, _, _ := mime.ParseMediaType(contentType)
	if lineType == "text/event-stream" {
		if !r.events {
			a.contentType = r.soundType()
		}
		return &eventAnswer{answer: a, events: kind.NewEventReader(from, lastEvent, maxEnd, reserve)}
	}
	if !strings.HasPrefix(lineType, "audio/") {
		a.contentType = r.soundType()
	}
	return &soundAnswer{answer: a, from: from, buffer: make([]byte, readSize), lineType: lineType}
}

// soundType returns the content type of the requested format.
func (r *request) soundType() string {
	for _, f := range formats {
		if f.name == r.format {
			return f.contentType
		}
	}
	return formats[0].contentType
}

// ContentType implements kind.Stream.
func (a *answer) ContentType() string { return a.contentType }

// Reported implements kind.Stream.
func (a *answer) Reported() kind.Quantities { return a.reported }

// seconds returns the seconds of sound passed on so far, rounded up.
func (a *answer) seconds() int64 {
	rate := int64(compressedRate)
	if a.request.format == "pcm" || a.request.format == "wav" {
		rate = rawRate
	}
	return (a.bytes + rate - 1) / rate
}

// Count implements kind.Stream.
func (a *answer) Count(c *wire.Counter, complete bool) kind.Quantities {
	r, seconds := a.request, a.seconds()
	passed := r.characters
	if !complete {
		passed = min(passed, seconds*charactersPerSecond)
	}
	return kind.Quantities{
		characters:       passed,
		kind.Minute:      seconds * 1000,
		kind.Input:       c.Count([]byte(r.text), int64(len(r.text))) + c.Count([]byte(r.instructions), int64(len(r.instructions))),
		kind.OutputAudio: seconds * r.limits.Number(audioTokensPerSecond),
	}
}

// soundAnswer is an answer of sound. It holds back the last byte until the answer is complete.
type soundAnswer struct {
	answer
	from     io.Reader
	buffer   []byte
	lineType string
	held     []byte // read and not passed on yet
	checked  bool   // checkStart has accepted the beginning
}

// Next implements kind.Stream.
func (a *soundAnswer) Next(dst []byte) ([]byte, error) {
	n, err := a.from.Read(a.buffer)
	a.held = append(a.held, a.buffer[:n]...)
	ended := errors.Is(err, io.EOF)
	if err != nil && !ended {
		return dst, err
	}
	if !a.checked && (ended || len(a.held) >= startSize || strings.HasPrefix(a.lineType, "audio/")) {
		if err := a.checkStart(); err != nil {
			return dst, err
		}
		a.checked = true
	}
	pass := len(a.held)
	switch {
	case !a.checked:
		return dst, nil
	case !ended:
		pass = max(0, pass-1)
	}
	a.bytes += int64(pass)
	dst = append(dst, a.held[:pass]...)
	a.held = append(a.held[:0], a.held[pass:]...)
	if ended {
		return dst, io.EOF
	}
	return dst, nil
}

// checkStart returns an error if the answer is JSON, a text or a page, or if the client asked for events.
func (a *soundAnswer) checkStart() error {
	switch start := bytes.TrimLeft(a.held, " \t\r\n"); {
	case a.request.events:
		return kind.Incomplete("it is %q, not events", a.lineType)
	case strings.HasPrefix(a.lineType, "audio/"):
	case a.lineType == "application/json", strings.HasPrefix(a.lineType, "text/"),
		bytes.HasPrefix(start, []byte(`{"`)), bytes.HasPrefix(start, []byte("<!")), bytes.HasPrefix(start, []byte("<html")):
		return kind.Incomplete("it is %q, not sound", a.lineType)
	}
	return nil
}

// Failure implements kind.Stream. Sound has no event for a failure.
func (a *soundAnswer) Failure([]byte, *fault.Error) []byte { return nil }

// eventAnswer is an answer of events with sound. The client gets the events, or their sound.
type eventAnswer struct {
	answer
	events *kind.EventReader
}

// Next implements kind.Stream.
func (a *eventAnswer) Next(dst []byte) ([]byte, error) { return a.events.Next(dst, a.read) }

// read reads an event and returns the client's part of it.
func (a *eventAnswer) read(name string, e sse.Event) (sound []byte, err error) {
	switch name {
	case "speech.audio.delta":
		sound, err = base64.StdEncoding.AppendDecode(nil, rawjson.UnquoteBytes(rawjson.Field(e.Data, "audio")))
		if err != nil {
			return nil, kind.Incomplete("an event has sound that is not base64")
		}
		a.bytes += int64(len(sound))
	case lastEvent:
		usage := rawjson.Field(e.Data, "usage")
		a.reported = kind.Quantities{}
		a.reported.AddCount(kind.Input, usage, "input_tokens")
		a.reported.AddCount(kind.OutputAudio, usage, "output_tokens")
	}
	if a.request.events {
		return e.Raw, nil
	}
	return sound, nil
}

// Failure implements kind.Stream.
func (a *eventAnswer) Failure(dst []byte, f *fault.Error) []byte {
	if !a.request.events {
		return nil
	}
	return sse.AppendLines(dst, "", kind.ErrorEvent(f))
}
