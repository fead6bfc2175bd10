package chat

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"tollgate/internal/catalog"
	"tollgate/internal/gatewaytest/fakeprovider"
	"tollgate/internal/ledger"
	"tollgate/internal/wire"
	"tollgate/internal/wire/responses"
)

// compactingCall is a responses request with a prompt of 250,000 bytes.
func compactingCall(t testing.TB, fields string, stream bool) AcceptedRequest {
	t.Helper()
	providers := map[string]catalog.Provider{"script": {Kinds: []catalog.Kind{catalog.KindChat}, Forms: []wire.Form{wire.FormResponses}}}
	doc, _, err := catalog.Parse([]byte(`
models:
  - {id: o, kind: chat, forms: [responses], context_window: 1000000, max_output_tokens: 10000, price: {input: 1, output: 10}}
lines:
  - {id: only, provider: script, models: {o: gpt-o}, timeouts: {first_token: 10s, idle: 20s, total: 30s}}
`), providers)
	if err != nil {
		t.Fatal(err)
	}
	r, err := responses.Open(fmt.Appendf(nil, `{"model":"o","max_output_tokens":100,"input":%q,"stream":%v,%s}`,
		strings.Repeat("gold ", 50_000), stream, fields))
	if err == nil {
		err = r.Check()
	}
	if err != nil {
		t.Fatal(err)
	}
	c := AcceptedRequest{Form: wire.FormResponses, Body: r,
		Admission: ledger.Admission{Request: "req_1", Account: "acct_1", Key: "key_1", KeyVersion: 1, Received: time.Now()}}
	c.Snapshot = catalog.NewSnapshot(1, doc, providers, func(string) (string, bool) { return "", false })
	c.Model, _ = c.Snapshot.Model("o")
	return c
}

// TestCompactionOfResponses checks the hold and the charge of a compaction. The hold covers a
// second reading of the prompt and a summary; the charge follows the usage.
func TestCompactionOfResponses(t *testing.T) {
	t.Parallel()
	const used = `{"input_tokens":440000,"output_tokens":9000,"total_tokens":449000}`
	for fields, want := range map[string]string{
		`"context_management":[{"type":"compaction","compact_threshold":1000}]`:           "0.53",
		`"context_management":[{"compact_threshold":1000,"type":"compaction"},{}]`:        "0.53",
		`"context_management":[{"type":"Compaction"}]`:                                    "0.53",
		`"context_management":[{"type":"compaction_20270101"}]`:                           "0.53",
		`"context_management":["compaction"]`:                                             "0.53",
		`"context_management":[{"type":null}],"prompt_cache_key":"a"`:                     "0.53",
		`"include":["reasoning.encrypted_content"],"context_management":[{"type":"any"}]`: "0.53",
	} {
		for _, stream := range []bool{false, true} {
			parts := []string{fakeprovider.ResponsesObject("completed", used, fakeprovider.ResponsesMessage("Hello"))}
			if stream {
				parts = append(fakeprovider.ResponsesBegin(), fakeprovider.ResponsesText("Hello"),
					fakeprovider.ResponsesEnd("completed", used, fakeprovider.ResponsesMessage("Hello")))
			}
			tr := newTrial(t, reply{pieces: parts})
			if out := tr.send(compactingCall(t, fields, stream)); out.err != nil || out.cut {
				t.Fatalf("%s: %+v", fields, out)
			}
			size := tr.books.amounts[0].Amount
			if got := tr.books.ends[0].Cost; got.String() != want || size < got {
				t.Errorf("%s, stream %v: charged %s, want %s; held %s", fields, stream, got, want, size)
			}
		}
	}
}
