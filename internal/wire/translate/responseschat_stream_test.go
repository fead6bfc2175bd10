package translate

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tollgate/internal/fault"
	"tollgate/internal/wire"
	"tollgate/internal/wire/completions"
	"tollgate/internal/wire/internal/wiretest"
	"tollgate/internal/wire/responses"
	"tollgate/internal/wire/sse"
	"tollgate/internal/wire/translate/internal/pairtest"

	"golang.org/x/tools/txtar"
)

// onChat passes a chat stream through meter and translator: bytes written since the finish wait,
// and are dropped if the stream fails.
func onChat(stream []byte, r *responses.Request) []byte {
	reader, m, w := sse.NewReader(bytes.NewReader(stream), 1<<20), completions.NewMeter(1), responsesWriter(r)
	var out []byte
	held := -1
	fail := func(code fault.Code, message string) []byte {
		if held >= 0 {
			out = out[:held]
		}
		return w.Fail(out, fault.New(code, "%s", message))
	}
	for {
		e, err := reader.Next()
		switch {
		case errors.Is(err, io.EOF) && m.Complete():
			u, _ := m.Usage()
			return w.End(out, u)
		case err != nil:
			return fail(fault.UpstreamConnectionError, "The connection broke.")
		}
		f, err := m.Read(e)
		switch {
		case err != nil:
			return fail(fault.UpstreamUnavailable, "What came is not JSON.")
		case f.Err != nil:
			return fail(fault.UpstreamBusy, "The provider reported an error.")
		}
		if f.Finished && held < 0 {
			held = len(out)
		}
		out = w.Append(out, e, f)
	}
}

// TestResponsesOnChat tests the scenarios of testdata: the request, the chat line's request, its
// answer, and the client's answer.
func TestResponsesOnChat(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join("testdata", "responseschat", "*.txtar"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no scenarios: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			t.Parallel()
			playResponsesOnChat(t, file)
		})
	}
}

func playResponsesOnChat(t *testing.T, file string) {
	archive, err := txtar.ParseFile(file)
	if err != nil {
		t.Fatal(err)
	}
	parts := map[string]*txtar.File{}
	for i := range archive.Files {
		parts[archive.Files[i].Name] = &archive.Files[i]
	}
	for _, name := range []string{"request", "chat", "upstream", "answer"} {
		if parts[name] == nil {
			t.Fatalf("no part %s", name)
		}
	}
	r := pairtest.Responses(t, string(parts["request"].Data))
	chat, err := pairtest.Body(New(r, wire.FormChat, wire.Identity{}),
		wire.Translation{Edits: wire.Edits{Model: "vendor", LimitField: "max_tokens", AskUsage: true}})
	if err != nil {
		t.Fatal(err)
	}
	mustBeChat(t, chat)
	upstream := parts["upstream"].Data
	var answer []byte
	if r.Stream {
		answer = onChat(upstream, r)
		wiretest.MustCheckResponses(t, answer)
	} else {
		answer = wholeResponse(t, upstream, r)
	}
	for name, got := range map[string][]byte{"chat": indented(t, chat), "answer": answer} {
		got = append(bytes.TrimSpace(got), '\n')
		if !bytes.Equal(got, parts[name].Data) && !*update {
			t.Errorf("%s\n%s\nwant\n%s", name, got, parts[name].Data)
		}
		parts[name].Data = got
	}
	if *update {
		if err := os.WriteFile(file, txtar.Format(archive), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// mustBeChat fails the test unless a body is a valid chat request.
func mustBeChat(t *testing.T, body []byte) {
	t.Helper()
	r, err := completions.Open(body)
	if err != nil {
		t.Fatalf("%v\n%s", err, body)
	}
	if err := r.Check(); err != nil {
		t.Fatalf("%v\n%s", err, body)
	}
}

// wholeResponse translates an answer, and reads it like a provider's own.
func wholeResponse(t *testing.T, chat []byte, r *responses.Request) []byte {
	t.Helper()
	a, err := completions.ReadAnswer(chat)
	if err != nil {
		t.Fatal(err)
	}
	u, _ := a.Usage()
	out, err := wholeAnswer(chat, u, r)
	if err != nil {
		t.Fatal(err)
	}
	read, err := responses.ReadAnswer(out)
	if err != nil || !read.Summary().Ended || read.Summary().Content != a.Summary().Content || read.Summary().Limited != a.Summary().Limited ||
		read.Summary().Filtered != a.Summary().Filtered {
		t.Errorf("read as %+v, %v; the answer was %+v", read, err, a)
	}
	if again, known := read.Usage(); !known || again.Prompt != u.Prompt || again.Completion != u.Completion || again.Cached != u.Cached ||
		again.Reasoning != u.Reasoning {
		t.Errorf("usage read as %+v, was %+v", again, u)
	}
	return indented(t, out)
}

func indented(t *testing.T, body []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	if err := json.Indent(&out, body, "", "  "); err != nil {
		t.Fatalf("%v\n%s", err, body)
	}
	return out.Bytes()
}

// FuzzResponsesFromChat checks that the client's stream is well formed and ends, and that an answer
// reads as a response, whatever a chat line sends.
func FuzzResponsesFromChat(f *testing.F) {
	files, err := filepath.Glob(filepath.Join("testdata", "responseschat", "*.txtar"))
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		archive, err := txtar.ParseFile(file)
		if err != nil {
			f.Fatal(err)
		}
		for _, part := range archive.Files {
			if part.Name == "upstream" {
				f.Add(part.Data)
			}
		}
	}
	half := wiretest.Delta(`{"content":"x"}`, "null")
	f.Add([]byte(wiretest.Frames(half, `{"choices":[{"delta":{"content":"a\ud83d"}}]}`,
		`{"choices":[{"delta":{"content":"\ude00`+"\xff\x01"+`"}}]}`)))
	f.Add([]byte(wiretest.Frames(half, `{"choices":[{"delta":{"function_call":{"arguments":"{"}}}]}`,
		`{"choices":[{"delta":{"function_call":{"name":"note","arguments":"}"}},"finish_reason":"stop"}]}`)))
	f.Fuzz(func(t *testing.T, stream []byte) {
		r := pairtest.Responses(t, `{"input":"x","stream":true,"tools":[{"type":"custom","name":"note"},`+
			`{"type":"function","name":"get_weather"}]}`)
		out := onChat(stream, r)
		if _, err := wiretest.CheckResponses(out); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		whole, err := wholeAnswer(stream, wire.Usage{}, r)
		if err != nil {
			return
		}
		if a, err := responses.ReadAnswer(whole); err != nil || !a.Summary().Ended {
			t.Fatalf("%v\n%s", err, whole)
		}
	})
}

// TestResponsesFromChatFailsAtOnce tests an error before the first frame.
func TestResponsesFromChatFailsAtOnce(t *testing.T) {
	t.Parallel()
	w := responsesWriter(pairtest.Responses(t, `{"input":"x","stream":true}`))
	seen := wiretest.MustCheckResponses(t, w.Fail(nil, fault.New(fault.UpstreamBusy, "Busy.")))
	if seen.Terminal != "response.failed" {
		t.Error(seen.Terminal)
	}
}

// TestResponsesFromChatUnsettled checks that an end without settlement is dropped and replaced by
// an error.
func TestResponsesFromChatUnsettled(t *testing.T) {
	t.Parallel()
	word, stop := wiretest.Delta(`{"content":"word"}`, "null"), wiretest.Delta(`{}`, `"stop"`)
	for name, stream := range map[string]string{
		"after a text": wiretest.Frames(word, stop, "[DONE]"),
		"at once":      wiretest.Frames(stop, "[DONE]"),
		"in one frame": wiretest.Frames(word, wiretest.Delta(`{"content":"end"}`, `"stop"`)),
	} {
		m, w := completions.NewMeter(1), responsesWriter(pairtest.Responses(t, `{"input":"x","stream":true}`))
		out, held := pairtest.StreamWithoutEnd(t, stream, w, m)
		w.End(out, wire.Usage{})
		seen := wiretest.MustCheckResponses(t, w.Fail(out[:held:held], fault.New(fault.ServiceUnavailable, "Not settled.")))
		if seen.Terminal != "response.failed" {
			t.Errorf("%s: %s", name, seen.Terminal)
		}
	}
}

// BenchmarkResponsesFromChat measures an ordinary frame.
func BenchmarkResponsesFromChat(b *testing.B) {
	r := pairtest.Responses(b, `{"input":"x"}`)
	m, w := completions.NewMeter(1), responsesWriter(r)
	e, err := sse.NewReader(strings.NewReader(wiretest.Frames(wiretest.Delta(`{"content":" word"}`, "null"))), 1<<20).Next()
	if err != nil {
		b.Fatal(err)
	}
	out := make([]byte, 0, 4<<10)
	b.SetBytes(int64(len(e.Raw)))
	b.ReportAllocs()
	for b.Loop() {
		f, err := m.Read(e)
		if err != nil || !f.Token {
			b.Fatal(err)
		}
		out = w.Append(out[:0], e, f)
	}
}

// responsesWriter returns the writer of the answer of a chat line to r.
func responsesWriter(r *responses.Request) wire.Writer {
	_, w := New(r, wire.FormChat, identity).Events()
	return w
}

// wholeAnswer translates a chat completion into a response.
func wholeAnswer(raw []byte, u wire.Usage, r *responses.Request) ([]byte, error) {
	pieces, err := New(r, wire.FormChat, identity).Render(nil, raw, u)
	return pieces[0], err
}
