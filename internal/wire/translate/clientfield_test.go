package translate

import (
	"slices"
	"strings"
	"testing"

	"tollgate/internal/fault"
	"tollgate/internal/wire"
	"tollgate/internal/wire/internal/wiretest"
	"tollgate/internal/wire/translate/internal/pairtest"
)

// TestChainUnsettled checks that an event with several translations, with the finish after a text, is
// dropped as a whole if the settlement fails.
func TestChainUnsettled(t *testing.T) {
	t.Parallel()
	event := func(text, finish string) string {
		return `{"candidates":[{"content":{"parts":[{"text":"` + text + `"}],"role":"model"}` + finish +
			`}],"usageMetadata":{"promptTokenCount":3,"candidatesTokenCount":2,"totalTokenCount":5}}`
	}
	stream := wiretest.Frames(event("Hel", ""), event("lo", `,"finishReason":"STOP"`))
	m, w := New(pairtest.Responses(t, `{"input":"x","stream":true}`), wire.FormGemini, identity).Events()
	out, held := pairtest.StreamWithoutEnd(t, stream, w, m)
	wiretest.MustCheckResponses(t, w.End(slices.Clone(out), wire.Usage{}))
	wiretest.MustCheckResponses(t, w.Fail(out[:held:held], fault.New(fault.ServiceUnavailable, "Not settled.")))
}

// identity is the identity of all answers in tests.
var identity = wire.Identity{Request: "req_01TEST", Model: "swift-1", Created: 1795262002}

// TestRefusalsNameClientFields checks that param and message of a refusal name the field of the client's
// request exactly.
func TestRefusalsNameClientFields(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		body     string
		lineForm wire.Form
		param    string
	}{
		"image": {`{"model":"swift-1","input":[{"role":"user","content":[{"type":"input_image",` +
			`"image_url":"data:image/bmp;base64,eA=="}]}]}`, wire.FormMessages, "input[0].content[0].image_url"},
		"file": {`{"model":"swift-1","input":[{"role":"user","content":[{"type":"input_file","filename":"a.txt",` +
			`"file_data":"data:text/plain;base64,eA=="}]}]}`, wire.FormMessages, "input[0].content[0].file_data"},
		"tool": {`{"model":"swift-1","input":"hi","tools":[{"type":"function","name":"f","parameters":7}]}`, wire.FormMessages,
			"tools[0].parameters"},
		"effort": {`{"model":"swift-1","input":"hi","reasoning":{"effort":"huge"}}`, wire.FormMessages, "reasoning.effort"},
		"schema": {`{"model":"swift-1","input":"hi","text":{"format":{"type":"json_schema","name":"x","schema":7}}}`,
			wire.FormMessages, "text.format.schema"},
		"first step": {`{"model":"swift-1","input":[{"role":"user","content":[{"type":"input_file","file_url":"https://example.com/a.pdf"}]}]}`,
			wire.FormMessages, "input[0].content[0].file_url"},
		"one step": {`{"model":"swift-1","input":[{"role":"user","content":[{"type":"nobody_knows"}]}]}`, wire.FormChat,
			"input[0].content[0].type"},
		"no schema": {`{"model":"swift-1","input":"hi","text":{"format":{"type":"json_schema","name":"n"}}}`,
			wire.FormMessages, "text.format.schema"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := New(pairtest.Responses(t, c.body), c.lineForm, wire.Identity{}).Body(
				wire.Translation{Edits: wire.Edits{Model: "vendor-model"}, MaxOutput: 100})
			if f := fault.Of(err); f == nil || f.Code != fault.InvalidRequest || f.Param != c.param ||
				!strings.Contains(f.Message(), "`"+c.param+"`") || strings.Contains(f.Message(), "messages[") {
				t.Errorf("got %v, want a refusal of %q", err, c.param)
			}
		})
	}
}
