package gatewaytest_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"tollgate/internal/gatewaytest/fakeprovider"
	"tollgate/internal/money"
)

// gateScenes: what would be checked as one thing and obeyed as another, or pay
// for less than it gets, goes to no line.
func gateScenes(t testing.TB) []scene {
	scenes := []scene{smuggledScene(t), passScene(t)}
	return append(scenes, limitScenes(t)...)
}

// smuggled are the members of requests that no line may get, by the code and the
// word that the message has to name.
func smuggled(in spoken) map[string]string {
	const badJSON, badField = "invalid_json ", "invalid_request "
	of := map[string]string{
		`"x":{"a":1,"\u0061":2}`:                         badJSON + "x.a",
		`"x":[{},{"b":[{"c":1,"d":{"c":1},"c":2}]}]`:     badJSON + "x[1].b[0].c",
		`"search_parameters":{"mode":"off","mode":"on"}`: badJSON + "search_parameters.mode",
		`"Model":"smuggled"`:                             badField + "Model",
		`"Max_Tokens":100000`:                            badField + "Max_Tokens",
		`"ſtream":true`:                                  badField + "ſtream",
		`"too\u006cs":[],"Tool\u0053":[]`:                badField + "ToolS",
		`"provider":{"order":["dear"]}`:                  badField + "provider",
		`"models":["dear"]`:                              badField + "models",
		`"plugins":[{"id":"web"}]`:                       badField + "plugins",
		`"audio":{"voice":"x"}`:                          badField + "audio",
		`"Service_Tier":"priority"`:                      badField + "Service_Tier",
		`"max_to\u212aens":100000`:                       badField + "max_toKens",
	}
	switch in {
	case inResponses:
		of[`"input":[{"role":"user","content":[{"type":"input_file","file_data":"data:audio/mpeg;base64,AA"}]}]`] = badField + "file_data"
		of[`"input":[{"role":"user","content":[{"type":"input_text","text":"x","type":"input_file","file_id":"file-of-another"}]}]`] = badJSON + "input[0].content[0].type"
		of[`"tools":[{"type":"namespace","name":"n","tools":[{"type":"function","name":"f","type":"web_search"}]}]`] = badJSON + "tools[0].tools[0].type"
	case inMessages:
		of[`"messages":[{"role":"user","content":[{"type":"document","source":{"type":"base64","media_type":"audio/mpeg","data":"AA"}}]}]`] = badField + "media_type"
		of[`"messages":[{"role":"user","content":[{"type":"document","source":{"type":"text","data":"x","typ\u0065":"file"}}]}]`] = badJSON + "messages[0].content[0].source.type"
		of[`"tools":[{"name":"f","input_schema":{},"type":"custom","type":"web_search_20250305"}]`] = badJSON + "tools[0].type"
	default:
		of[`"messages":[{"role":"user","content":[{"type":"file","file":{"file_data":"data:audio/mpeg;base64,AA"}}]}]`] = badField + "file_data"
		of[`"messages":[{"role":"user","content":[{"type":"text","text":"x","type":"file","file":{}}]}]`] = badJSON + "messages[0].content[0].type"
		of[`"tools":[{"type":"function","function":{"name":"f","name":"g"}}]`] = badJSON + "tools[0].function.name"
	}
	return of
}

// smuggledScene sends each of smuggled in each form, messages also to be
// counted.
func smuggledScene(t testing.TB) scene {
	p := fakeprovider.New(t) // any request fails the test
	return scene{
		name:   "nothing is smuggled",
		models: []map[string]any{formModel("smuggled", nil, clientForms()...)},
		lines:  []map[string]any{formLine("smuggled", "chat", p.URL(), nil, "smuggled")},
		play: func(t *testing.T, f *fixture) {
			for _, in := range clientForms() {
				s := in.speaker(t, f)
				paths := []string{in.path()}
				if in == inMessages {
					paths = append(paths, in.path()+"/count_tokens")
				}
				for member, want := range smuggled(in) {
					body := strings.Replace(askIn(in, "smuggled", false, nil), "{", "{"+member+",", 1)
					if name, _, _ := strings.Cut(member[1:], `"`); strings.Count(body, `"`+name+`":`) > 1 {
						body = strings.Replace(askIn(in, "smuggled", false, map[string]any{name: nil}), "{", "{"+member+",", 1)
					}
					code, word, _ := strings.Cut(want, " ")
					for _, path := range paths {
						h := s.post(path, body)
						if in == inMessages {
							code = "invalid_request_error"
						}
						if h.status != 400 || !strings.Contains(h.raw, `"`+code+`"`) || !strings.Contains(h.raw, word) {
							t.Errorf("%s %s: %d %s, want %s", path, body, h.status, h.raw, want)
						}
					}
				}
			}
		},
	}
}

// passScene: a routing field goes to the lines that pass it, be they last, and
// to no other form.
func passScene(t testing.TB) scene {
	plain, passing := fakeprovider.New(t), fakeprovider.New(t)
	plain.Always(func(q fakeprovider.Request) fakeprovider.Reply {
		if strings.Contains(string(q.Body), `"route"`) {
			t.Errorf("a line that does not pass it got %s", q.Body)
		}
		return fakeprovider.Answer("plain", 1000, 500)
	})
	passing.Always(func(fakeprovider.Request) fakeprovider.Reply { return fakeprovider.Answer("passing", 1000, 500) })
	return scene{
		name:   "routing fields go to lines that pass them",
		models: []map[string]any{formModel("pass", nil, clientForms()...)},
		lines: []map[string]any{formLine("pass-plain", "chat", plain.URL(), nil, "pass"),
			formLine("pass-passing", "chat", passing.URL(), map[string]any{"pass": []string{"route", "provider"}, "priority": 2}, "pass")},
		play: func(t *testing.T, f *fixture) {
			s := inChat.speaker(t, f)
			for _, c := range []struct {
				more map[string]any
				want string
			}{
				{nil, "plain"}, {map[string]any{"route": "fallback"}, "passing"}, {map[string]any{"route": nil}, "plain"},
				{map[string]any{"route": "x", "provider": map[string]any{"order": []string{"dear"}}}, "passing"},
				{map[string]any{"route": "x", "models": []string{"dear"}}, "`models`"},
			} {
				if h := s.ask(askIn(inChat, "pass", false, c.more)); !strings.Contains(h.raw, c.want) {
					t.Errorf("%v: %d %s, want %s", c.more, h.status, h.raw, c.want)
				}
			}
			if h := inResponses.speaker(t, f).ask(askIn(inResponses, "pass", false, map[string]any{"route": "x"})); h.status != 400 {
				t.Errorf("a translated request: %d %s", h.status, h.raw)
			}
		},
	}
}

// limitScenes: whatever limits a client names, a line gets one, in the field
// that it reads; held is what that one allows, or all that the model can write
// where a line obeys none.
func limitScenes(t testing.TB) []scene {
	type m = map[string]any
	two := m{"max_tokens": 500, "max_completion_tokens": 3}
	var scenes []scene
	for i, c := range []struct {
		name        string
		in          spoken
		line        string
		more, model m
		on          m // members of the line
		field       string
		sent, held  int64 // tokens
	}{
		{"the smaller of two", inChat, "chat", two, nil, nil, "max_tokens", 3, 3},
		{"the smaller of two, the other way", inChat, "chat", m{"max_tokens": 3, "max_completion_tokens": 500}, nil, nil, "max_tokens", 3, 3},
		{"where the line reads it", inChat, "chat", nil, nil, m{"limit_field": "max_completion_tokens"}, "max_completion_tokens", 500, 500},
		{"several choices", inChat, "chat", m{"max_tokens": 500, "max_completion_tokens": 3, "n": 2}, nil, nil, "max_tokens", 3, 6},
		{"by the name of another vendor", inChat, "chat", m{"max_tokens": 3, "n_predict": 500}, nil, nil, "max_tokens", 3, 3},
		{"one that thinks", inChat, "chat", m{"max_tokens": nil, "max_completion_tokens": 3}, m{"reasoning": true}, nil, "max_tokens", 3, 3},
		{"the default", inChat, "chat", m{"max_tokens": nil}, m{"default_output_tokens": 200}, m{"limit_field": "max_completion_tokens"}, "max_completion_tokens", 200, 200},
		{"the smaller of two", inMessages, "messages", two, nil, nil, "max_tokens", 3, 3},
		{"the smaller of two", inResponses, "responses", m{"max_output_tokens": 500, "max_tokens": 3}, nil, nil, "max_output_tokens", 3, 3},
		{"translated", inChat, "messages", two, nil, nil, "max_tokens", 3, 3},
		{"translated", inMessages, "chat", two, nil, m{"limit_field": "max_completion_tokens"}, "max_completion_tokens", 3, 3},
		{"translated", inResponses, "chat", nil, nil, nil, "max_tokens", 500, 500},
		{"obeyed by none", inChat, "chat", two, nil, m{"ignores_limit": true}, "max_tokens", 3, 1000},
		{"obeyed by none", inMessages, "messages", nil, nil, m{"ignores_limit": true}, "max_tokens", 500, 1000},
		{"obeyed by none", inResponses, "responses", nil, nil, m{"ignores_limit": true}, "max_output_tokens", 500, 1000},
		{"the default, obeyed by none", inChat, "chat", m{"max_tokens": nil}, m{"default_output_tokens": 200}, m{"ignores_limit": true}, "max_tokens", 200, 1000},
	} {
		model := fmt.Sprintf("limit-%d", i)
		p := fakeprovider.New(t)
		p.Always(func(fakeprovider.Request) fakeprovider.Reply { return goodReply(c.line, false, false) })
		scenes = append(scenes, scene{
			name:   fmt.Sprintf("limit of %s on %s, %s", c.in, c.line, c.name),
			models: []m{formModel(model, c.model, c.in)},
			lines:  []m{formLine(model, c.line, p.URL(), c.on, model)},
			play: func(t *testing.T, f *fixture) {
				s := c.in.speaker(t, f)
				body := askIn(c.in, model, false, c.more)
				if h := s.ask(body); h.status != 200 {
					t.Fatalf("%d %s", h.status, h.raw)
				}
				if want := money.Amount(1000*(int64(len(body))+1000) + 2000*c.held); s.booked().Held != want {
					t.Errorf("%s were held, want %s", s.booked().Held, want)
				}
				got := map[string]json.RawMessage{}
				sent := p.Requests()[0].Body
				if err := json.Unmarshal(sent, &got); err != nil {
					t.Fatal(err)
				}
				for _, name := range []string{"max_tokens", "max_completion_tokens", "max_output_tokens", "n_predict"} {
					want := ""
					if name == c.field {
						want = fmt.Sprint(c.sent)
					}
					if string(got[name]) != want {
						t.Errorf("the line got %s, want %s of %d alone", sent, c.field, c.sent)
					}
				}
			},
		})
	}
	return scenes
}
