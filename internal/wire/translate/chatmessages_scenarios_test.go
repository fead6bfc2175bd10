package translate

import (
	"fmt"
	"strings"
	"testing"

	"tollgate/internal/wire"
	"tollgate/internal/wire/completions"
	"tollgate/internal/wire/internal/wiretest"
	"tollgate/internal/wire/messages"
	"tollgate/internal/wire/rawjson"
	"tollgate/internal/wire/translate/internal/pairtest"
)

// TestPairScenarios translates requests and answers between chat completions and messages, both
// ways. A scenario's comment names the client's form (`chat` or `messages`) and properties of the
// line; -update rewrites the results.
func TestPairScenarios(t *testing.T) {
	t.Parallel()
	pairtest.Scenarios(t, "testdata/chatmessages/*.txtar", *update, func(t *testing.T, s pairtest.Scenario) func(part string) (string, bool) {
		given, chat := s.Parts, s.Chat()
		return func(part string) (string, bool) {
			switch part {
			case "sent":
				return lineGets(t, given["request"], chat, strings.Contains(s.Comment, "reasoning")), true
			case "got":
				return answerFor(t, given["answer"], chat), true
			case "events":
				return streamFor(t, given["stream"], chat, strings.Contains(given["request"], "include_usage")), true
			}
			return "", false
		}
	})
}

// lineGets returns the line's request, or the error.
func lineGets(t *testing.T, request string, chat, reasoning bool) string {
	in := wire.Translation{Edits: wire.Edits{Model: "vendor-model", LimitField: "max_completion_tokens"},
		MaxOutput: 8192, Reasoning: reasoning}
	var body []byte
	var err error
	if chat {
		body, err = pairtest.Body(newChatOnMessages(pairtest.Chat(t, request), wire.Identity{}), in)
	} else {
		body, err = pairtest.Body(newMessagesOnChat(pairtest.Messages(t, request), wire.Identity{}), in)
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

// answerFor returns the client's answer, with the usage of a chat answer or an invented one.
func answerFor(t *testing.T, answer string, chat bool) string {
	var body []byte
	var err error
	if chat {
		body, err = chatWhole([]byte(answer), pairtest.Identity(), pairtest.Usage())
	} else {
		body, err = messagesWhole([]byte(answer), pairtest.Identity(), pairtest.Usage())
	}
	if err != nil {
		t.Fatal(err)
	}
	if !rawjson.IsValid(body) {
		t.Errorf("no JSON: %s", body)
	}
	return string(body)
}

// streamFor returns the client's stream.
func streamFor(t *testing.T, stream string, chat, includeUsage bool) string {
	var got []byte
	sound := wiretest.CheckMessages
	if chat {
		sound = wiretest.CheckChat
		got = pairtest.Flow([]byte(stream+"\n\n"), chatWriter(pairtest.Identity(), includeUsage), messages.NewMeter(), pairtest.Usage())
	} else {
		got = pairtest.Flow([]byte(stream+"\n\n"), messagesWriter(pairtest.Identity()), completions.NewMeter(1), pairtest.Usage())
	}
	if err := sound(got); err != nil {
		t.Errorf("%v in\n%s", err, got)
	}
	return string(got)
}
