package dashscope

import (
	"context"

	"tollgate/internal/upstream/chatcall"
	"tollgate/internal/upstream/exchange"
	"tollgate/internal/upstream/voice"
	"tollgate/internal/wire"
)

// Kinds of models with requests that are answered at once.
const (
	kindEmbedding = "embedding"
	kindRerank    = "rerank"
)

// Chat implements chatcall.Adapter for speech, embeddings and reranking. Embeddings pass through in
// OpenAI's shape, and reranking in Cohere's shape.
func (a *Adapter) Chat(ctx context.Context, c chatcall.Call) (*chatcall.Response, error) {
	if c.Form == voice.Kind {
		return a.speak(ctx, c)
	}
	path := compatiblePath(c.Form)
	if path == nil {
		return a.NoChat.Chat(ctx, c)
	}
	return a.Line.Send(ctx, exchange.Post{URL: a.Line.URL(path...), Header: a.Header, Call: c})
}

// compatiblePath returns the path of a form's calls, relative to the base address `…/api/v1`. It returns
// nil for other forms.
func compatiblePath(form wire.Form) []string {
	switch form {
	case kindEmbedding:
		return []string{"..", "..", "compatible-mode", "v1", "embeddings"}
	case kindRerank:
		return []string{"..", "..", "compatible-api", "v1", "reranks"}
	}
	return nil
}
