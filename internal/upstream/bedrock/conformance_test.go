package bedrock_test

import (
	"testing"

	"tollgate/internal/upstream/bedrock"
	"tollgate/internal/upstream/chatcall"
	"tollgate/internal/upstream/conformance"
	"tollgate/internal/wire"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	conformance.Chat(t, conformance.ChatProvider{
		Provider: bedrock.Provider, Call: func(form wire.Form) chatcall.Call { return call(form, false) },
		WithoutTokenCount: []wire.Form{wire.FormChat, wire.FormResponses},
	})
	conformance.Kinds(t, conformance.KindsProvider{
		Provider: bedrock.Provider,
		Models:   map[string]string{"embedding": "amazon.titan-embed-text-v2:0"},
		Paths:    map[string]string{"rerank": "/model/m/invoke", "embedding": "/model/amazon.titan-embed-text-v2:0/invoke"},
		Bodies:   map[string]string{"rerank": `{"query":"ping","documents":["ping"]}`, "embedding": `{"inputText":"ping"}`},
		Answers:  map[string]string{"embedding": `{"embedding":[0.5],"inputTextTokenCount":1}`},
	})
}
