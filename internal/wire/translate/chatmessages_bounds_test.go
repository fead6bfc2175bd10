package translate

import (
	"strings"
	"testing"

	"tollgate/internal/fault"
	"tollgate/internal/wire"
	"tollgate/internal/wire/conversation"
	"tollgate/internal/wire/internal/form"
	"tollgate/internal/wire/internal/wiretest"
	"tollgate/internal/wire/rawjson"
	"tollgate/internal/wire/translate/internal/pairtest"
)

func TestTrapInputDoesNotIncludeTheCache(t *testing.T) {
	t.Parallel()
	for _, u := range []wire.Usage{pairtest.Usage(), {Prompt: 5, Cached: 9, CacheWrite: 9}, {}} {
		message, err := messagesWhole([]byte(`{}`), pairtest.Identity(), u)
		if err != nil {
			t.Fatal(err)
		}
		split := rawjson.Field(message, "usage")
		input, _ := rawjson.Count(rawjson.Field(split, "input_tokens"))
		read, _ := rawjson.Count(rawjson.Field(split, "cache_read_input_tokens"))
		written, _ := rawjson.Count(rawjson.Field(split, "cache_creation_input_tokens"))
		if input < 0 || input+read+written < u.Prompt || read != u.Cached || written != u.CacheWrite+u.CacheWrite1h {
			t.Errorf("%+v is %s", u, split)
		}
		chat, err := chatWhole([]byte(`{}`), pairtest.Identity(), u)
		if err != nil {
			t.Fatal(err)
		}
		whole := form.ReadUsage(rawjson.Field(chat, "usage"))
		if !whole.CountedPrompt || !whole.CountedCompletion || whole.Prompt != u.Prompt || whole.Completion != u.Completion ||
			whole.Reasoning != u.Reasoning {
			t.Errorf("%+v is %+v", u, whole)
		}
	}
}

// TestTurnsOfTooManyCallsAreRefused checks the limit on the calls of a turn. The limit bounds the
// search for each result's call.
func TestTurnsOfTooManyCallsAreRefused(t *testing.T) {
	t.Parallel()
	calls := func(call string) string {
		return strings.TrimSuffix(strings.Repeat(call+",", conversation.MaxTurnCalls+1), ",")
	}
	_, err := pairtest.Body(newChatOnMessages(pairtest.Chat(t,
		wiretest.ChatMessages(`[{"role":"assistant","tool_calls":[`+calls(`{"function":{"name":"f"}}`)+`]}]`)),
		wire.Identity{}), translation("v", false))
	if code, param := wiretest.CodeOf(t, err); code != fault.InvalidRequest || param != "messages[0].tool_calls[256].function" {
		t.Errorf("%s %s", code, param)
	}
	_, err = pairtest.Body(newMessagesOnChat(pairtest.Messages(t,
		nativeAsk(`[{"role":"assistant","content":[`+calls(`{"type":"tool_use","id":"a","name":"f"}`)+`]}]`, ``)),
		wire.Identity{}), wire.Translation{})
	if code, param := wiretest.CodeOf(t, err); code != fault.InvalidRequest || param != "messages[0].content[256]" {
		t.Errorf("%s %s", code, param)
	}
}
