package tei_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"go.uber.org/goleak"

	"tollgate/internal/upstream"
	"tollgate/internal/upstream/chatcall"
	"tollgate/internal/upstream/conformance"
	"tollgate/internal/upstream/tei"
	"tollgate/internal/wire/rawjson"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestConformance(t *testing.T) {
	t.Parallel()
	conformance.Kinds(t, conformance.KindsProvider{
		Provider: tei.Provider,
		Paths:    map[string]string{"embedding": "/v1/embeddings", "rerank": "/rerank"},
		Bodies:   map[string]string{"rerank": `{"query":"ping","texts":["ping"]}`},
		Answers:  map[string]string{"rerank": `[{"index":0,"score":0.9}]`},
	})
}

// TestRerank checks that a fixed field of the line reaches the server, and that the server's error stays an
// error.
func TestRerank(t *testing.T) {
	t.Parallel()
	for status, reply := range map[int]string{
		200: `[{"index":1,"score":0.9},{"index":0,"score":0.1}]`, 413: `{"error":"the text is too long","error_type":"Validation"}`,
	} {
		sent := make(chan string, 1)
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			raw, _ := io.ReadAll(r.Body)
			sent <- r.URL.Path + " " + string(raw)
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(status)
			_, _ = io.WriteString(w, reply)
		}))
		defer server.Close()
		raw, err := ask(t, server.URL)
		if status == http.StatusOK && (err != nil || raw != `{"results":`+reply+`}`) || status != http.StatusOK && err == nil {
			t.Errorf("status %d: got %s, error %v", status, raw, err)
		}
		if got, want := <-sent, `/rerank {"query":"q","texts":["a","b"],"truncate":true}`; got != want {
			t.Errorf("the server got %s, want %s", got, want)
		}
	}
}

// ask makes a call of a line with a fixed field and returns the answer.
func ask(t *testing.T, base string) (string, error) {
	t.Helper()
	a, err := tei.New(upstream.Target{Line: "main", Provider: tei.Provider, BaseURL: base,
		Set: map[string]json.RawMessage{"truncate": json.RawMessage("true")}}, conformance.Transport(t))
	if err != nil {
		t.Fatal(err)
	}
	answer, err := a.Chat(t.Context(), chatcall.Call{Form: "rerank", Path: "/rerank",
		Body: rawjson.Pieces{[]byte(`{"model":"m","query":"q","documents":["a","b"],"top_n":1}`)}})
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	raw, err := io.ReadAll(answer.Body)
	return string(raw), err
}
