package clients

import (
	"context"
	"math"
	"testing"

	"github.com/openai/openai-go/v3"
)

// TestEmbeddingsForGo asks for vectors with the official Go client. The line takes two inputs in a call.
func TestEmbeddingsForGo(t *testing.T) {
	g := start(t)
	client := g.client(g.key(t, g.account(t, "1"), nil))
	texts := []string{"a lighthouse in the fog", "a lighthouse in the mist", "quarterly tax returns"}
	answer, err := client.Embeddings.New(context.Background(), openai.EmbeddingNewParams{
		Model: "vector-1", Input: openai.EmbeddingNewParamsInputUnion{OfArrayOfStrings: texts}, Dimensions: openai.Int(64),
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(answer.Data) != len(texts) || answer.Model != "vector-1" || answer.Usage.PromptTokens == 0 {
		t.Fatalf("%d vectors of %s with usage %+v, want %d of vector-1", len(answer.Data), answer.Model, answer.Usage, len(texts))
	}
	for i, vector := range answer.Data {
		if vector.Index != int64(i) || len(vector.Embedding) != 64 {
			t.Errorf("vector %d has index %d and %d numbers, want 64 numbers", i, vector.Index, len(vector.Embedding))
		}
	}
	near, far := cosine(answer.Data[0].Embedding, answer.Data[1].Embedding), cosine(answer.Data[0].Embedding, answer.Data[2].Embedding)
	if near < far+0.3 {
		t.Errorf("similarity of the similar texts %.2f, of the others %.2f", near, far)
	}
	// 2 USD a million are 2000 nano-dollars a token.
	if got, want := nano(t, g.usage(t, client).Total.CostUSD), answer.Usage.PromptTokens*2000; got != want {
		t.Errorf("charged %d nano-dollars, want %d", got, want)
	}
}

// cosine returns the similarity of two vectors.
func cosine(a, b []float64) float64 {
	var product, normA, normB float64
	for i := range a {
		product, normA, normB = product+a[i]*b[i], normA+a[i]*a[i], normB+b[i]*b[i]
	}
	return product / math.Sqrt(normA*normB)
}
