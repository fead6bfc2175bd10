package speech

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"tollgate/internal/fault"
	"tollgate/internal/sound"
	"tollgate/internal/sound/tone"
	"tollgate/internal/wire"
	"tollgate/internal/wire/kind"
)

// limits has limits of a model with all prices.
type limits struct{ kind.DefaultLimits }

// List implements kind.ModelLimits.
func (limits) List(name string) []string {
	return map[string][]string{voiceList: {"alloy", "verse"}, kind.FormatList: {"mp3", "wav"}}[name]
}

var model = limits{kind.DefaultLimits{Kind: Definition(), Numbers: map[string]int64{maxCharacters: 5, wideCharacters: 2}}}

// TestCheck checks the fields of requests.
func TestCheck(t *testing.T) {
	t.Parallel()
	for body, param := range map[string]string{
		`{"model":"m","input":"12345","voice":"alloy"}`:                                   "",
		`{"model":"m","input":"12中45","voice":"verse","response_format":"wav","speed":4}`: "",
		`{"model":"m","input":"a","voice":"alloy","speed":null,"instructions":"low"}`:     "",
		`{"model":"m","input":"a","voice":"alloy","stream_format":"sse"}`:                 "",
		`{"model":"m","input":"123456","voice":"alloy"}`:                                  "input",
		`{"model":"m","input":"","voice":"alloy"}`:                                        "input",
		`{"model":"m","input":["a"],"voice":"alloy"}`:                                     "input",
		`{"model":"m","voice":"alloy"}`:                                                   "input",
		`{"model":"m","input":"a"}`:                                                       "voice",
		`{"model":"m","input":"a","voice":""}`:                                            "voice",
		`{"model":"m","input":"a","voice":"echo"}`:                                        "voice",
		`{"model":"m","input":"a","voice":{"id":"voice_1"}}`:                              "voice",
		`{"model":"m","input":"a","voice":"alloy","response_format":"opus"}`:              "response_format",
		`{"model":"m","input":"a","voice":"alloy","response_format":7}`:                   "response_format",
		`{"model":"m","input":"a","voice":"alloy","speed":0.2}`:                           "speed",
		`{"model":"m","input":"a","voice":"alloy","speed":"1"}`:                           "speed",
		`{"model":"m","input":"a","voice":"alloy","stream_format":"json"}`:                "stream_format",
		`{"model":"m","input":"a","voice":"alloy","instructions":1}`:                      "instructions",
	} {
		opened, err := open([]byte(body))
		if err == nil {
			err = opened.Check(model)
		}
		if f := fault.Of(err); (err == nil) != (param == "") || err != nil && (f.Code != fault.InvalidRequest || f.Param != param) {
			t.Errorf("%s: got %v, want an error at %q", body, err, param)
		}
	}
}

// TestBound checks the count of characters. Here a wide one counts as two.
func TestBound(t *testing.T) {
	t.Parallel()
	opened, err := open([]byte(`{"model":"m","input":"a中한b","voice":"alloy"}`))
	if err != nil {
		t.Fatal(err)
	}
	if err := opened.Check(model); err != nil {
		t.Fatal(err)
	}
	if bound := opened.Parts(0)[0].Bound(); len(bound) != 1 || bound[characters] != 6 {
		t.Errorf("bound: got %v, want 6 characters", bound)
	}
}

// readAll reads an answer to a request and returns what the client gets before the charge, and after it.
func readAll(t testing.TB, request, contentType string, from io.Reader) (before, after string, s kind.Stream, err error) {
	t.Helper()
	opened, err := open([]byte(request))
	if err != nil {
		t.Fatal(err)
	}
	if err := opened.Check(kind.DefaultLimits{Kind: Definition()}); err != nil {
		t.Fatal(err)
	}
	s = opened.Parts(0)[0].(kind.StreamedPart).Stream(from, contentType, func(int64) bool { return true })
	for {
		out, err := s.Next(nil)
		if errors.Is(err, io.EOF) {
			return before, string(out), s, nil
		}
		before += string(out)
		if err != nil {
			return before, "", s, err
		}
	}
}

const (
	asksSound  = `{"model":"m","input":"0123456789012345678901234567890123456789","voice":"alloy"}`
	asksEvents = `{"model":"m","input":"hello","voice":"alloy","stream_format":"sse"}`
	delta      = "data: {\"type\":\"speech.audio.delta\",\"audio\":\"YWJj\"}\n\n"
	done       = "event: x\ndata: {\"type\":\"speech.audio.done\",\"usage\":{\"input_tokens\":3,\"output_tokens\":5}}\n\n"
)

// TestStream compares the bytes sent before the charge and after it. The answer comes whole, and byte by byte.
func TestStream(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		request, contentType, answer string
		before, after                string
		fails                        bool
	}{
		"sound":             {asksSound, "audio/mpeg", "abcdef", "abcde", "f", false},
		"one byte":          {asksSound, "audio/mpeg", "a", "", "a", false},
		"nothing":           {asksSound, "audio/mpeg", "", "", "", false},
		"sound in braces":   {asksSound, "audio/mpeg", `{"a":1}`, `{"a":1`, `}`, false},
		"without a type":    {asksSound, "", "0123456789abcdefghij", "0123456789abcdefghi", "j", false},
		"JSON":              {asksSound, "application/json; charset=utf-8", "[]", "", "", true},
		"JSON by its start": {asksSound, "", ` {"error":"no"}`, "", "", true},
		"a page":            {asksSound, "", "\n<!doctype html><html></html>", "", "", true},
		"text":              {asksSound, "text/plain", "busy", "", "", true},
		"decoded events":    {asksSound, "text/event-stream", delta + delta + done, "abcabc", "", false},
		"events": {asksEvents, "text/event-stream", delta + ": wait\n\n" + done + ": bye\n\n", delta + ": wait\n\n",
			done + ": bye\n\n", false},
		"events of sound": {asksEvents, "audio/mpeg", "abc", "", "", true},
		"no done":         {asksEvents, "text/event-stream", delta, delta, "", true},
		"an error event":  {asksEvents, "text/event-stream", delta + "data: {\"type\":\"error\"}\n\n", delta, "", true},
		"bad base64":      {asksSound, "text/event-stream", "data: {\"type\":\"speech.audio.delta\",\"audio\":\"?\"}\n\n" + done, "", "", true},
	} {
		for reads, from := range map[string]io.Reader{
			"whole": strings.NewReader(c.answer), "bytes": iotest.OneByteReader(strings.NewReader(c.answer)),
		} {
			before, after, _, err := readAll(t, c.request, c.contentType, from)
			if before != c.before || after != c.after || (err != nil) != c.fails {
				t.Errorf("%s, %s: got %q and %q, error %v; want %q and %q", name, reads, before, after, err, c.before, c.after)
			}
		}
	}
}

// TestCounts checks the gateway's counts of a whole answer and of a broken one.
func TestCounts(t *testing.T) {
	t.Parallel()
	_, _, s, err := readAll(t, asksSound, "audio/mpeg", strings.NewReader(strings.Repeat("s", 16_001)))
	if err != nil {
		t.Fatal(err)
	}
	whole, broken := s.Count(&wire.Counter{}, true), s.Count(&wire.Counter{}, false)
	if whole[characters] != 40 || broken[characters] != 32 || whole[kind.Minute] != 2000 || whole[kind.OutputAudio] != 64 {
		t.Errorf("got %v and %v, want 40 and 32 characters, 2 s and 64 tokens", whole, broken)
	}
}

// TestSandbox checks that each format has sound of a readable length with the text.
func TestSandbox(t *testing.T) {
	t.Parallel()
	for _, f := range formats {
		made, err := Definition().Sandbox([]byte(`{"model":"m","input":"Hé!","voice":"any","response_format":"`+f.name+`"}`), nil)
		if err != nil {
			t.Fatal(err)
		}
		if text, ok := tone.Text(made.Body); made.ContentType != f.contentType || !ok || text != "Hé!" {
			t.Errorf("%s: got %s with the text %q, want %s", f.name, made.ContentType, text, f.contentType)
		}
		length, ok := sound.Duration(strings.NewReader(string(made.Body)), int64(len(made.Body)))
		if f.name != "pcm" && f.name != "aac" && (!ok || length <= 0) {
			t.Errorf("%s: the length is %s", f.name, length)
		}
	}
	if _, ok := tone.Text([]byte("tollgate-sandbox-speech:=;")); ok {
		t.Error("a mark that is not base64 has a text")
	}
}

func FuzzAnswer(f *testing.F) {
	f.Add("text/event-stream", []byte(delta+done))
	f.Add("audio/wav", []byte("RIFF"))
	f.Fuzz(func(t *testing.T, contentType string, answer []byte) {
		before, after, s, err := readAll(t, asksSound, contentType, strings.NewReader(string(answer)))
		if !strings.Contains(contentType, "event-stream") && err == nil && before+after != string(answer) {
			t.Errorf("%q became %q", answer, before+after)
		}
		if n := s.Count(&wire.Counter{}, false)[characters]; n > 40 {
			t.Errorf("%d of 40 characters", n)
		}
	})
}
