package catalog

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"tollgate/internal/fault"
	"tollgate/internal/wire"
)

// environment is a lookup in a map.
func environment(vars map[string]string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		v, ok := vars[name]
		return v, ok
	}
}

const served = `
models:
- {id: a, kind: chat, context_window: 1000, max_output_tokens: 100, price: {input: 1, output: 2}}
- {id: b, kind: chat, state: retired, reasoning: true, context_window: 1000, max_output_tokens: 100, price: {input: 1, output: 2}}
lines:
- {id: spare, provider: sandbox, models: {a: x}, priority: 2}
- {id: first, provider: openai, base_url: "https://one.example/v1", api_key: "${ONE}", models: {a: vendor-a, b: vendor-b},` +
	` timeouts: {idle: 5s}}
- {id: second, provider: openai, base_url: "https://two.example/v1", api_key: "${TWO}", models: {a: y},` +
	` forms: [chat], error_sentences: ["^busy", "try later$"]}
- {id: plain, provider: chatonly, models: {b: z}}
- {id: off, provider: sandbox, models: {a: x}, enabled: false}
`

func TestLinesReadTheLimitInOneField(t *testing.T) {
	t.Parallel()
	for base, want := range map[string][2]LimitField{ // of a model without and with reasoning
		"https://api.openai.com/v1":                             {"", LimitMaxCompletionTokens},
		"https://eu.api.openai.com/v1":                          {"", LimitMaxCompletionTokens},
		"https://mine.openai.azure.com/openai/v1":               {"", LimitMaxCompletionTokens},
		"https://mine.services.ai.azure.com/openai/v1":          {"", LimitMaxCompletionTokens},
		"https://API.OpenAI.com./v1":                            {"", LimitMaxCompletionTokens},
		"https://api.deepseek.com":                              {LimitMaxTokens, LimitMaxTokens},
		"https://notopenai.com/v1":                              {LimitMaxTokens, LimitMaxTokens},
		"https://api.openai.com.example.net/v1":                 {LimitMaxTokens, LimitMaxTokens},
		"https://gate.example/v1, limit_field: max_tokens":      {LimitMaxTokens, LimitMaxTokens},
		"https://api.openai.com, limit_field: max_tokens":       {LimitMaxTokens, LimitMaxTokens},
		"https://a.example, limit_field: max_completion_tokens": {LimitMaxCompletionTokens, LimitMaxCompletionTokens},
	} {
		address, more, _ := strings.Cut(base, ", ")
		s := NewSnapshot(1, mustParse(t, `
models:
- {id: a, kind: chat, context_window: 1000, max_output_tokens: 100, price: {input: 1, output: 2}}
- {id: b, kind: chat, reasoning: true, context_window: 1000, max_output_tokens: 100, price: {input: 1, output: 2}}
lines: [{id: l, provider: openai, api_key: "${KEY}", models: {a: x, b: y}, base_url: "`+address+`", `+more+`}]`), testProviders(),
			environment(nil))
		for i, model := range []string{"a", "b"} {
			m, _ := s.Model(model)
			if got := s.Lines(model)[0].LimitFieldFor(m); got != want[i] {
				t.Errorf("%s, model %s: %q, want %q", base, model, got, want[i])
			}
		}
	}
}

// TestALineWithoutLimitsIsHeldForAll tests the hold with a line without limits: the line of a
// request is unknown at the time of its hold.
func TestALineWithoutLimitsIsHeldForAll(t *testing.T) {
	t.Parallel()
	doc := strings.Replace(served, "priority: 2}", "priority: 2, ignores_limit: true}", 1)
	s := NewSnapshot(1, mustParse(t, doc), testProviders(), environment(nil))
	a, _ := s.Model("a")
	b, _ := s.Model("b")
	for limit, want := range map[int64][2]int64{0: {100, 0}, 5: {100, 5}, 500: {100, 500}} {
		if got := [2]int64{s.HoldLimit(a, wire.FormResponses, limit), s.HoldLimit(b, wire.FormResponses, limit)}; got != want {
			t.Errorf("limit %d: %v, want %v", limit, got, want)
		}
	}
	defaulted := *a
	defaulted.DefaultOutputTokens = 10
	if held, _ := defaulted.OutputLimit(s.HoldLimit(&defaulted, wire.FormChat, 0)); held != 100 {
		t.Errorf("an ignored default limit bounds the hold: %d", held)
	}
	off := strings.Replace(served, "enabled: false", "enabled: false, ignores_limit: true", 1)
	if got := NewSnapshot(1, mustParse(t, off), testProviders(), environment(nil)).HoldLimit(a, wire.FormResponses, 5); got != 5 {
		t.Errorf("a line that is off counts: %d", got)
	}
}

// TestARaisedLimitIsHeld tests that the minimum limit of a responses line is held.
func TestARaisedLimitIsHeld(t *testing.T) {
	t.Parallel()
	doc := `
models: [{id: a, kind: chat, context_window: 1000, max_output_tokens: 100, price: {input: 1, output: 2}}]
lines: [{id: l, provider: openai, api_key: "${KEY}", base_url: "https://x.test", models: {a: x}, forms: [%s]}]`
	for _, c := range []struct {
		forms  string
		client wire.Form
		limit  int64
		want   int64
	}{
		{"responses", wire.FormChat, 1, 16}, {"responses", wire.FormMessages, 15, 16}, {"responses", wire.FormChat, 17, 17},
		{"responses", wire.FormChat, 0, 0}, {"responses", wire.FormResponses, 1, 1}, {"chat", wire.FormChat, 1, 1},
		{"chat, responses", wire.FormMessages, 1, 1}, {"responses, chat", wire.FormMessages, 1, 16},
	} {
		s := NewSnapshot(1, mustParse(t, fmt.Sprintf(doc, c.forms)), testProviders(), environment(nil))
		m, _ := s.Model("a")
		if got := s.HoldLimit(m, c.client, c.limit); got != c.want {
			t.Errorf("%s on %s, limit %d: %d is held, want %d", c.client, c.forms, c.limit, got, c.want)
		}
	}
}

func TestRoutingFieldsNeedALineThatPassesThem(t *testing.T) {
	t.Parallel()
	doc := strings.Replace(served, "timeouts: {idle: 5s}", "pass: [provider, route]", 1)
	doc = strings.Replace(doc, `forms: [chat], error`, `forms: [chat], pass: [models], error`, 1)
	s := NewSnapshot(1, mustParse(t, doc), testProviders(), environment(nil))
	a, _ := s.Model("a")
	for _, c := range []struct {
		form    wire.Form
		routing string
		at      string // the field of the error; empty if offered
	}{
		{wire.FormChat, "", ""}, {wire.FormChat, "provider", ""}, {wire.FormChat, "route provider", ""}, {wire.FormChat, "models", ""},
		{wire.FormChat, "provider models", "provider"}, {wire.FormChat, "plugins", "plugins"}, {wire.FormChat, "provider plugins", "plugins"},
		{wire.FormResponses, "models", "models"}, {wire.FormMessages, "provider", "provider"}, {wire.FormMessages, "", ""},
	} {
		err := s.CheckRouting(a, c.form, strings.Fields(c.routing))
		if f := fault.Of(err); (err == nil) != (c.at == "") || err != nil && (f.Code != fault.InvalidRequest || f.Param != c.at) {
			t.Errorf("%s with %q: %v", c.form, c.routing, err)
		}
	}
	if err := s.CheckRouting(&Model{ID: "nobody"}, wire.FormChat, []string{"route"}); err == nil {
		t.Error("a model without lines is offered with a route")
	}
}

func TestSnapshotsKnowTheLinesOfAModel(t *testing.T) {
	t.Parallel()
	s := NewSnapshot(7, mustParse(t, served), testProviders(), environment(map[string]string{"ONE": " secret-one\n", "TWO": ""}))
	ids := func(lines []*Line) (out []string) {
		for _, l := range lines {
			out = append(out, l.ID)
		}
		return out
	}
	if got := ids(s.Lines("a")); !slices.Equal(got, []string{"first", "second", "spare"}) {
		t.Errorf("lines of a: %v", got)
	}
	if got := ids(s.Lines("b")); !slices.Equal(got, []string{"first", "plain"}) {
		t.Errorf("lines of b: %v", got)
	}
	if got := s.Lines("nobody"); got != nil {
		t.Errorf("lines of nobody: %v", got)
	}
	if got := ids(s.AllLines()); len(got) != 5 {
		t.Errorf("all lines: %v", got)
	}
	if m, ok := s.Model("b"); !ok || m.State != StateRetired || len(s.Models()) != 2 || s.Models()[0].ID != "a" {
		t.Error("models are not those of the document")
	}
	if _, ok := s.Model("x"); ok {
		t.Error("a provider's id is a model")
	}
	first, second, spare, plain := s.Lines("a")[0], s.Lines("a")[1], s.Lines("a")[2], s.Lines("b")[1]
	if keysOf(first) != "secret-one" || first.UnusableReason != "" {
		t.Errorf("first: key %q, out %q", keysOf(first), first.UnusableReason)
	}
	if keysOf(second) != "" || second.UnusableReason != "the variable TWO is not set on this node" {
		t.Errorf("second: key %q, out %q", keysOf(second), second.UnusableReason)
	}
	if spare.UnusableReason != "" || keysOf(spare) != "" || !spare.Supports(wire.FormMessages) || second.Supports(wire.FormResponses) {
		t.Errorf("spare: %+v", spare)
	}
	if plain.BaseURL != "https://chat.example/v1" {
		t.Errorf("plain has no default address: %q", plain.BaseURL)
	}
	if !second.IsErrorSentence("busy now") || !second.IsErrorSentence("please try later") || second.IsErrorSentence("not busy") ||
		first.IsErrorSentence("busy") {
		t.Error("error sentences do not match as written")
	}
	a, b := s.Models()[0], s.Models()[1]
	if got := first.TimeoutsFor(a); got != (Timeouts{time.Minute, 5 * time.Second, 10 * time.Minute}) {
		t.Errorf("timeouts: %v", got)
	}
	if got := first.TimeoutsFor(b); got.FirstToken != 10*time.Minute {
		t.Errorf("timeouts of a reasoning model: %v", got)
	}
	for _, format := range []string{"%v", "%+v", "%#v", "%s"} {
		if text := fmt.Sprintf(format, *first); strings.Contains(text, "secret-one") {
			t.Errorf("%s shows the credential", format)
		}
	}
}

func TestSnapshotsOfAnotherVersionsDocument(t *testing.T) {
	t.Parallel()
	doc, left, err := load([]byte(`{
		"models": [
			{"id": "a", "kind": "chat", "state": "dreaming", "forms": ["chat", "telepathy"],` +
		` "context_window": 10, "max_output_tokens": 5, "price": {"input": 1, "output": 1, "surcharge": 3}},
			{"id": "song", "kind": "audio", "melody": true}
		],
		"lines": [
			{"id": "new", "provider": "newcomer", "models": {"a": "x", "song": "y"}, "colour": "red"},
			{"id": "old", "provider": "chatonly", "models": {"a": "x"}, "forms": ["telepathy"]}
		],
		"voices": []
	}`))
	if err != nil {
		t.Fatal(err)
	}
	s := NewSnapshot(1, doc, testProviders(), environment(nil))
	a, ok := s.Model("a")
	if !ok || a.State != StateMaintenance || !slices.Equal(a.Forms, []wire.Form{wire.FormChat}) {
		t.Errorf("a: %+v", a)
	}
	if _, ok := s.Model("song"); ok {
		t.Error("a model of an unknown kind is served")
	}
	lines := s.Lines("a")
	if len(lines) != 2 || lines[0].UnusableReason != "provider newcomer is unknown to this version of the gateway" ||
		lines[1].UnusableReason != "" ||
		!lines[1].Supports(wire.FormChat) {
		t.Errorf("lines: %+v", lines)
	}
	if len(left) != 8 {
		t.Errorf("%d things were left out: %v", len(left), left)
	}
	if _, _, err := load(
		[]byte(`{"models": [{"id": "a", "kind": "chat", "context_window": 10, "max_output_tokens": 5, "price": {"input": -1, ` +
			`"output": 1}}]}`)); err == nil {
		t.Error("a stored model without a usable price is served")
	}
}

func TestTheSandboxCatalogIsWhole(t *testing.T) {
	t.Parallel()
	doc, warnings, err := Parse(Sandbox(), testProviders())
	if err != nil || len(warnings) > 0 {
		t.Fatalf("%v %v", err, warnings)
	}
	states, forms, kinds := map[ModelState]int{}, map[wire.Form]int{}, map[Kind]int{}
	for _, m := range doc.Models {
		states[m.State]++
		if m.State == StateOpen {
			kinds[m.Kind]++
		}
		if m.Kind == KindChat && !m.Supports(wire.FormChat) {
			t.Errorf("%s is not a model for chat completions", m.ID)
		}
		for _, form := range m.Forms {
			if m.State == StateOpen {
				forms[form]++
			}
		}
	}
	if len(forms) != 3 {
		t.Errorf("forms of open models: %v", forms)
	}
	if kinds[KindChat] < 4 || kinds[KindImage] != 1 || kinds[KindVideo] != 1 {
		t.Errorf("open models: %v", kinds)
	}
	if len(states) != 4 || states[StateOpen] < 4 {
		t.Errorf("states: %v", states)
	}
	s := NewSnapshot(1, doc, testProviders(), environment(nil))
	for _, m := range s.Models() {
		if m.State == StateOpen && (len(s.Lines(m.ID)) != 1 || s.Lines(m.ID)[0].UnusableReason != "") {
			t.Errorf("%s has no usable line", m.ID)
		}
	}
}

// TestLinesMayHaveAFormOfTheirOwn tests a form not allowed on models: it is allowed on lines of
// providers with the form, and their default.
func TestLinesMayHaveAFormOfTheirOwn(t *testing.T) {
	t.Parallel()
	providers := map[string]Provider{"gemini": {Kinds: []Kind{KindChat}, Forms: []wire.Form{wire.FormGemini}}}
	doc, _, err := Parse([]byte(`
models: [{id: a, kind: chat, context_window: 1000, max_output_tokens: 100, price: {input: 1, output: 2}}]
lines:
- {id: silent, provider: gemini, models: {a: x}}
- {id: named, provider: gemini, models: {a: x}, forms: [gemini]}
`), providers)
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range NewSnapshot(1, doc, providers, environment(nil)).Lines("a") {
		if !slices.Equal(l.Forms, []wire.Form{wire.FormGemini}) || l.Supports(wire.FormChat) {
			t.Errorf("line %s speaks %v", l.ID, l.Forms)
		}
	}
}

// TestSandboxCanBeSeenToStream keeps the demo slow enough for an eye, and a short
// answer of some fifteen tokens well below two seconds.
func TestSandboxCanBeSeenToStream(t *testing.T) {
	t.Parallel()
	doc := mustParse(t, string(Sandbox()))
	pause, err := time.ParseDuration(fmt.Sprint(doc.Lines[0].Options["chunk_delay"]))
	if err != nil || pause < 25*time.Millisecond || pause > 50*time.Millisecond {
		t.Errorf("%v between tokens, %v", pause, err)
	}
	if delay, set := doc.Lines[0].Options["delay"]; set {
		t.Errorf("the first token waits for %v", delay)
	}
}
