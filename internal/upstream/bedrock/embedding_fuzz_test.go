package bedrock

import (
	"encoding/json"
	"io"
	"testing"

	"tollgate/internal/upstream/vector"
	"tollgate/internal/wire/rawjson"
)

// FuzzVectors checks that the vectors of any JSON make an answer of JSON.
func FuzzVectors(f *testing.F) {
	f.Add([]byte(`{"embedding":[0.5],"inputTextTokenCount":1}`))
	f.Add([]byte(`{"embeddings":{"float":[[1],null]}}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		if !rawjson.IsValid(raw) {
			return
		}
		answer, err := io.ReadAll(vector.Answer(vectorsOf(raw), 1).Body)
		if err != nil || !json.Valid(answer) {
			t.Errorf("%s became %s (%v)", raw, answer, err)
		}
	})
}
