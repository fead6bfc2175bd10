package wire

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"tollgate/internal/fault"
)

// someone is the identity of the answers in these tests.
func someone() Identity { return Identity{Request: "req_7", Model: "swift-1", Created: 1700000000} }

// chatAsked opens and checks a chat request.
func chatAsked(t testing.TB, body string) *ChatRequest {
	t.Helper()
	r, err := OpenChat([]byte(body))
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Check(); err != nil {
		t.Fatal(err)
	}
	return r
}

// messagesAsked opens and checks a messages request.
func messagesAsked(t testing.TB, body string) *MessagesRequest {
	t.Helper()
	r, err := OpenMessages([]byte(body))
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
	Append(dst []byte, e Event, f Frame) []byte
	End(dst []byte, u Usage) []byte
	Fail(dst []byte, err *fault.Error) []byte
}

// flowed is what became of a stream that passed a writer.
type flowed struct {
	out      []byte
	finished bool // the provider told the end
}

// flow passes a provider's stream through a writer, as a conductor does: an
// error of the provider's, or what cannot be read, ends it in Fail; a whole
// stream in End, with the usage u; one that was cut in nothing.
func flow(stream []byte, w writer, chat bool, u Usage) flowed {
	r, m := NewEventReader(bytes.NewReader(stream), 1<<20), NewChatMeter(1)
	var got flowed
	for {
		e, err := r.Next()
		switch {
		case errors.Is(err, io.EOF) && got.finished:
			got.out = w.End(got.out, u)
			return got
		case errors.Is(err, io.EOF):
			return got
		case err != nil:
			got.out = w.Fail(got.out, fault.New(fault.UpstreamConnectionError, "The connection broke."))
			return got
		}
		var f Frame
		if chat {
			if f, err = m.Read(e); err != nil {
				f.Err = &ProviderError{Reason: "no JSON"}
			}
			got.finished = got.finished || f.Finished
		} else {
			f.Err = nativeError(e)
			got.finished = got.finished || isText(field(field(e.Data, "delta"), "stop_reason"))
		}
		if f.Err != nil {
			got.out = w.Fail(w.Append(got.out, e, f), fault.New(fault.UpstreamUnavailable, "The provider failed."))
			return got
		}
		got.out = w.Append(got.out, e, f)
	}
}

// nativeError returns the error that an event of the messages form reports.
func nativeError(e Event) *ProviderError {
	if e.Name == "error" || unquote(field(e.Data, "type")) == "error" {
		return &ProviderError{Body: bytes.Clone(e.Data)}
	}
	return nil
}

// TestPairScenarios plays requests and answers between chat completions and
// messages, both ways. A scenario's comment says which form the client speaks
// (`chat` or `messages`) and what its line knows; -update writes what comes of
// it anew.
func TestPairScenarios(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join("testdata", "pairs", "*.txtar"))
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
					now = translated(t, given["request"], chat, strings.Contains(string(archive.Comment), "reasoning"))
				case "got":
					now = answered(t, given["answer"], chat)
				case "events":
					now = streamed(t, given["stream"], chat, strings.Contains(given["request"], "include_usage"))
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

// translated is the request as the line gets it, or the refusal.
func translated(t *testing.T, request string, chat, reasoning bool) string {
	in := Translation{Edits: Edits{Model: "vendor-model", LimitField: "max_completion_tokens"}, MaxOutput: 8192, Reasoning: reasoning}
	var body []byte
	var err error
	if chat {
		body, err = chatAsked(t, request).AsMessages(in)
	} else {
		body, err = messagesAsked(t, request).AsChat(in)
	}
	if err != nil {
		code, param := codeOf(t, err)
		return fmt.Sprintf("%s %s", code, param)
	}
	if chat {
		_, err = OpenMessages(body)
	} else {
		_, err = OpenChat(body)
	}
	if err != nil {
		t.Errorf("the line refuses %s: %v", body, err)
	}
	return string(body)
}

// answered is a whole answer as the client gets it. Its usage is what a chat
// usage in it says, or else an invented one.
func answered(t *testing.T, answer string, chat bool) string {
	var body []byte
	var err error
	if chat {
		body, err = ChatFromMessages([]byte(answer), someone(), billed())
	} else {
		body, err = MessagesFromChat([]byte(answer), someone(), billed())
	}
	if err != nil {
		t.Fatal(err)
	}
	if !isValid(body) {
		t.Errorf("no JSON: %s", body)
	}
	return string(body)
}

// billed is a usage with all its parts.
func billed() Usage {
	return Usage{Prompt: 100, Cached: 60, CacheWrite: 20, CacheWrite1h: 5, Completion: 30, Reasoning: 10}
}

// streamed is a stream as the client gets it.
func streamed(t *testing.T, stream string, chat, includeUsage bool) string {
	var got flowed
	if chat {
		got = flow([]byte(stream+"\n\n"), NewChatFromMessages(someone(), includeUsage), false, billed())
		if err := soundChat(got.out); err != nil {
			t.Errorf("%v in\n%s", err, got.out)
		}
	} else {
		got = flow([]byte(stream+"\n\n"), NewMessagesFromChat(someone()), true, billed())
		if err := soundMessages(got.out); err != nil {
			t.Errorf("%v in\n%s", err, got.out)
		}
	}
	return string(got.out)
}
