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
	"tollgate/internal/wire/internal/wiretest"
	"tollgate/internal/wire/rawjson"
	"tollgate/internal/wire/translate/internal/pairtest"
)

// historyStep is a message of a random history.
type historyStep struct {
	user    string // the user's text, or empty for the assistant
	image   string // of the user, base64, may be empty
	thought string // of the assistant, may be empty
	text    string // of the assistant, may be empty
	calls   []historyCall
}

// historyCall is a call and its result.
type historyCall struct{ id, name, arguments, result string }

// randomHistory returns a history with a user's text, or a result, as the last.
func randomHistory(r *rand.Rand) (steps []historyStep) {
	texts := []string{"Hi", "größe \U0001F600", "a \"quote\"", "back\\slash", "line\nbreak", "</tag>", "0", "{}"}
	arguments := []string{`{}`, `{"a":1}`, `{"n":12345678901234567890,"s":"\"x\""}`, `{"deep":{"list":[1,null,true]}}`}
	text := func() string { return texts[r.IntN(len(texts))] }
	for n := range 1 + r.IntN(4) {
		question := historyStep{user: text()}
		if r.IntN(3) == 0 {
			question.image = []string{"iVBORw0KGgo=", "iVBORw0KGgoAAAAN"}[r.IntN(2)]
		}
		steps = append(steps, question)
		step := historyStep{}
		if r.IntN(3) == 0 {
			step.thought = "Hm."
		}
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
			list = append(list, userMessage(form, s))
		case form == wire.FormGemini:
			if s.thought != "" {
				calls = append(calls, fmt.Sprintf(`{"text":%s,"thought":true}`, quote(s.thought)))
			}
			if s.text != "" {
				calls = append(calls, fmt.Sprintf(`{"text":%s}`, quote(s.text)))
			}
			for _, c := range s.calls {
				calls = append(calls, fmt.Sprintf(`{"functionCall":{"id":%q,"name":%q,"args":%s}}`, c.id, c.name, c.arguments))
				results = append(results, fmt.Sprintf(`{"functionResponse":{"id":%q,"name":%q,"response":{"result":%s}}}`,
					c.id, c.name, quote(c.result)))
			}
			add(`{"role":"model","parts":[%s]}`, strings.Join(calls, ","))
			if results != nil {
				add(`{"role":"user","parts":[%s]}`, strings.Join(results, ","))
			}
		case form == wire.FormChat:
			content := "null"
			if s.text != "" {
				content = quote(s.text)
			}
			if s.thought != "" {
				content += `,"reasoning_content":` + quote(s.thought)
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
			if s.thought != "" {
				calls = append(calls, fmt.Sprintf(`{"type":"thinking","thinking":%s,"signature":""}`, quote(s.thought)))
			}
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
			if s.thought != "" {
				add(`{"type":"reasoning","summary":[{"type":"summary_text","text":%s}]}`, quote(s.thought))
			}
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
	elements := strings.Join(list, ",")
	switch form {
	case wire.FormGemini:
		return `{"contents":[` + elements + `]}`
	case wire.FormResponses:
		return `{"model":"m","max_tokens":9,"input":[` + elements + `]}`
	}
	return `{"model":"m","max_tokens":9,"messages":[` + elements + `]}`
}

// userMessage returns a question in a form.
func userMessage(form wire.Form, s historyStep) string {
	parts := map[wire.Form][2]string{
		wire.FormChat:      {`{"type":"text","text":%s}`, `{"type":"image_url","image_url":{"url":"data:image/png;base64,%s"}}`},
		wire.FormMessages:  {`{"type":"text","text":%s}`, `{"type":"image","source":{"type":"base64","media_type":"image/png","data":"%s"}}`},
		wire.FormResponses: {`{"type":"input_text","text":%s}`, `{"type":"input_image","image_url":"data:image/png;base64,%s"}`},
		wire.FormGemini:    {`{"text":%s}`, `{"inlineData":{"mimeType":"image/png","data":"%s"}}`},
	}[form]
	member, content := "content", fmt.Sprintf(parts[0], quote(s.user))
	if form == wire.FormGemini {
		member = "parts"
	}
	if s.image != "" {
		content += "," + fmt.Sprintf(parts[1], s.image)
	}
	return fmt.Sprintf(`{"role":"user",%q:[%s]}`, member, content)
}

// contentOf returns the texts, images, calls and results of a valid request, in order.
func contentOf(t *testing.T, form wire.Form, body string) []string {
	t.Helper()
	if form == wire.FormInteractions {
		out, err := wiretest.ReadInteraction([]byte(body))
		if err != nil {
			t.Errorf("%v in %s", err, body)
		}
		return out
	}
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
			case conversation.Thinking: // a line keeps its own only
			case conversation.Image:
				out = append(out, "image "+rawjson.Unquote(p.Media.Address))
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

// TestHistoriesSurviveTranslation expects the texts, images, calls, ids and order of random histories after the
// decoder and the encoder of one form, and after the encoders of two forms. Each seed plays one pair.
func TestHistoriesSurviveTranslation(t *testing.T) {
	t.Parallel()
	pairtest.EachSeed(t, func(t *testing.T, r *rand.Rand) {
		steps := randomHistory(r)
		from, to := allForms[r.IntN(len(allForms))], lineForms[r.IntN(len(lineForms))]
		body := bodyOf(from, steps)
		there := encoded(t, from, to, body)
		if to == wire.FormInteractions { // no client speaks it
			if got, want := contentOf(t, to, there), contentOf(t, from, body); !slices.Equal(got, want) {
				t.Errorf("%s to %s: got %q, want %q, from %s", from, to, got, want, there)
			}
			return
		}
		back := encoded(t, to, from, there)
		if got, want := contentOf(t, from, back), contentOf(t, from, body); !slices.Equal(got, want) {
			t.Errorf("%s through %s: got %q, want %q, from %s and %s", from, to, got, want, there, back)
		}
	})
}
