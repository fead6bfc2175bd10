package chatmessages

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	"tollgate/internal/fault"
	"tollgate/internal/wire"
	"tollgate/internal/wire/completions"
	"tollgate/internal/wire/internal/form"
	"tollgate/internal/wire/internal/wiretest"
	"tollgate/internal/wire/messages"
	"tollgate/internal/wire/rawjson"
	"tollgate/internal/wire/sse"
	"tollgate/internal/wire/translate/internal/piece"
)

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

// billed is a usage with all its parts.
func billed() wire.Usage {
	return wire.Usage{Prompt: 100, Cached: 60, CacheWrite: 20, CacheWrite1h: 5, Completion: 30, Reasoning: 10}
}

func TestTrapInputDoesNotIncludeTheCache(t *testing.T) {
	t.Parallel()
	for _, u := range []wire.Usage{billed(), {Prompt: 5, Cached: 9, CacheWrite: 9}, {}} {
		split := piece.AppendMessagesUsage(nil, u)
		input, _ := rawjson.Count(rawjson.Field(split, "input_tokens"))
		read, _ := rawjson.Count(rawjson.Field(split, "cache_read_input_tokens"))
		written, _ := rawjson.Count(rawjson.Field(split, "cache_creation_input_tokens"))
		if input < 0 || input+read+written < u.Prompt || read != u.Cached || written != u.CacheWrite+u.CacheWrite1h {
			t.Errorf("%+v is %s", u, split)
		}
		whole := form.ReadUsage(piece.AppendChatUsage(nil, u))
		if !whole.CountedPrompt || !whole.CountedCompletion || whole.Prompt != u.Prompt || whole.Completion != u.Completion ||
			whole.Reasoning != u.Reasoning {
			t.Errorf("%+v is %+v", u, whole)
		}
	}
}

// TestTurnsOfTooManyCallsAreRefused: every result is looked for among the calls
// before it, so there is an end to their number.
func TestTurnsOfTooManyCallsAreRefused(t *testing.T) {
	t.Parallel()
	calls := func(call string) string { return strings.TrimSuffix(strings.Repeat(call+",", maxTurnCalls+1), ",") }
	_, err := ToMessages(chatAsked(t,
		wiretest.AskingMessages(`[{"role":"assistant","tool_calls":[`+calls(`{"function":{"name":"f"}}`)+`]}]`)),
		wire.Identity{}).Body(translation("v", false))
	if code, param := wiretest.CodeOf(t, err); code != fault.InvalidRequest || param != "messages[0].tool_calls[256].function" {
		t.Errorf("%s %s", code, param)
	}
	_, err = ToChat(messagesAsked(t,
		nativeAsk(`[{"role":"assistant","content":[`+calls(`{"type":"tool_use","id":"a","name":"f"}`)+`]}]`, ``)),
		wire.Identity{}).Body(wire.Translation{})
	if code, param := wiretest.CodeOf(t, err); code != fault.InvalidRequest || param != "messages[0].content[256]" {
		t.Errorf("%s %s", code, param)
	}
}
