// Package tei owns calls to Text Embeddings Inference, a server of models for embeddings and reranking.
// Embeddings pass through in OpenAI's shape; reranking is translated.
//
// Invariants:
//   - A call is sent at most once (by package exchange).
//   - The line's credential is only sent to the line's base address.
package tei

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"

	"tollgate/internal/fault"
	"tollgate/internal/upstream"
	"tollgate/internal/upstream/chatcall"
	"tollgate/internal/upstream/exchange"
	"tollgate/internal/wire/rawjson"
)

// Provider is the adapter's name in the catalog.
const Provider = "tei"

// The kinds of models.
const (
	kindEmbedding = "embedding"
	kindRerank    = "rerank"
)

// Info describes the provider for the catalog. The key is optional, because a server in a private
// network may have none.
func Info() upstream.Info {
	return upstream.Info{
		Kinds: []string{kindEmbedding, kindRerank}, NeedsBaseURL: true, CheckOptions: exchange.NoOptions(Provider),
	}
}

// Adapter calls the provider for one line. It is safe for concurrent use.
type Adapter struct {
	line   *exchange.Client
	header http.Header
}

// New returns the adapter of a line. transport carries the calls. New returns the errors of
// exchange.Open.
func New(t upstream.Target, transport http.RoundTripper) (*Adapter, error) {
	plain, err := exchange.OpenPlain(t, Info(), transport, "Authorization")
	if err != nil {
		return nil, err
	}
	return &Adapter{plain.Line, plain.Header}, nil
}

// Chat implements chatcall.Adapter for embeddings and reranking.
func (a *Adapter) Chat(ctx context.Context, c chatcall.Call) (*chatcall.Response, error) {
	switch c.Form {
	case kindEmbedding:
		return a.line.Send(ctx, exchange.Post{URL: a.line.URL("v1", "embeddings"), Header: a.header, Call: c})
	case kindRerank:
		return a.rerank(ctx, c)
	}
	return nil, upstream.Fail(fault.UpstreamUnavailable, fmt.Errorf("provider %s does not speak the form %q", Provider, c.Form))
}

// rerank sends the query and the texts of a call. The server answers with a list of all results,
// which becomes `results`. The server knows neither models nor a limit of results.
func (a *Adapter) rerank(ctx context.Context, c chatcall.Call) (*chatcall.Response, error) {
	body := c.Body.Bytes()
	c.Body = rawjson.Pieces{
		[]byte(`{"query":`), rawjson.Field(body, "query"), []byte(`,"texts":`), rawjson.Field(body, "documents"), []byte("}"),
	}
	answer, err := a.line.Send(ctx, exchange.Post{URL: a.line.URL("rerank"), Header: a.header, Call: c})
	if err != nil {
		return nil, err
	}
	whole := io.MultiReader(strings.NewReader(`{"results":`), answer.Body, strings.NewReader("}"))
	return &chatcall.Response{Body: resultList{whole, answer.Body}, ContentType: answer.ContentType}, nil
}

// resultList is the body of a translated answer.
type resultList struct {
	io.Reader
	io.Closer
}
