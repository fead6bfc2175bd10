package bedrock

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"

	"tollgate/internal/upstream"
	"tollgate/internal/upstream/chatcall"
	"tollgate/internal/upstream/cloud"
	"tollgate/internal/upstream/exchange"
	"tollgate/internal/upstream/vector"
	"tollgate/internal/wire/rawjson"
)

// kindRerank is the kind of models called by InvokeModel, in Cohere's shape.
const kindRerank = "rerank"

// Adapter calls the provider for one line. It is safe for concurrent use.
type Adapter struct {
	*cloud.Adapter
	invoke *exchange.Client // calls of InvokeModel
	header http.Header      // the key; nil if the transport signs
}

// newAdapter returns the adapter of a line. The address of InvokeModel has no OpenAI path.
func newAdapter(t upstream.Target, o cloud.Options, transport http.RoundTripper) (*Adapter, error) {
	chat, err := cloud.Open(t, o, transport)
	if err != nil {
		return nil, err
	}
	t.BaseURL = strings.TrimSuffix(strings.TrimRight(t.BaseURL, "/"), cloud.OpenAIPath)
	invoke, err := exchange.Open(t, o.Info, transport)
	return &Adapter{Adapter: chat, invoke: invoke, header: o.OpenAIKey}, err
}

// Chat implements chatcall.Adapter for the forms of package cloud, embeddings and reranking.
func (a *Adapter) Chat(ctx context.Context, c chatcall.Call) (*chatcall.Response, error) {
	switch c.Form {
	case vector.Kind:
		return a.embed(ctx, c)
	case kindRerank:
		return a.rerank(ctx, c)
	}
	return a.Adapter.Chat(ctx, c)
}

// invokeURL returns the address of InvokeModel for a model.
func (a *Adapter) invokeURL(model string) *url.URL {
	return a.invoke.URL("model", url.PathEscape(model), "invoke")
}

// rerank makes a call for reranking. Models of Cohere require api_version.
func (a *Adapter) rerank(ctx context.Context, c chatcall.Call) (*chatcall.Response, error) {
	set := map[string]json.RawMessage{}
	if isCohere(c.Model) {
		set["api_version"] = json.RawMessage("2")
	}
	c.Body = rawjson.Override(c.Body, set, []string{"model"})
	answer, err := a.invoke.Send(ctx, exchange.Post{URL: a.invokeURL(c.Model), Header: a.header, Call: c})
	return answer, a.Source.Hide(err)
}
