package translate

import (
	"flag"
	"fmt"
	"strings"
	"testing"

	"tollgate/internal/wire"
	"tollgate/internal/wire/completions"
	"tollgate/internal/wire/internal/form"
	"tollgate/internal/wire/internal/wiretest"
	"tollgate/internal/wire/messages"
	"tollgate/internal/wire/rawjson"
	"tollgate/internal/wire/responses"
	"tollgate/internal/wire/translate/internal/pairtest"
)

var update = flag.Bool("update", false, "write what the scenarios of testdata come to anew")

// origin is the origin of the answers of responses lines in these tests.
const origin = "openai\nhttps://api.openai.com\n${KEY}"

// fromResponses is the identity of an answer of such a line.
func fromResponses() wire.Identity {
	id := pairtest.Identity()
	id.Origin = origin
	return id
}

// onResponses returns the pair for a request of either form and a responses line.
func onResponses(t testing.TB, request string, chat bool) wire.Pair {
	if chat {
		return New(pairtest.Chat(t, request), wire.FormResponses, fromResponses())
	}
	return New(pairtest.Messages(t, request), wire.FormResponses, fromResponses())
}

// answersOfResponses returns a pair to test answers only.
func answersOfResponses(chat bool) wire.Pair {
	if chat {
		r := &completions.Request{Request: form.Request{Parameters: wire.Parameters{N: 1, IncludeUsage: true}}}
		return New(r, wire.FormResponses, fromResponses())
	}
	return New(&messages.Request{}, wire.FormResponses, fromResponses())
}

// toResponses returns the properties of a responses line.
func toResponses(words string) wire.Translation {
	return wire.Translation{Edits: wire.Edits{Model: "gpt-x"}, MaxOutput: 8192,
		Reasoning: strings.Contains(words, "reasoning"), OpenAI: strings.Contains(words, "openai")}
}

// TestResponsesScenarios translates requests and answers of both other forms for responses lines. A
// scenario's comment names the client's form (`chat` or `messages`) and properties of the line
// (`reasoning`, `openai`); -update rewrites the results.
func TestResponsesScenarios(t *testing.T) {
	t.Parallel()
	pairtest.Scenarios(t, "testdata/responses/*.txtar", *update, func(t *testing.T, s pairtest.Scenario) func(part string) (string, bool) {
		pair := onResponses(t, s.Parts["request"], s.Chat())
		return func(part string) (string, bool) {
			switch part {
			case "sent":
				return responsesLineGets(t, pair, toResponses(s.Comment)), true
			case "got":
				return responsesAnswerFor(t, pair, s.Parts["answer"]), true
			case "events":
				return responsesStreamFor(t, pair, s.Parts["stream"], s.Chat()), true
			}
			return "", false
		}
	})
}

// responsesLineGets returns the line's request, or the error.
func responsesLineGets(t *testing.T, pair wire.Pair, in wire.Translation) string {
	t.Helper()
	body, err := pairtest.Body(pair, in)
	if err != nil {
		code, param := wiretest.CodeOf(t, err)
		return fmt.Sprintf("%s %s", code, param)
	}
	if wrong := checkInput(body); wrong != "" {
		t.Errorf("%s in %s", wrong, body)
	}
	return string(body)
}

// responsesAnswerFor returns the client's answer.
func responsesAnswerFor(t *testing.T, pair wire.Pair, answer string) string {
	t.Helper()
	a, err := pair.Read([]byte(answer))
	if err != nil {
		t.Fatal(err)
	}
	pieces, err := pair.Render(a, []byte(answer), pairtest.Usage())
	if err != nil || !rawjson.IsValid(pieces[0]) {
		t.Fatalf("%v: %s", err, pieces[0])
	}
	return string(pieces[0])
}

// responsesStreamFor returns the client's stream.
func responsesStreamFor(t *testing.T, pair wire.Pair, stream string, chat bool) string {
	t.Helper()
	m, w := pair.Events()
	got := pairtest.Flow([]byte(stream+"\n\n"), w, m, pairtest.Usage())
	if err := streamCheck(chat)(got); err != nil {
		t.Errorf("%v in\n%s", err, got)
	}
	return string(got)
}

// streamCheck returns the check of a client's stream.
func streamCheck(chat bool) func([]byte) error {
	if chat {
		return wiretest.CheckChat
	}
	return wiretest.CheckMessages
}

// checkInput checks a request by the rules of providers of the responses form: every item has a
// type and none an id, every call has a result of its type directly after the calls of its turn,
// ids of calls differ and have at most 64 characters, no text is blank, reasoning is followed by
// something, the assistant does not come last, and nothing is stored.
func checkInput(body []byte) string {
	r, err := responses.Open(body)
	if err == nil {
		err = r.Check()
	}
	if err != nil {
		return err.Error()
	}
	if string(r.Doc.Raw("store")) != "false" {
		return "it is stored"
	}
	if limit, ok := rawjson.Integer(r.Doc.Raw("max_output_tokens")); ok && limit < 16 {
		return "the limit is too small"
	}
	open, seen := map[string]string{}, map[string]bool{}
	last, answering := "", false
	for _, item := range rawjson.Elements(r.Doc.Raw("input")) {
		kind, id := rawjson.Unquote(rawjson.Field(item, "type")), rawjson.Unquote(rawjson.Field(item, "call_id"))
		if rawjson.Field(item, "id") != nil {
			return "an item has an id"
		}
		if kind == "message" {
			kind = rawjson.Unquote(rawjson.Field(item, "role"))
		}
		switch kind {
		case "function_call", "custom_tool_call":
			if seen[id] || id == "" || len(id) > 64 {
				return "a bad id of a call: " + id
			}
			if kind == "function_call" && !rawjson.IsText(rawjson.Field(item, "arguments")) {
				return "a call without arguments"
			}
			open[id], seen[id] = kind+"_output", true
		case "function_call_output", "custom_tool_call_output":
			if open[id] != kind {
				return "a result of nothing"
			}
			delete(open, id)
		case "reasoning":
			if rawjson.Field(item, "encrypted_content") == nil || rawjson.Field(item, "summary") == nil {
				return "what was thought is not whole"
			}
		case "user", "system", "developer":
			if len(open) > 0 {
				return "calls are open"
			}
			if last == "reasoning" {
				return "nothing follows what was thought"
			}
			if wrong := soundContent(rawjson.Field(item, "content")); wrong != "" {
				return wrong
			}
		case "assistant":
			if len(open) > 0 && answering {
				return "calls are open"
			}
		default:
			return "an unknown item: " + kind
		}
		answering = strings.HasSuffix(kind, "_output")
		last = kind
	}
	if len(open) > 0 || last == "assistant" || last == "reasoning" || last == "" {
		return "no good end"
	}
	return ""
}

func soundContent(content []byte) string {
	if rawjson.IsText(content) && strings.TrimSpace(rawjson.Unquote(content)) == "" {
		return "a blank text"
	}
	for _, part := range rawjson.Elements(content) {
		switch rawjson.Unquote(rawjson.Field(part, "type")) {
		case "input_text":
			if strings.TrimSpace(rawjson.Unquote(rawjson.Field(part, "text"))) == "" {
				return "a blank text"
			}
		case "input_image":
			if !rawjson.IsText(rawjson.Field(part, "image_url")) || !rawjson.IsText(rawjson.Field(part, "detail")) {
				return "an image without address or detail"
			}
		case "input_file":
		default:
			return "an unknown part"
		}
	}
	return ""
}
