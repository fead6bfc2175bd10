package bedrock_test

import (
	"strings"
	"testing"

	"tollgate/internal/gatewaytest/fakeprovider"
	"tollgate/internal/upstream/bedrock"
	"tollgate/internal/upstream/chatcall"
	"tollgate/internal/upstream/conformance"
	"tollgate/internal/wire/rawjson"
)

// TestEmbeddings tests bodies and answers of both families of models.
func TestEmbeddings(t *testing.T) {
	t.Parallel()
	const titan, cohere = "amazon.titan-embed-text-v2:0", "us.cohere.embed-v4:0"
	counted := fakeprovider.Reply{Header: map[string]string{"X-Amzn-Bedrock-Input-Token-Count": "5"},
		Body: `{"id":"e","response_type":"embeddings_by_type","embeddings":{"float":[[1],[2]]},"texts":["a","b"]}`}
	for _, c := range []struct {
		model, fields, sent string
		reply               fakeprovider.Reply
		want, failure       string
	}{
		{titan, `"input":"a"`, `{"inputText":"a"}`, fakeprovider.Reply{Body: `{"embedding":[0.5],"inputTextTokenCount":3}`},
			`{"object":"list","data":[{"object":"embedding","index":0,"embedding":[0.5]}],"usage":{"prompt_tokens":3,"total_tokens":3}}`, ""},
		{titan, `"input":["a"],"dimensions":256`, `{"inputText":"a","dimensions":256}`, fakeprovider.Reply{Body: `{"embedding":[0.5]}`},
			`{"object":"list","data":[{"object":"embedding","index":0,"embedding":[0.5]}]}`, ""},
		{cohere, `"input":["a","b"],"dimensions":256`,
			`{"texts":["a","b"],"input_type":"search_document","embedding_types":["float"],"output_dimension":256}`, counted,
			`{"object":"list","data":[{"object":"embedding","index":0,"embedding":[1]},{"object":"embedding","index":1,"embedding":[2]}],` +
				`"usage":{"prompt_tokens":5,"total_tokens":5}}`, ""},
		{cohere, `"input":"a"`, "", fakeprovider.Reply{Body: `{"embeddings":[[1]]}`},
			`{"object":"list","data":[{"object":"embedding","index":0,"embedding":[1]}]}`, ""},
		{cohere, `"input":"a"`, "", counted, "", "upstream_unavailable fail"},
		{titan, `"input":"a"`, "", fakeprovider.Reply{Body: `{"inputTextTokenCount":3}`}, "", "upstream_unavailable fail"},
		{titan, `"input":[1,2]`, "", fakeprovider.Reply{}, "", `invalid_request at "input", other lines: true`},
		{"amazon.nova-2-multimodal-embeddings-v1:0", `"input":"a"`, "", fakeprovider.Reply{}, "", "upstream_unavailable model"},
		{titan, `"input":"a"`, "", fakeprovider.Reply{Status: 429, Header: map[string]string{"X-Amzn-Errortype": "ThrottlingException"},
			Body: `{"message":"Too many requests, please wait before trying again."}`}, "", "upstream_busy cool"},
		{titan, `"input":"a"`, "", fakeprovider.Reply{Status: 400, Header: map[string]string{"X-Amzn-Errortype": "ValidationException"},
			Body: `{"message":"400 Bad Request: Too many input tokens. Max input tokens: 8192, request input token count: 9000"}`}, "",
			`context_length_exceeded at "", other lines: false`},
	} {
		p := fakeprovider.New(t, c.reply)
		a := conformance.OpenLine(t, bedrock.Provider, strings.TrimSuffix(p.URL(), "/v1"), nil)
		body, _, failure := conformance.Answer(t, a, chatcall.Call{Form: "embedding", Path: "/embeddings", Model: c.model,
			Body: rawjson.Pieces{[]byte(`{"model":"x",` + c.fields + `}`)}})
		if body != c.want || failure != c.failure {
			t.Errorf("%s of %s: got %s, failure %q; want %s, failure %q", c.fields, c.model, body, failure, c.want, c.failure)
		}
		if all := p.Requests(); c.sent != "" && (len(all) != 1 || string(all[0].Body) != c.sent || all[0].Path != "/model/"+c.model+"/invoke") {
			t.Errorf("%s of %s: the provider got %+v, want %s", c.fields, c.model, all, c.sent)
		}
	}
}
