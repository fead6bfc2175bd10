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

// environment returns a function that looks up variables in a map.
func environment(vars map[string]string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		v, ok := vars[name]
		return v, ok
	}
}

const catalogYAML = `
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

// TestLimitFieldFor checks the field of chat completions for the output limit by host, model and
// limit_field.
func TestLimitFieldFor(t *testing.T) {
	t.Parallel()
	for base, want := range map[string][2]LimitField{ // for a model without and with reasoning
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
		address, keys, _ := strings.Cut(base, ", ")
		s := NewSnapshot(1, mustParse(t, `
models:
- {id: a, kind: chat, context_window: 1000, max_output_tokens: 100, price: {input: 1, output: 2}}
- {id: b, kind: chat, reasoning: true, context_window: 1000, max_output_tokens: 100, price: {input: 1, output: 2}}
lines: [{id: l, provider: openai, api_key: "${KEY}", models: {a: x, b: y}, base_url: "`+address+`", `+keys+`}]`), testProviders(),
			environment(nil))
		for i, model := range []string{"a", "b"} {
			m, _ := s.Model(model)
			if got := s.Lines(model)[0].LimitFieldFor(m); got != want[i] {
				t.Errorf("%s, model %s: got %q, want %q", base, model, got, want[i])
			}
		}
	}
}

// TestHoldLimitIfALineIgnoresLimits checks that the hold covers max_output_tokens if any enabled
// line ignores limits, because the line of a request is unknown at the time of its hold.
func TestHoldLimitIfALineIgnoresLimits(t *testing.T) {
	t.Parallel()
	doc := strings.Replace(catalogYAML, "priority: 2}", "priority: 2, ignores_limit: true}", 1)
	s := NewSnapshot(1, mustParse(t, doc), testProviders(), environment(nil))
	a, _ := s.Model("a")
	b, _ := s.Model("b")
	for limit, want := range map[int64][2]int64{0: {100, 0}, 5: {100, 5}, 500: {100, 500}} {
		if got := [2]int64{s.HoldLimit(a, wire.FormResponses, limit), s.HoldLimit(b, wire.FormResponses, limit)}; got != want {
			t.Errorf("HoldLimit(%d) of a and b = %v, want %v", limit, got, want)
		}
	}
	withDefault := *a
	withDefault.DefaultOutputTokens = 10
	if hold, _ := withDefault.OutputLimit(s.HoldLimit(&withDefault, wire.FormChat, 0)); hold != 100 {
		t.Errorf("hold %d with an ignored default limit, want 100", hold)
	}
	disabled := strings.Replace(catalogYAML, "enabled: false", "enabled: false, ignores_limit: true", 1)
	if got := NewSnapshot(1, mustParse(t, disabled), testProviders(), environment(nil)).HoldLimit(a, wire.FormResponses, 5); got != 5 {
		t.Errorf("HoldLimit(5) with a disabled line that ignores limits = %d, want 5", got)
	}
}

// TestHoldLimitIsAtLeastTheMinimum checks that the hold covers the minimum limit of a responses
// line.
func TestHoldLimitIsAtLeastTheMinimum(t *testing.T) {
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
			t.Errorf("%s on a line with %s: HoldLimit(%d) = %d, want %d", c.client, c.forms, c.limit, got, c.want)
		}
	}
}

// TestCheckRouting checks that routing fields are rejected unless one line passes them all.
func TestCheckRouting(t *testing.T) {
	t.Parallel()
	doc := strings.Replace(catalogYAML, "timeouts: {idle: 5s}", "pass: [provider, route]", 1)
	doc = strings.Replace(doc, `forms: [chat], error`, `forms: [chat], pass: [models], error`, 1)
	s := NewSnapshot(1, mustParse(t, doc), testProviders(), environment(nil))
	a, _ := s.Model("a")
	for _, c := range []struct {
		form    wire.Form
		routing string
		param   string // of the error; empty if allowed
	}{
		{wire.FormChat, "", ""}, {wire.FormChat, "provider", ""}, {wire.FormChat, "route provider", ""}, {wire.FormChat, "models", ""},
		{wire.FormChat, "provider models", "provider"}, {wire.FormChat, "plugins", "plugins"}, {wire.FormChat, "provider plugins", "plugins"},
		{wire.FormResponses, "models", "models"}, {wire.FormMessages, "provider", "provider"}, {wire.FormMessages, "", ""},
	} {
		err := s.CheckRouting(a, c.form, strings.Fields(c.routing))
		if f := fault.Of(err); (err == nil) != (c.param == "") || err != nil && (f.Code != fault.InvalidRequest || f.Param != c.param) {
			t.Errorf("%s with %q: error %v, want param %q", c.form, c.routing, err, c.param)
		}
	}
	if err := s.CheckRouting(&Model{ID: "nobody"}, wire.FormChat, []string{"route"}); err == nil {
		t.Error("CheckRouting of a model without lines succeeded, want an error")
	}
}

// TestSnapshot checks the models, lines and credentials of a node.
func TestSnapshot(t *testing.T) {
	t.Parallel()
	s := NewSnapshot(7, mustParse(t, catalogYAML), testProviders(), environment(map[string]string{"ONE": " secret-one\n", "TWO": ""}))
	ids := func(lines []*Line) (out []string) {
		for _, l := range lines {
			out = append(out, l.ID)
		}
		return out
	}
	if got := ids(s.Lines("a")); !slices.Equal(got, []string{"first", "second", "spare"}) {
		t.Errorf("lines of a = %v, want first, second and spare", got)
	}
	if got := ids(s.Lines("b")); !slices.Equal(got, []string{"first", "plain"}) {
		t.Errorf("lines of b = %v, want first and plain", got)
	}
	if got := s.Lines("nobody"); got != nil {
		t.Errorf("lines of an unknown model = %v, want none", got)
	}
	if got := ids(s.AllLines()); len(got) != 5 {
		t.Errorf("all lines = %v, want 5", got)
	}
	if m, ok := s.Model("b"); !ok || m.State != StateRetired || len(s.Models()) != 2 || s.Models()[0].ID != "a" {
		t.Errorf("Model(b) = %+v, models %+v, want a and the retired b", m, s.Models())
	}
	if _, ok := s.Model("x"); ok {
		t.Error("Model(x) found the provider's ID x, want only IDs of the catalog")
	}
	first, second, spare, plain := s.Lines("a")[0], s.Lines("a")[1], s.Lines("a")[2], s.Lines("b")[1]
	if keyValues(first) != "secret-one" || first.UnusableReason != "" {
		t.Errorf("line first: key %q, reason %q, want secret-one and no reason", keyValues(first), first.UnusableReason)
	}
	if keyValues(second) != "" || second.UnusableReason != "the variable TWO is not set on this node" {
		t.Errorf("line second: key %q, reason %q, want no key and the variable TWO", keyValues(second), second.UnusableReason)
	}
	if spare.UnusableReason != "" || keyValues(spare) != "" || !spare.Supports(wire.FormMessages) || second.Supports(wire.FormResponses) {
		t.Errorf("line spare %+v, want one without a key and with the form messages", spare)
	}
	if plain.BaseURL != "https://chat.example/v1" {
		t.Errorf("line plain has the address %q, want the provider's default", plain.BaseURL)
	}
	if !second.IsErrorSentence("busy now") || !second.IsErrorSentence("please try later") || second.IsErrorSentence("not busy") ||
		first.IsErrorSentence("busy") {
		t.Error("the error sentences of line second match other texts than expected")
	}
	a, b := s.Models()[0], s.Models()[1]
	if got := first.TimeoutsFor(a); got != (Timeouts{time.Minute, 5 * time.Second, 10 * time.Minute}) {
		t.Errorf("timeouts %v, want the line's idle and the defaults", got)
	}
	if got := first.TimeoutsFor(b); got.FirstToken != 10*time.Minute {
		t.Errorf("timeouts of a reasoning model %v, want first_token 10m", got)
	}
	for _, format := range []string{"%v", "%+v", "%#v", "%s"} {
		if text := fmt.Sprintf(format, *first); strings.Contains(text, "secret-one") {
			t.Errorf("Sprintf(%q) shows the credential", format)
		}
	}
}

// TestSnapshotOfNewerDocument checks that a node leaves out everything unknown in a document of a
// newer version.
func TestSnapshotOfNewerDocument(t *testing.T) {
	t.Parallel()
	doc, warnings, err := load([]byte(`{
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
		t.Errorf("model a %+v, want it under maintenance with the form chat", a)
	}
	if _, ok := s.Model("song"); ok {
		t.Error("Model(song) found a model of an unknown kind")
	}
	lines := s.Lines("a")
	if len(lines) != 2 || lines[0].UnusableReason != "provider newcomer is unknown to this version of the gateway" ||
		lines[1].UnusableReason != "" ||
		!lines[1].Supports(wire.FormChat) {
		t.Errorf("lines %+v, want new without its provider and old with the form chat", lines)
	}
	if len(warnings) != 8 {
		t.Errorf("got %d warnings, want 8: %v", len(warnings), warnings)
	}
	if _, _, err := load(
		[]byte(`{"models": [{"id": "a", "kind": "chat", "context_window": 10, "max_output_tokens": 5, "price": {"input": -1, ` +
			`"output": 1}}]}`)); err == nil {
		t.Error("load accepted a stored model with a negative price")
	}
}

// TestSandboxCatalogIsComplete checks that the sandbox catalog has models of all kinds, forms and
// states, and a usable line for each open model.
func TestSandboxCatalogIsComplete(t *testing.T) {
	t.Parallel()
	doc, warnings, err := Parse(Sandbox(), testProviders())
	if err != nil || len(warnings) > 0 {
		t.Fatalf("Parse: error %v, warnings %v, want neither", err, warnings)
	}
	states, forms, kinds := map[ModelState]int{}, map[wire.Form]int{}, map[Kind]int{}
	for _, m := range doc.Models {
		states[m.State]++
		if m.State == StateOpen {
			kinds[m.Kind]++
		}
		if m.Kind == KindChat && !m.Supports(wire.FormChat) {
			t.Errorf("model %s does not support chat completions", m.ID)
		}
		for _, form := range m.Forms {
			if m.State == StateOpen {
				forms[form]++
			}
		}
	}
	if len(forms) != 4 {
		t.Errorf("forms of open models %v, want 4", forms)
	}
	if kinds[KindChat] < 4 || kinds[KindImage] != 1 || kinds[KindVideo] != 1 {
		t.Errorf("open models %v, want at least 4 chat, 1 image and 1 video", kinds)
	}
	for _, kind := range definedKinds() {
		if kinds[kind] != 1 {
			t.Errorf("open models %v, want 1 of kind %s", kinds, kind)
		}
	}
	if len(states) != 4 || states[StateOpen] < 4 {
		t.Errorf("states %v, want all 4, and at least 4 open models", states)
	}
	s := NewSnapshot(1, doc, testProviders(), environment(nil))
	for _, m := range s.Models() {
		if m.State == StateOpen && (len(s.Lines(m.ID)) != 1 || s.Lines(m.ID)[0].UnusableReason != "") {
			t.Errorf("model %s has the lines %+v, want one usable line", m.ID, s.Lines(m.ID))
		}
	}
}

// TestLinesMayHaveFormsThatModelsLack checks that lines support a form of their provider that is
// not allowed on models, by default and if named.
func TestLinesMayHaveFormsThatModelsLack(t *testing.T) {
	t.Parallel()
	providers := map[string]Provider{"gemini": {Kinds: []Kind{KindChat}, Forms: []wire.Form{wire.FormGemini}}}
	doc, _, err := Parse([]byte(`
models: [{id: a, kind: chat, context_window: 1000, max_output_tokens: 100, price: {input: 1, output: 2}}]
lines:
- {id: default, provider: gemini, models: {a: x}}
- {id: named, provider: gemini, models: {a: x}, forms: [gemini]}
`), providers)
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range NewSnapshot(1, doc, providers, environment(nil)).Lines("a") {
		if !slices.Equal(l.Forms, []wire.Form{wire.FormGemini}) || l.Supports(wire.FormChat) {
			t.Errorf("line %s has the forms %v, want gemini", l.ID, l.Forms)
		}
	}
}

// TestSandboxStreamsVisibly checks that the sandbox streams slowly enough to be seen, and takes
// less than two seconds for fifteen tokens.
func TestSandboxStreamsVisibly(t *testing.T) {
	t.Parallel()
	doc := mustParse(t, string(Sandbox()))
	pause, err := time.ParseDuration(fmt.Sprint(doc.Lines[0].Options["chunk_delay"]))
	if err != nil || pause < 25*time.Millisecond || pause > 50*time.Millisecond {
		t.Errorf("chunk_delay %v, error %v, want from 25ms to 50ms", pause, err)
	}
	if delay, set := doc.Lines[0].Options["delay"]; set {
		t.Errorf("delay %v before the first token, want none", delay)
	}
}

// TestOptionalForms expects a form that a provider has only if the line names it, and `store` set by the
// gateway on such a line.
func TestOptionalForms(t *testing.T) {
	t.Parallel()
	providers := map[string]Provider{"gemini": {Kinds: []Kind{KindChat}, Forms: []wire.Form{wire.FormGemini},
		OptionalForms: []wire.Form{wire.FormInteractions}}}
	doc := func(keys string) string {
		return "models: [" + chatModel + "]\nlines: [{id: l, provider: gemini, models: {a: x}" + keys + "}]"
	}
	for keys, want := range map[string][]wire.Form{
		"": {wire.FormGemini}, ", forms: [interactions]": {wire.FormInteractions},
		", forms: [gemini, interactions]": {wire.FormGemini, wire.FormInteractions},
	} {
		parsed, _, err := Parse([]byte(doc(keys)), providers)
		if err != nil {
			t.Fatal(err)
		}
		s := NewSnapshot(1, parsed, providers, func(string) (string, bool) { return "", false })
		for _, l := range s.AllLines() {
			if !slices.Equal(l.Forms, want) || slices.Collect(l.FormsFor(wire.FormMessages))[0] != want[0] {
				t.Errorf("%q: got the forms %v, want %v", keys, l.Forms, want)
			}
		}
	}
	for _, keys := range []string{"set: {store: true}", "set: {background: true}", "set: {previous_interaction_id: x}", "omit: [store]"} {
		if _, _, err := Parse([]byte(doc(", forms: [interactions], "+keys)), providers); err == nil {
			t.Errorf("%s on a line of interactions is accepted", keys)
		}
	}
}
