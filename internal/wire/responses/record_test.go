package responses

import (
	"bytes"
	"encoding/json"
	"testing"

	"tollgate/internal/wire"
	"tollgate/internal/wire/rawjson"
	"tollgate/internal/wire/sse"
)

// FuzzRecorder passes any stream of a line through a recorder. The client gets the same bytes as without it, and
// the recorded answer is the response of the last terminal event, with the items of the events before it if the
// response has none. Without memory there is no answer.
func FuzzRecorder(f *testing.F) {
	const item = `{"type":"message","id":"m","role":"assistant","status":"completed","content":[{"type":"output_text","text":"Hi"}]}`
	done := "event: response.output_item.done\ndata: {\"type\":\"response.output_item.done\",\"output_index\":0,\"item\":" + item + "}\n\n"
	end := func(kind, output string) string {
		return "event: response." + kind + "\ndata: {\"type\":\"response." + kind + "\",\"response\":{\"id\":\"r\",\"status\":\"" + kind +
			"\",\"output\":" + output + "}}\n\n"
	}
	for _, seed := range []string{done + end("completed", "["+item+"]"), done + end("incomplete", "[]"), end("completed", "null"),
		end("failed", "[]"), done + done + end("completed", "[]"), "data: {\"type\":\"response.completed\",\ndata: \"response\":{}}\n\n",
		end("completed", "[]") + end("completed", "[1]"), "data: [DONE]\n\n",
		": x\n\ndata: {\"type\":\"response.output_item.done\",\"item\":1}\n\n"} {
		f.Add([]byte(seed), int64(1<<20))
		f.Add([]byte(seed), int64(20))
	}
	f.Fuzz(func(t *testing.T, stream []byte, memory int64) {
		r, err := Open([]byte(`{"model":"m","input":"x","store":true}`))
		if err != nil {
			t.Fatal(err)
		}
		id := wire.Identity{Request: "req_1", Model: "m"}
		left := memory
		recorder := NewRecorder(newEditor(id, r), func(n int64) bool { left -= n; return left >= 0 })
		plain, meter := newEditor(id, r), NewMeter()
		var got, want []byte
		for reader := sse.NewReader(bytes.NewReader(stream), 1<<20); ; {
			e, err := reader.Next()
			if err != nil || reader.Ended() {
				break
			}
			frame, err := meter.Read(e)
			if err != nil {
				break
			}
			got, want = recorder.Append(got, e, frame), plain.Append(want, e, frame)
		}
		got, want = recorder.End(got, wire.Usage{}), plain.End(want, wire.Usage{})
		if !bytes.Equal(got, want) {
			t.Fatalf("the client got %q, want %q", got, want)
		}
		answer := recorder.Answer()
		var last, items []json.RawMessage
		for e := range sse.Each(want) {
			switch rawjson.Unquote(rawjson.Field(e.Data, "type")) {
			case "response.output_item.done":
				items = append(items, rawjson.Field(e.Data, "item"))
			case "response.completed", "response.incomplete":
				last = append(last, rawjson.Field(e.Data, "response"))
			}
		}
		switch {
		case answer == nil:
			return
		case left < 0, len(last) == 0:
			t.Fatalf("got the answer %s of %q", answer, want)
		case !json.Valid(answer):
			t.Fatalf("got the answer %q of %q", answer, want)
		}
		if output := rawjson.Field(answer, "output"); len(output) > 2 {
			n := 0
			for range rawjson.Elements(output) {
				n++
			}
			own := 0
			for range rawjson.Elements(rawjson.Field(last[len(last)-1], "output")) {
				own++
			}
			if n != own && (own > 0 || n != len(items)) {
				t.Fatalf("got %d items in %s, want %d or %d, of %q", n, answer, own, len(items), want)
			}
		}
	})
}
