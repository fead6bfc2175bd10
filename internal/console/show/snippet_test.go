package show_test

import (
	"strings"
	"testing"

	"tollgate/internal/app"
	"tollgate/internal/catalog"
	"tollgate/internal/console/show"
	"tollgate/internal/line"
	"tollgate/internal/line/health"
)

// TestSnippetsUseAnsweringModels checks that the examples for a key use an allowed model that can
// answer now, and prefer a provider's model to a sandbox model.
func TestSnippetsUseAnsweringModels(t *testing.T) {
	t.Parallel()
	const text = `models:
  - {id: nowhere, MODEL}
  - {id: closed, state: maintenance, MODEL}
  - {id: plays, MODEL}
  - {id: first, MODEL}
  - {id: second, MODEL}
  - {id: unset, MODEL}
lines:
  - {id: sandbox, provider: sandbox, models: {plays: sandbox-chat}}
  - {id: one, provider: openai, api_key: "${SET}", models: {first: x, closed: x}}
  - {id: two, provider: openai, api_key: "${SET}", models: {second: x}}
  - {id: off, provider: openai, api_key: "${UNSET}", models: {unset: x}}
`
	doc, _, err := catalog.Parse([]byte(strings.ReplaceAll(text, "MODEL", "kind: chat, forms: [chat, responses, messages], "+
		"context_window: 1000, max_output_tokens: 100, price: {input: 1, output: 1}")), app.Providers())
	if err != nil {
		t.Fatal(err)
	}
	snapshot := catalog.NewSnapshot(1, doc, app.Providers(), func(name string) (string, bool) {
		return strings.TrimPrefix(name, "UNSET"), name == "SET"
	})
	parts := health.PartsOut{ModelsOut: []health.PartOut{{Model: "first"}}}
	states := func(lineAndState ...string) (all []line.Status) {
		for i := 0; i < len(lineAndState); i += 2 {
			all = append(all, line.Status{Line: lineAndState[i], State: lineAndState[i+1]})
		}
		return all
	}
	for name, c := range map[string]struct {
		lines   []line.Status
		allowed []string
		want    string
	}{
		"every line is in service":       {nil, nil, "first"},
		"a line is out":                  {states("one", health.StateCircuitOpen), nil, "second"},
		"a line is drained":              {states("one", "drained"), nil, "second"},
		"a line cools down":              {states("one", health.StateCooling), nil, "first"},
		"a model is out":                 {[]line.Status{{Line: "one", State: health.StateInService, PartsOut: parts}}, nil, "second"},
		"all lines are out":              {states("one", health.StateCircuitOpen, "two", health.StateCircuitOpen), nil, "first"},
		"no provider is in service":      {states("one", "drained", "two", health.StateCredentialsOut), nil, "nowhere"},
		"nothing is in service":          {states("one", "drained", "two", "drained", "sandbox", "drained"), nil, "nowhere"},
		"the key allows one model":       {nil, []string{"second"}, "second"},
		"the key allows a sandbox model": {nil, []string{"plays"}, "plays"},
		"the key allows an unset line":   {nil, []string{"unset", "plays"}, "plays"},
	} {
		codes := show.KeySnippets("https://gate.example", show.Offer{Catalog: snapshot, Lines: c.lines}, c.allowed, "")
		if len(codes) < 7 {
			t.Errorf("%s: %d snippets, want at least 7", name, len(codes))
		}
		for _, s := range codes {
			if !strings.Contains(s.Text.String(), c.want) {
				t.Errorf("%s: %s does not use %s: %s", name, s.Name, c.want, s.Text)
			}
		}
	}
	if codes := show.KeySnippets("https://gate.example", show.Offer{Catalog: snapshot}, []string{"closed"}, ""); len(codes) > 0 {
		t.Errorf("the snippets for a model in maintenance begin with %s, want none", codes[0].Text)
	}
}
