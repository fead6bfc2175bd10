// Package moderation owns the kind of models for judging texts and images as harmful or harmless.
//
// Invariant: an answer passes as it came, except for the name of the model.
package moderation

import (
	"tollgate/internal/wire/kind"
	"tollgate/internal/wire/rawjson"
)

// References of the fields.
const (
	openAI  = "https://platform.openai.com/docs/api-reference/moderations/create"
	mistral = "https://docs.mistral.ai/api/endpoint/classifiers"
)

// Fields of models.
const (
	maxInputs      = "max_inputs"
	maxImageTokens = "max_image_tokens"
)

// Tokens of an input.
const (
	slack       = 8   // that a provider may add to a text
	imageTokens = 765 // the gateway's own count of an image, as in chat
)

// fields are the documented fields of requests. Never changed.
var fields = []kind.RequestField{
	{Name: "model", Source: openAI}, {Name: "input", Source: openAI},
	{Name: "metadata", Vendors: []string{"mistral"}, Source: mistral},
}

// Definition returns the kind.
func Definition() *kind.Definition {
	return &kind.Definition{
		Name:      "moderation",
		Endpoints: []kind.CallPath{{Path: "/v1/moderations", LinePath: "/moderations"}},
		Measures:  []kind.Measure{kind.Tokens(kind.Input), kind.PerRequest()},
		Numbers: []kind.Number{
			{Name: maxInputs, Max: 100_000, Default: 2048},
			{Name: maxImageTokens, Max: 100_000_000, Default: 8192},
		},
		Fields: fields,
		Advice: "send fewer or shorter inputs",
		Examples: []kind.Example{
			{Language: "curl", Text: `curl BASE/v1/moderations \
  -H "Authorization: Bearer SECRET" \
  -H "Content-Type: application/json" \
  -d '{"model": MODEL, "input": "A story about violence."}'`},
			{Language: "Python", Text: `from openai import OpenAI

client = OpenAI(base_url="BASE/v1", api_key="SECRET")
answer = client.moderations.create(model=MODEL, input="A story about violence.")
print("flagged" if answer.results[0].flagged else "not flagged")`},
			{Language: "Node", Text: `import OpenAI from "openai";

const client = new OpenAI({ baseURL: "BASE/v1", apiKey: "SECRET" });
const answer = await client.moderations.create({ model: MODEL, input: "A story about violence." });
console.log(answer.results[0].flagged ? "flagged" : "not flagged");`},
		},
		Open:    open,
		Probe:   probe,
		Sandbox: sandbox,
	}
}

func probe(model string, _ kind.ModelLimits) ([]byte, *kind.Upload) {
	return []byte(`{"model":` + string(rawjson.Quote(model)) + `,"input":"ping"}`), nil
}
