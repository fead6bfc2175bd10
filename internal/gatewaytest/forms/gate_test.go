package forms

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"tollgate/internal/gatewaytest/fakeprovider"
	"tollgate/internal/gatewaytest/scene"
	"tollgate/internal/money"
)

// gateScenes send requests that no line may get, because the gateway and the line would read them
// differently, or because their price would be wrong.
func gateScenes(t testing.TB) []scene.Scenario {
	scenes := []scene.Scenario{smuggledScene(t), passScene(t)}
	return append(scenes, limitScenes(t)...)
}

// refusal is the expected error of a rejected request: the code, and a word in the message.
type refusal struct{ code, word string }

// smuggled returns request members that the gateway must reject in a form.
func smuggled(t testing.TB, form scene.Form) map[string]refusal {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("testdata", "smuggled.txt"))
	if err != nil {
		t.Fatal(err)
	}
	row := regexp.MustCompile(`(?m)^(\w+) +(\w+) +(\S+) +(".*)$`)
	refusals := map[string]refusal{}
	for _, r := range row.FindAllStringSubmatch(string(raw), -1) {
		if r[1] == string(form) || r[1] == "every" {
			refusals[r[4]] = refusal{code: r[2], word: r[3]}
		}
	}
	if len(refusals) != 16 {
		t.Fatalf("smuggled.txt has %d rows for the form %s, want 16", len(refusals), form)
	}
	return refusals
}

// smuggledScene sends each member of smuggled in each form, and also to count_tokens.
func smuggledScene(t testing.TB) scene.Scenario {
	p := fakeprovider.New(t) // a request fails the test
	return scene.Scenario{
		Name:   "nothing is smuggled",
		Models: []map[string]any{scene.FormModel("smuggled", nil, scene.ClientForms()...)},
		Lines:  []map[string]any{scene.FormLine("smuggled", "chat", p.URL(), nil, "smuggled")},
		Play: func(t *testing.T, g *scene.Gateway) {
			for _, form := range scene.ClientForms() {
				s := form.NewClient(t, g)
				paths := []string{form.Path()}
				if form == scene.Messages {
					paths = append(paths, form.Path()+"/count_tokens")
				}
				for member, want := range smuggled(t, form) {
					body := strings.Replace(scene.Request(form, "smuggled", false, nil), "{", "{"+member+",", 1)
					if name, _, _ := strings.Cut(member[1:], `"`); strings.Count(body, `"`+name+`":`) > 1 {
						body = strings.Replace(scene.Request(form, "smuggled", false, map[string]any{name: nil}), "{", "{"+member+",", 1)
					}
					code := want.code
					for _, path := range paths {
						a := s.Post(path, body)
						if form == scene.Messages {
							code = "invalid_request_error"
						}
						if a.Status != 400 || !strings.Contains(a.Raw, `"`+code+`"`) || !strings.Contains(a.Raw, want.word) {
							t.Errorf("%s %s: %d %s, want %+v", path, body, a.Status, a.Raw, want)
						}
					}
				}
			}
		},
	}
}

// passScene checks that only lines with a routing field in `pass` get requests with this field, and
// that no line of another form gets them.
func passScene(t testing.TB) scene.Scenario {
	plain, passing := fakeprovider.New(t), fakeprovider.New(t)
	plain.Always(func(q fakeprovider.Request) fakeprovider.Reply {
		if strings.Contains(string(q.Body), `"route"`) {
			t.Errorf("a line without the field in pass got %s", q.Body)
		}
		return fakeprovider.Answer("plain", 1000, 500)
	})
	passing.Always(func(fakeprovider.Request) fakeprovider.Reply { return fakeprovider.Answer("passing", 1000, 500) })
	return scene.Scenario{
		Name:   "routing fields go to lines that pass them",
		Models: []map[string]any{scene.FormModel("pass", nil, scene.ClientForms()...)},
		Lines: []map[string]any{scene.FormLine("pass-plain", "chat", plain.URL(), nil, "pass"),
			scene.FormLine("pass-passing", "chat", passing.URL(), map[string]any{"pass": []string{"route", "provider"}, "priority": 2}, "pass")},
		Play: func(t *testing.T, g *scene.Gateway) {
			s := scene.Chat.NewClient(t, g)
			for _, c := range []struct {
				more map[string]any
				want string
			}{
				{nil, "plain"}, {map[string]any{"route": "fallback"}, "passing"}, {map[string]any{"route": nil}, "plain"},
				{map[string]any{"route": "x", "provider": map[string]any{"order": []string{"dear"}}}, "passing"},
				{map[string]any{"route": "x", "models": []string{"dear"}}, "`models`"},
			} {
				if a := s.Ask(scene.Request(scene.Chat, "pass", false, c.more)); !strings.Contains(a.Raw, c.want) {
					t.Errorf("%v: %d %s, want %s", c.more, a.Status, a.Raw, c.want)
				}
			}
			request := scene.Request(scene.Responses, "pass", false, map[string]any{"route": "x"})
			if a := scene.Responses.NewClient(t, g).Ask(request); a.Status != 400 {
				t.Errorf("a translated request: %d %s", a.Status, a.Raw)
			}
		},
	}
}

// limitScenes send requests with various output limits. The line gets one limit, in the line's field.
// The hold is for this limit, or for the model's maximum if the line ignores limits.
func limitScenes(t testing.TB) []scene.Scenario {
	type m = map[string]any
	two := m{"max_tokens": 500, "max_completion_tokens": 3}
	var scenes []scene.Scenario
	for i, c := range []struct {
		name        string
		in          scene.Form
		line        string
		more, model m
		lineMore    m // further members of the line
		field       string
		sent, held  int64 // tokens
	}{
		{"the smaller of two", scene.Chat, "chat", two, nil, nil, "max_tokens", 3, 3},
		{"the smaller of two, exchanged", scene.Chat, "chat", m{"max_tokens": 3, "max_completion_tokens": 500}, nil, nil, "max_tokens", 3, 3},
		{"in the line's field", scene.Chat, "chat", nil, nil, m{"limit_field": "max_completion_tokens"}, "max_completion_tokens", 500, 500},
		{"several choices", scene.Chat, "chat", m{"max_tokens": 500, "max_completion_tokens": 3, "n": 2}, nil, nil, "max_tokens", 3, 6},
		{"in another vendor's field", scene.Chat, "chat", m{"max_tokens": 3, "n_predict": 500}, nil, nil, "max_tokens", 3, 3},
		{"reasoning model", scene.Chat, "chat", m{"max_tokens": nil, "max_completion_tokens": 3}, m{"reasoning": true}, nil, "max_tokens", 3, 3},
		{"the default", scene.Chat, "chat", m{"max_tokens": nil}, m{"default_output_tokens": 200}, m{"limit_field": "max_completion_tokens"},
			"max_completion_tokens", 200, 200},
		{"the smaller of two", scene.Messages, "messages", two, nil, nil, "max_tokens", 3, 3},
		{"the smaller of two", scene.Responses, "responses", m{"max_output_tokens": 500, "max_tokens": 3}, nil, nil, "max_output_tokens", 3, 3},
		{"translated", scene.Chat, "messages", two, nil, nil, "max_tokens", 3, 3},
		{"translated", scene.Messages, "chat", two, nil, m{"limit_field": "max_completion_tokens"}, "max_completion_tokens", 3, 3},
		{"translated", scene.Responses, "chat", nil, nil, nil, "max_tokens", 500, 500},
		{"ignored by the line", scene.Chat, "chat", two, nil, m{"ignores_limit": true}, "max_tokens", 3, 1000},
		{"ignored by the line", scene.Messages, "messages", nil, nil, m{"ignores_limit": true}, "max_tokens", 500, 1000},
		{"ignored by the line", scene.Responses, "responses", nil, nil, m{"ignores_limit": true}, "max_output_tokens", 500, 1000},
		{"the default, ignored by the line", scene.Chat, "chat", m{"max_tokens": nil}, m{"default_output_tokens": 200}, m{"ignores_limit": true},
			"max_tokens", 200, 1000},
	} {
		model := fmt.Sprintf("limit-%d", i)
		p := fakeprovider.New(t)
		p.Always(func(fakeprovider.Request) fakeprovider.Reply { return fakeprovider.Good(c.line, false) })
		scenes = append(scenes, scene.Scenario{
			Name:   fmt.Sprintf("limit of %s on %s, %s", c.in, c.line, c.name),
			Models: []m{scene.FormModel(model, c.model, c.in)},
			Lines:  []m{scene.FormLine(model, c.line, p.URL(), c.lineMore, model)},
			Play: func(t *testing.T, g *scene.Gateway) {
				s := c.in.NewClient(t, g)
				body := scene.Request(c.in, model, false, c.more)
				a := s.Answer(body)
				held := g.Receipt(t, s.Account, a.ID()).Held
				if want := money.Amount(1000*(int64(len(body))+1000) + 2000*c.held); held != want {
					t.Errorf("%s on hold, want %s", held, want)
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
						t.Errorf("the line got %s, want only the limit %s of %d", sent, c.field, c.sent)
					}
				}
			},
		})
	}
	return scenes
}
