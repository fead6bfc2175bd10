package voice

import (
	"errors"
	"io"
	"strings"
	"testing"

	"tollgate/internal/fault"
	"tollgate/internal/upstream"
	"tollgate/internal/upstream/chatcall"
	"tollgate/internal/wire/kind"
)

// readEvent reads an event of a test: its sound, and whether it is the last.
func readEvent(data []byte) (Piece, error) {
	switch s := string(data); {
	case strings.Contains(s, "wrong"):
		return Piece{}, upstream.Fail(fault.UpstreamBusy, errors.New("busy"))
	case strings.Contains(s, "last"):
		return Piece{Input: 3, Output: 4, Last: true}, nil
	default:
		return Piece{Sound: data}, nil
	}
}

// speak returns what the client gets of events.
func speak(t *testing.T, r SpeechRequest, events string) (body string, err error) {
	t.Helper()
	from := &chatcall.Response{Body: io.NopCloser(strings.NewReader(events)), ContentType: "text/event-stream"}
	answer, err := r.Answer(t.Context(), from, Events(chatcall.Call{}, from, 1000, readEvent))
	if err != nil {
		return "", err
	}
	raw, err := io.ReadAll(answer.Body)
	return string(raw), errors.Join(err, answer.Body.Close())
}

// TestEvents tests complete and broken answers of events. A failure before the first sound is the call's.
func TestEvents(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		events, want string
		asEvents     bool
		err          error
		code         fault.Code
	}{
		"complete": {events: "data: {1}\n\n: ping\n\ndata: {2}\n\ndata: {last}\n\n", want: "{1}{2}"},
		"as events": {events: "data: {1}\n\ndata: {last}\n\n", asEvents: true, want: "data: " +
			"{\"type\":\"speech.audio.delta\",\"audio\":\"ezF9\"}\n\n" +
			"data: {\"type\":\"speech.audio.done\",\"usage\":{\"input_tokens\":3,\"output_tokens\":4,\"total_tokens\":7}}\n\n"},
		"no last event":      {events: "data: {1}\n\n", want: "{1}", err: kind.ErrIncomplete},
		"an unfinished one":  {events: "data: {1}\n\ndata: {2", want: "{1}", err: kind.ErrIncomplete},
		"too long":           {events: "data: {1}\n\ndata: {" + strings.Repeat("x", 2000) + "}\n\n", want: "{1}", err: kind.ErrIncomplete},
		"a failure":          {events: "data: {wrong}\n\n", code: fault.UpstreamBusy},
		"no sound":           {events: "data: {last}\n\n", code: fault.EmptyCompletion},
		"no sound at all":    {events: "", code: fault.UpstreamUnavailable},
		"no sound as events": {events: "data: {last}\n\n", asEvents: true, code: fault.EmptyCompletion},
	} {
		body, err := speak(t, SpeechRequest{Format: MP3, Events: c.asEvents}, c.events)
		var f *upstream.Failure
		switch {
		case c.code != "":
			if !errors.As(err, &f) || f.Code != c.code {
				t.Errorf("%s: got the error %v, want %s", name, err, c.code)
			}
		case body != c.want || !errors.Is(err, c.err):
			t.Errorf("%s: got %q, error %v; want %q, error %v", name, body, err, c.want, c.err)
		}
	}
}

// TestBudget tests that an event beyond the budget of memory is a failure which is not the line's.
func TestBudget(t *testing.T) {
	t.Parallel()
	from := &chatcall.Response{Body: io.NopCloser(strings.NewReader("data: {" + strings.Repeat("x", 100_000) + "}\n\n"))}
	c := chatcall.Call{Reserve: func(int64) bool { return false }}
	_, err := (&SpeechRequest{Format: MP3}).Answer(t.Context(), from, Events(c, from, 1<<20, readEvent))
	var f *upstream.Failure
	if !errors.As(err, &f) || f.Health != upstream.HealthNone || !errors.Is(err, kind.ErrNoMemory) {
		t.Errorf("got the error %v, want one about the budget that does not count against the line", err)
	}
}

// TestHeader tests that WAV is PCM with a header.
func TestHeader(t *testing.T) {
	t.Parallel()
	body, err := speak(t, SpeechRequest{Format: WAV}, "data: {1}\n\ndata: {last}\n\n")
	want := "RIFF\xff\xff\xff\xffWAVEfmt \x10\x00\x00\x00\x01\x00\x01\x00\xc0\x5d\x00\x00\x80\xbb\x00\x00\x02\x00\x10\x00" +
		"data\xff\xff\xff\xff{1}"
	if body != want || err != nil {
		t.Errorf("got %q, error %v; want %q", body, err, want)
	}
}

// TestTypes tests that an answer of another type than sound is a failure.
func TestTypes(t *testing.T) {
	t.Parallel()
	for contentType, good := range map[string]bool{"audio/mpeg": true, "application/octet-stream": true, "audio/L16; rate=24000": true,
		"application/json": false, "text/html": false, "": false} {
		_, err := Bytes(&chatcall.Response{Body: io.NopCloser(strings.NewReader("x")), ContentType: contentType})
		if (err == nil) != good {
			t.Errorf("%q: got the error %v, want none: %t", contentType, err, good)
		}
	}
}
