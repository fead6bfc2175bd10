// Package embedding owns the kind of models that turn texts into vectors.
//
// Invariants: an answer has one vector for each input, in their order and in the format that the client
// asked for; lists of tokens are counted exactly and never as text.
package embedding

import (
	"tollgate/internal/wire/kind"
	"tollgate/internal/wire/rawjson"
)

// References of the fields.
const (
	openAI = "https://platform.openai.com/docs/api-reference/embeddings/create"
	cohere = "https://docs.cohere.com/reference/embed"
	voyage = "https://docs.voyageai.com/reference/embeddings-api"
	jina   = "https://api.jina.ai/redoc"
)

// Fields of models.
const (
	maxInputs      = "max_inputs"
	maxInputTokens = "max_input_tokens"
	dimensions     = "dimensions"
)

// slack is the number of tokens that a provider may add to an input.
const slack = 8

// fields are the documented fields of requests. Never changed.
var fields = []kind.RequestField{
	{Name: "model", Source: openAI}, {Name: "input", Source: openAI}, {Name: dimensions, Source: openAI},
	{Name: "encoding_format", Source: openAI}, {Name: "user", Source: openAI},
	{Name: "input_type", Vendors: []string{"cohere", "voyage", "nvidia"}, Source: voyage},
	{Name: "truncate", Vendors: []string{"cohere", "nvidia"}, Source: cohere},
	{Name: "truncation", Vendors: []string{"voyage"}, Source: voyage},
	{Name: "output_dimension", Vendors: []string{"voyage", "mistral"}, Source: voyage},
	{Name: "output_dtype", Vendors: []string{"voyage", "mistral"}, Source: voyage},
	{Name: "task", Vendors: []string{"jina"}, Source: jina},
	{Name: "embedding_type", Vendors: []string{"jina"}, Source: jina},
	{Name: "late_chunking", Vendors: []string{"jina"}, Source: jina},
	{Name: "normalized", Vendors: []string{"jina"}, Source: jina},
}

// Definition returns the kind.
func Definition() *kind.Definition {
	return &kind.Definition{
		Name:      "embedding",
		Endpoints: []kind.CallPath{{Path: "/v1/embeddings", LinePath: "/embeddings"}},
		Measures:  []kind.Measure{kind.Tokens(kind.Input)},
		Numbers: []kind.Number{
			{Name: maxInputs, Max: 100_000, Default: 2048},
			{Name: maxInputTokens, Max: 100_000_000},
			{Name: dimensions, Max: 1_000_000},
		},
		Fields: fields,
		Advice: "send fewer or shorter inputs",
		Examples: []kind.Example{
			{Language: "curl", Text: `curl BASE/v1/embeddings \
  -H "Authorization: Bearer SECRET" \
  -H "Content-Type: application/json" \
  -d '{"model": MODEL, "input": ["A lighthouse in the fog", "A ship at sea"]}'`},
			{Language: "Python", Text: `from openai import OpenAI

client = OpenAI(base_url="BASE/v1", api_key="SECRET")
answer = client.embeddings.create(model=MODEL, input=["A lighthouse in the fog", "A ship at sea"])
print(len(answer.data), "vectors of", len(answer.data[0].embedding), "numbers")`},
			{Language: "Node", Text: `import OpenAI from "openai";

const client = new OpenAI({ baseURL: "BASE/v1", apiKey: "SECRET" });
const answer = await client.embeddings.create({ model: MODEL, input: ["A lighthouse in the fog", "A ship at sea"] });
console.log(answer.data.length, "vectors of", answer.data[0].embedding.length, "numbers");`},
		},
		Open:    open,
		Probe:   probe,
		Sandbox: sandbox,
	}
}

func probe(model string, _ kind.ModelLimits) ([]byte, *kind.Upload) {
	return []byte(`{"model":` + string(rawjson.Quote(model)) + `,"input":"ping"}`), nil
}
