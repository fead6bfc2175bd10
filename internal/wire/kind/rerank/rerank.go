// Package rerank owns the kind of models that sort documents by their relevance to a query, in the shape that
// Cohere and Jina share.
//
// Invariants: an answer has at most the results that the client asked for, the best first, each of a document
// of the request; a line gets texts only, and documents come back from the request and never from a line.
package rerank

import (
	"tollgate/internal/wire/kind"
	"tollgate/internal/wire/rawjson"
)

// References of the fields.
const (
	cohere      = "https://docs.cohere.com/reference/rerank"
	cohereV1    = "https://docs.cohere.com/v1/reference/rerank"
	voyage      = "https://docs.voyageai.com/reference/reranker-api"
	dashscope   = "https://www.alibabacloud.com/help/en/model-studio/text-rerank-api"
	siliconflow = "https://docs.siliconflow.com/en/api-reference/rerank/create-rerank"
	vllm        = "https://docs.vllm.ai/en/latest/serving/openai_compatible_server.html"
)

// maxDocuments is the field of models for the largest number of documents in a request.
const maxDocuments = "max_documents"

// Searches counts searches: a search is a query with up to 100 documents.
const Searches kind.PriceUnit = "searches"

// Sizes of searches and of documents.
const (
	searchDocuments = 100 // documents of a search
	chunkBytes      = 500 // of query and document together; a longer document counts as several
	slack           = 16  // tokens that a provider may add to a document and its query
)

// fields are the documented fields of requests. Never changed.
var fields = []kind.RequestField{
	{Name: "model", Source: cohere}, {Name: "query", Source: cohere}, {Name: "documents", Source: cohere}, {Name: "top_n", Source: cohere},
	{Name: "return_documents", Source: cohereV1},
	{Name: "max_tokens_per_doc", Vendors: []string{"cohere"}, Source: cohere},
	{Name: "max_chunks_per_doc", Vendors: []string{"cohere", "siliconflow"}, Source: cohereV1},
	{Name: "overlap_tokens", Vendors: []string{"siliconflow"}, Source: siliconflow},
	{Name: "instruction", Vendors: []string{"siliconflow"}, Source: siliconflow},
	{Name: "instruct", Vendors: []string{"dashscope"}, Source: dashscope},
	{Name: "truncation", Vendors: []string{"voyage"}, Source: voyage},
	{Name: "truncate_prompt_tokens", Vendors: []string{"vllm"}, Source: vllm},
}

// Definition returns the kind.
func Definition() *kind.Definition {
	return &kind.Definition{
		Name:      "rerank",
		Endpoints: []kind.CallPath{{Path: "/v1/rerank", LinePath: "/rerank"}, {Path: "/v2/rerank", LinePath: "/rerank"}},
		Measures: []kind.Measure{
			{Name: "thousand_searches", Per: 1000, Noun: "thousand searches", Units: []kind.PriceUnit{Searches}, Quantity: "search"},
			kind.Tokens(kind.Input),
		},
		Numbers: []kind.Number{{Name: maxDocuments, Max: 100_000, Default: 1000}},
		Fields:  fields,
		Advice:  "send fewer or shorter documents",
		Examples: []kind.Example{
			{Language: "curl", Text: `curl BASE/v1/rerank \
  -H "Authorization: Bearer SECRET" \
  -H "Content-Type: application/json" \
  -d '{"model": MODEL, "query": "light at sea", "documents": ["A lighthouse in the fog", "The sea at night", "Tax returns"], "top_n": 2}'`},
			{Language: "Python", Text: `import cohere

client = cohere.ClientV2(base_url="BASE", api_key="SECRET")
answer = client.rerank(model=MODEL, query="light at sea", top_n=2,
                       documents=["A lighthouse in the fog", "The sea at night", "Tax returns"])
for result in answer.results:
    print(result.index, result.relevance_score)`},
			{Language: "Node", Text: `const answer = await fetch("BASE/v1/rerank", {
  method: "POST",
  headers: { Authorization: "Bearer SECRET", "Content-Type": "application/json" },
  body: JSON.stringify({
    model: MODEL, query: "light at sea", top_n: 2,
    documents: ["A lighthouse in the fog", "The sea at night", "Tax returns"],
  }),
});
for (const result of (await answer.json()).results) console.log(result.index, result.relevance_score);`},
		},
		Open:    open,
		Probe:   probe,
		Sandbox: sandbox,
	}
}

func probe(model string, _ kind.ModelLimits) ([]byte, *kind.Upload) {
	return []byte(`{"model":` + string(rawjson.Quote(model)) + `,"query":"ping","documents":["ping"]}`), nil
}
