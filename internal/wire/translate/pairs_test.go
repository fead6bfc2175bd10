package translate

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tollgate/internal/fault"
	"tollgate/internal/wire"
	"tollgate/internal/wire/completions"
	"tollgate/internal/wire/internal/wiretest"
	"tollgate/internal/wire/messages"
	"tollgate/internal/wire/rawjson"
	"tollgate/internal/wire/sse"
	"tollgate/internal/wire/translate/chatmessages"

	"golang.org/x/tools/txtar"
)

var update = flag.Bool("update", false, "write what the scenarios of testdata come to anew")

// someone is the identity of the answers in these tests.
func someone() wire.Identity {
	return wire.Identity{Request: "req_7", Model: "swift-1", Created: 1700000000}
}

// chatAsked opens and checks a chat request.
func chatAsked(t testing.TB, body string) *completions.Request {
	t.Helper()
	r, err := completions.Open([]byte(body))
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Check(); err != nil {
		t.Fatal(err)
	}
	return r
}

// messagesAsked opens and checks a messages request.
func messagesAsked(t testing.TB, body string) *messages.Request {
	t.Helper()
	r, err := messages.Open([]byte(body))
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Check(); err != nil {
		t.Fatal(err)
	}
	return r
}

// writer is what turns a line's events into the client's form.
type writer interface {
	Append(dst []byte, e sse.Event, f wire.Frame) []byte
	End(dst []byte, u wire.Usage) []byte
	Fail(dst []byte, err *fault.Error) []byte
}

// reader is what reads a line's events.
type reader interface {
	Read(e sse.Event) (wire.Frame, error)
	Complete() bool
}

// flow passes a provider's stream through a writer, as a conductor does: an
// error of the provider's, or what cannot be read, ends it in Fail; a whole
// stream in End, with the usage u; one that was cut in nothing.
func flow(stream []byte, w writer, m reader, u wire.Usage) (out []byte) {
	r := sse.NewReader(bytes.NewReader(stream), 1<<20)
	for {
		e, err := r.Next()
		switch {
		case errors.Is(err, io.EOF) && m.Complete():
			return w.End(out, u)
		case errors.Is(err, io.EOF):
			return out
		case err != nil:
			return w.Fail(out, fault.New(fault.UpstreamConnectionError, "The connection broke."))
		}
		f, err := m.Read(e)
		if err != nil || f.Err != nil {
			return w.Fail(out, fault.New(fault.UpstreamUnavailable, "The provider failed."))
		}
		if out = w.Append(out, e, f); f.Done && m.Complete() {
			return w.End(out, u)
		}
	}
}

// TestPairScenarios plays requests and answers between chat completions and
// messages, both ways. A scenario's comment says which form the client speaks
// (`chat` or `messages`) and what its line knows; -update writes what comes of
// it anew.
func TestPairScenarios(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join("testdata", "*.txtar"))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			t.Parallel()
			archive, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			chat := strings.HasPrefix(string(archive.Comment), "chat")
			given := map[string]string{}
			for _, p := range archive.Files {
				given[p.Name] = strings.TrimSpace(string(p.Data))
			}
			for i, p := range archive.Files {
				var now string
				switch p.Name {
				case "sent":
					now = lineGets(t, given["request"], chat, strings.Contains(string(archive.Comment), "reasoning"))
				case "got":
					now = answerFor(t, given["answer"], chat)
				case "events":
					now = streamFor(t, given["stream"], chat, strings.Contains(given["request"], "include_usage"))
				default:
					continue
				}
				now = strings.TrimSpace(now) + "\n"
				if now != string(p.Data) && !*update {
					t.Errorf("%s\n%s\nwant\n%s", p.Name, now, p.Data)
				}
				archive.Files[i].Data = []byte(now)
			}
			if *update {
				if err := os.WriteFile(file, txtar.Format(archive), 0o644); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// lineGets is the request as the line gets it, or the refusal.
func lineGets(t *testing.T, request string, chat, reasoning bool) string {
	in := wire.Translation{Edits: wire.Edits{Model: "vendor-model", LimitField: "max_completion_tokens"},
		MaxOutput: 8192, Reasoning: reasoning}
	var body []byte
	var err error
	if chat {
		body, err = chatmessages.ToMessages(chatAsked(t, request), wire.Identity{}).Body(in)
	} else {
		body, err = chatmessages.ToChat(messagesAsked(t, request), wire.Identity{}).Body(in)
	}
	if err != nil {
		code, param := wiretest.CodeOf(t, err)
		return fmt.Sprintf("%s %s", code, param)
	}
	if chat {
		_, err = messages.Open(body)
	} else {
		_, err = completions.Open(body)
	}
	if err != nil {
		t.Errorf("the line refuses %s: %v", body, err)
	}
	return string(body)
}

// answerFor is a whole answer as the client gets it. Its usage is what a chat
// usage in it says, or else an invented one.
func answerFor(t *testing.T, answer string, chat bool) string {
	var body []byte
	var err error
	if chat {
		body, err = chatWhole([]byte(answer), someone(), billed())
	} else {
		body, err = messagesWhole([]byte(answer), someone(), billed())
	}
	if err != nil {
		t.Fatal(err)
	}
	if !rawjson.IsValid(body) {
		t.Errorf("no JSON: %s", body)
	}
	return string(body)
}

// billed is a usage with all its parts.
func billed() wire.Usage {
	return wire.Usage{Prompt: 100, Cached: 60, CacheWrite: 20, CacheWrite1h: 5, Completion: 30, Reasoning: 10}
}

// streamFor is a stream as the client gets it.
func streamFor(t *testing.T, stream string, chat, includeUsage bool) string {
	var got []byte
	sound := wiretest.SoundMessages
	if chat {
		got, sound = flow([]byte(stream+"\n\n"), chatWriter(someone(), includeUsage), messages.NewMeter(), billed()), wiretest.SoundChat
	} else {
		got = flow([]byte(stream+"\n\n"), messagesWriter(someone()), completions.NewMeter(1), billed())
	}
	if err := sound(got); err != nil {
		t.Errorf("%v in\n%s", err, got)
	}
	return string(got)
}
