// Package forms owns the tests of all wire forms of clients and lines. The tests check the answers,
// byte by byte if the gateway forwards them, and the charges.
package forms

import (
	"net/http"
	"testing"

	"tollgate/internal/gatewaytest/fakeprovider"
	"tollgate/internal/gatewaytest/scene"
	"tollgate/internal/store/storetest"
)

// lineForms returns all forms of lines.
func lineForms() []string { return []string{"chat", "responses", "messages", "gemini", "interactions"} }

// playForms plays scenarios on both databases, with a gateway process with settings for each.
func playForms(t *testing.T, binary string, settings map[string]string, build func(t testing.TB) []scene.Scenario) {
	t.Helper()
	t.Parallel()
	storetest.EachURL(t, func(t *testing.T, database string) {
		g := scene.Open(t, binary, database, settings)
		g.Client.Transport = &http.Transport{MaxIdleConnsPerHost: 64, DisableCompression: true}
		scene.Play(t, g, build(t))
	})
}

// weatherTool returns the request member tools with the function weather.
func weatherTool(form scene.Form) map[string]any {
	schema := map[string]any{"type": "object", "properties": map[string]any{"city": map[string]any{"type": "string"}},
		"required": []string{"city"}}
	var tool map[string]any
	switch form {
	case scene.Responses:
		tool = map[string]any{"type": "function", "name": "weather", "parameters": schema}
	case scene.Messages:
		tool = map[string]any{"name": "weather", "input_schema": schema}
	default:
		tool = map[string]any{"type": "function", "function": map[string]any{"name": "weather", "parameters": schema}}
	}
	return map[string]any{"tools": []any{tool}}
}

// The contents of good answers: the text of fakeprovider.Good, and the call of the weather tool.
const (
	goodText = "all is well"
	goodCall = `weather({"city":"Oslo"})`
)

// single is a scenario with one model on one line. Both have the same id.
type single struct {
	name      string     // of the scenario
	in        scene.Form // of the client
	line      string     // the line's form
	model     string
	provider  *fakeprovider.Server
	modelMore map[string]any // further members in the catalog
	lineMore  map[string]any
}

// plays returns the scenario. It calls play with a new client.
func (s single) plays(play func(t *testing.T, client scene.FormClient)) scene.Scenario {
	return scene.Scenario{
		Name:   s.name,
		Models: []map[string]any{scene.FormModel(s.model, s.modelMore, s.in)},
		Lines:  []map[string]any{scene.FormLine(s.model, s.line, s.provider.URL(), s.lineMore, s.model)},
		Play:   func(t *testing.T, g *scene.Gateway) { play(t, s.in.NewClient(t, g)) },
	}
}
