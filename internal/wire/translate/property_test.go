package translate

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"tollgate/internal/wire"
	"tollgate/internal/wire/conversation"
	"tollgate/internal/wire/rawjson"
	"tollgate/internal/wire/translate/internal/pairtest"
)

// historyStep is a message of a random history.
type historyStep struct {
	user  string // the user's text, or empty for the assistant
	text  string // of the assistant, may be empty
	calls []historyCall
}

// historyCall is a call and its result.
type historyCall struct{ id, name, arguments, result string }

// randomHistory returns a history with a user's text, or a result, as the last.
func randomHistory(r *rand.Rand) (steps []historyStep) {
	texts := []string{"Hi", "größe \U0001F600", "a \"quote\"", "back\\slash", "line\nbreak", "</tag>", "0", "{}"}
	arguments := []string{`{}`, `{"a":1}`, `{"n":12345678901234567890,"s":"\"x\""}`, `{"deep":{"list":[1,null,true]}}`}
	text := func() string { return texts[r.IntN(len(texts))] }
	for n := range 1 + r.IntN(4) {
		steps = append(steps, historyStep{user: text()})
		step := historyStep{}
		if r.IntN(2) == 0 {
			step.text = text()
		}
		for k := range r.IntN(4) {
			id := fmt.Sprintf("call_%d_%d", n, k)
			name := []string{"f", "get_weather", "mcp__server-1__tool"}[r.IntN(3)]
			step.calls = append(step.calls, historyCall{id, name, arguments[r.IntN(len(arguments))], text()})
		}
		if step.text == "" && step.calls == nil { // successive texts of the user would become one
			step.text = text()
		}
		steps = append(steps, step)
	}
	if len(steps[len(steps)-1].calls) == 0 {
		steps = append(steps, historyStep{user: text()})
	}
	return steps
}

// quote returns a text as JSON.
func quote(text string) string { return string(rawjson.Quote(text)) }

// bodyOf returns a request with a history in a form.
func bodyOf(form wire.Form, steps []historyStep) string {
	var list []string
	add := func(format string, args ...any) { list = append(list, fmt.Sprintf(format, args...)) }
	for _, s := range steps {
		var calls, results []string
		switch {
		case s.user != "":
			add(`{"role":"user","content":%s}`, quote(s.user))
		case form == wire.FormChat:
			content := "null"
			if s.text != "" {
				content = quote(s.text)
			}
			for _, c := range s.calls {
				calls = append(calls, fmt.Sprintf(`{"id":%q,"type":"function","function":{"name":%q,"arguments":%s}}`,
					c.id, c.name, quote(c.arguments)))
			}
			if calls == nil {
				add(`{"role":"assistant","content":%s}`, content)
				continue
			}
			add(`{"role":"assistant","content":%s,"tool_calls":[%s]}`, content, strings.Join(calls, ","))
			for _, c := range s.calls {
				add(`{"role":"tool","tool_call_id":%q,"content":%s}`, c.id, quote(c.result))
			}
		case form == wire.FormMessages:
			if s.text != "" {
				calls = append(calls, fmt.Sprintf(`{"type":"text","text":%s}`, quote(s.text)))
			}
			for _, c := range s.calls {
				calls = append(calls, fmt.Sprintf(`{"type":"tool_use","id":%q,"name":%q,"input":%s}`, c.id, c.name, c.arguments))
				results = append(results, fmt.Sprintf(`{"type":"tool_result","tool_use_id":%q,"content":%s}`, c.id, quote(c.result)))
			}
			add(`{"role":"assistant","content":[%s]}`, strings.Join(calls, ","))
			if results != nil {
				add(`{"role":"user","content":[%s]}`, strings.Join(results, ","))
			}
		default:
			if s.text != "" {
				add(`{"type":"message","role":"assistant","content":%s}`, quote(s.text))
			}
			for _, c := range s.calls {
				add(`{"type":"function_call","call_id":%q,"name":%q,"arguments":%s}`, c.id, c.name, quote(c.arguments))
			}
			for _, c := range s.calls {
				add(`{"type":"function_call_output","call_id":%q,"output":%s}`, c.id, quote(c.result))
			}
		}
	}
	member := map[wire.Form]string{wire.FormChat: "messages", wire.FormMessages: "messages", wire.FormResponses: "input"}[form]
	return fmt.Sprintf(`{"model":"m","max_tokens":9,%q:[%s]}`, member, strings.Join(list, ","))
}

// contentOf returns the texts, calls and results of a request, in order.
func contentOf(t *testing.T, form wire.Form, body string) []string {
	t.Helper()
	decoded, err := request(t, form, body).(client).Decode()
	if err != nil {
		t.Fatalf("%s: %v", body, err)
	}
	turns, err := decoded.Repair()
	if err != nil {
		t.Fatalf("%s: %v", body, err)
	}
	var out []string
	for _, turn := range turns {
		for i := range turn.Parts {
			switch p := &turn.Parts[i]; p.Kind {
			case conversation.ToolCall:
				var arguments any
				decoder := json.NewDecoder(strings.NewReader(string(conversation.AppendObject(nil, p.Call.Arguments))))
				decoder.UseNumber()
				if err := decoder.Decode(&arguments); err != nil {
					t.Fatalf("%s: %v", body, err)
				}
				out = append(out, fmt.Sprintf("call %s %s %v", p.Call.ID, p.Call.Name, arguments))
			case conversation.ToolResult:
				text, _ := p.ResultText()
				out = append(out, fmt.Sprintf("result %s %s", p.Call.ID, rawjson.Unquote(conversation.Quoted(text))))
			default:
				out = append(out, fmt.Sprintf("text %d %s", turn.Role, rawjson.Unquote(conversation.Quoted(p.Text))))
			}
		}
	}
	return out
}

// encoded returns a request in the form of a line, from the decoded request of a client.
func encoded(t *testing.T, from, to wire.Form, body string) string {
	t.Helper()
	decoded, err := request(t, from, body).(client).Decode()
	if err != nil {
		t.Fatalf("%s: %v", body, err)
	}
	decoded.NameTools()
	out, err := lineOf(to).encode(decoded, wire.Translation{Edits: wire.Edits{Model: "m"}, MaxOutput: 9}, pairtest.Identity())
	if err != nil {
		t.Fatalf("%s to %s: %v", body, to, err)
	}
	return string(out)
}

// TestHistoriesSurviveTranslation expects the texts, calls, ids and order of random histories after the
// decoder and the encoder of one form, and after the encoders of two forms.
func TestHistoriesSurviveTranslation(t *testing.T) {
	t.Parallel()
	pairtest.EachSeed(t, func(t *testing.T, r *rand.Rand) {
		steps := randomHistory(r)
		for _, from := range clientForms {
			body := bodyOf(from, steps)
			want := contentOf(t, from, body)
			for _, to := range clientForms {
				there := encoded(t, from, to, body)
				back := encoded(t, to, from, there)
				if got := contentOf(t, from, back); !slices.Equal(got, want) {
					t.Errorf("%s through %s: got %q, want %q, from %s and %s", from, to, got, want, there, back)
				}
			}
		}
	})
}
