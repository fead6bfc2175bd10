package transcription

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"tollgate/internal/sound/tone"
	"tollgate/internal/wire"
	"tollgate/internal/wire/kind"
)

// mustCheck returns a valid request with a file of 2.5 seconds.
func mustCheck(t testing.TB, fields string) *request {
	t.Helper()
	opened, err := open([]byte(`{"model":"m"` + fields + `}`))
	if err != nil {
		t.Fatal(err)
	}
	r := opened.(*request)
	r.SetFile(&kind.Upload{Name: "a.wav", Size: 20_000, Duration: 2500 * time.Millisecond})
	if err := r.Check(kind.DefaultLimits{Kind: Definition()}); err != nil {
		t.Fatal(err)
	}
	return r
}

// TestReadAnswer checks which answers are complete, and the last time in them.
func TestReadAnswer(t *testing.T) {
	t.Parallel()
	const ms = time.Millisecond
	for name, c := range map[string]struct {
		format, answer string
		text           string
		ended          time.Duration
		fails          bool
	}{
		"json":       {"json", `{"text":"hi"}`, "hi", 0, false},
		"empty text": {"json", `{"text":""}`, "", 0, false},
		"segments": {"verbose_json", `{"text":"hi","segments":[{"end":1.5},{"end":3}],"words":[{"end":3.25}]}`, "hi", 3250 * ms,
			false},
		"srt":          {"srt", "00:00:01,000 --> 01:02:03,500\n", "00:00:01,000 --> 01:02:03,500\n", time.Hour + 123500*ms, false},
		"vtt":          {"vtt", "WEBVTT\n\n00:01.000 --> 02:03.500\n", "WEBVTT\n\n00:01.000 --> 02:03.500\n", 123500 * ms, false},
		"plain":        {"text", "hi", "hi", 0, false},
		"a page":       {"text", " <html>", "", 0, true},
		"no text":      {"json", `{"status":"busy"}`, "", 0, true},
		"text of list": {"json", `{"text":["hi"]}`, "", 0, true},
		"no JSON":      {"json", `hi`, "", 0, true},
	} {
		a, err := readAnswer([]byte(c.answer), c.format)
		if a.text != c.text || a.ended != c.ended || (err != nil) != c.fails {
			t.Errorf("%s: got %q until %s, error %v; want %q until %s", name, a.text, a.ended, err, c.text, c.ended)
		}
	}
}

// TestStream compares the bytes sent before the charge and after it.
func TestStream(t *testing.T) {
	t.Parallel()
	const delta, done = "data: {\"type\":\"transcript.text.delta\",\"delta\":\"hi\"}\n\n",
		"data: {\"type\":\"transcript.text.done\",\"text\":\"hi\",\"usage\":{\"seconds\":2}}\n\n"
	for name, c := range map[string]struct {
		contentType, answer string
		before, after       string
		seconds             int64 // reported, or 0
		fails               bool
	}{
		"events":         {"text/event-stream", delta + done + "data: [DONE]\n\n", delta, done + "data: [DONE]\n\n", 2, false},
		"whole":          {"application/json", `{"text":"hi","duration":1.2}`, "", `{"text":"hi","duration":1.2}`, 2, false},
		"no end":         {"text/event-stream", delta, delta, "", 0, true},
		"an error event": {"text/event-stream", "data: {\"type\":\"error\"}\n\n", "", "", 0, true},
		"no text":        {"application/json", `{}`, "", "", 0, true},
	} {
		r := mustCheck(t, `,"stream":"true"`)
		s := r.Stream(iotest.OneByteReader(strings.NewReader(c.answer)), c.contentType, func(int64) bool { return true })
		var before, after string
		var err error
		for err == nil {
			var out []byte
			if out, err = s.Next(nil); errors.Is(err, io.EOF) {
				after = string(out)
			} else {
				before += string(out)
			}
		}
		if before != c.before || after != c.after || errors.Is(err, io.EOF) == c.fails || s.Reported()[kind.Minute] != c.seconds*1000 {
			t.Errorf("%s: got %q and %q, error %v, reported %v; want %q and %q and %d s",
				name, before, after, err, s.Reported(), c.before, c.after, c.seconds)
		}
	}
}

// TestLeastSecondsAreReportedAgain checks that a stream can ask for its counts several times, also if the
// least number of seconds is above the duration of the file.
func TestLeastSecondsAreReportedAgain(t *testing.T) {
	t.Parallel()
	r := mustCheck(t, "")
	r.limits = kind.DefaultLimits{Kind: Definition(), Numbers: map[string]int64{minSeconds: 10}}
	a, err := readAnswer([]byte(`{"text":"hi","usage":{"seconds":2}}`), "json")
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if ms := r.reported(&a)[kind.Minute]; ms != 10_000 {
			t.Errorf("got %d ms, want 10000", ms)
		}
	}
}

// TestSandbox checks the text of the sandbox's own speech in each format.
func TestSandbox(t *testing.T) {
	t.Parallel()
	spoken, err := tone.Speak("A ship at sea.", "wav")
	if err != nil {
		t.Fatal(err)
	}
	file := &kind.Upload{Bytes: strings.NewReader(string(spoken)), Size: int64(len(spoken))}
	for _, format := range formats {
		made, err := sandbox([]byte(`{"model":"m","response_format":"`+format+`"}`), file)
		if err != nil || !strings.Contains(string(made.Body), "A ship at sea.") {
			t.Errorf("%s: got %s, %v; want the text", format, made.Body, err)
		}
		if _, err := readAnswer(made.Body, format); err != nil {
			t.Errorf("%s: %v", format, err)
		}
	}
}

func FuzzAnswer(f *testing.F) {
	f.Add("json", []byte(`{"text":"hi","usage":{"seconds":1e9,"input_token_details":{"audio_tokens":-1}}}`))
	f.Add("srt", []byte("99:99:99,999 --> 9999:99:99,999"))
	f.Fuzz(func(t *testing.T, format string, answer []byte) {
		a, err := readAnswer(answer, format)
		if err != nil {
			return
		}
		r := mustCheck(t, "")
		if ms := r.reported(&a)[kind.Minute]; ms > 3000 {
			t.Errorf("%s: %d ms of 3000 are believed", answer, ms)
		}
		if ms := r.count(&wire.Counter{}, &a)[kind.Minute]; ms != 3000 {
			t.Errorf("%s: the gateway counts %d ms, want 3000", answer, ms)
		}
	})
}
