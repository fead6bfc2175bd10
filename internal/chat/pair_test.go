package chat

import (
	"errors"
	"strings"
	"testing"

	"tollgate/internal/fault"
	"tollgate/internal/wire"
	"tollgate/internal/wire/responses"
	"tollgate/internal/wire/translate"
)

// TestTranslationErrorsNameClientFields checks the errors of a request that is translated twice. An
// error of the second translator must name a field of the client's form.
func TestTranslationErrorsNameClientFields(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		body     string
		lineForm wire.Form
		param    string
	}{
		"image": {`{"model":"swift-1","input":[{"role":"user","content":[{"type":"input_image",` +
			`"image_url":"data:image/bmp;base64,eA=="}]}]}`, wire.FormMessages, "input"},
		"file": {`{"model":"swift-1","input":[{"role":"user","content":[{"type":"input_file","filename":"a.txt",` +
			`"file_data":"data:text/plain;base64,eA=="}]}]}`, wire.FormMessages, "input"},
		"tool":   {`{"model":"swift-1","input":"hi","tools":[{"type":"function","name":"f","parameters":7}]}`, wire.FormMessages, "tools"},
		"effort": {`{"model":"swift-1","input":"hi","reasoning":{"effort":"huge"}}`, wire.FormMessages, "reasoning"},
		"schema": {`{"model":"swift-1","input":"hi","text":{"format":{"type":"json_schema","name":"x","schema":7}}}`,
			wire.FormMessages, "text"},
		"first step": {`{"model":"swift-1","input":[{"role":"user","content":[{"type":"input_file","file_url":"https://example.com/a.pdf"}]}]}`,
			wire.FormMessages, "input[0].content[0].file_url"},
		"one step": {`{"model":"swift-1","input":[{"role":"user","content":[{"type":"nobody_knows"}]}]}`, wire.FormChat,
			"input[0].content[0].type"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, err := responses.Open([]byte(c.body))
			if err == nil {
				err = r.Check()
			}
			if err != nil {
				t.Fatal(err)
			}
			x := &chatRequest{AcceptedRequest: AcceptedRequest{
				Form: wire.FormResponses, Body: r, Model: formCall(t, wire.FormChat, c.lineForm, false).Model}}
			_, err = translate.New(x.Body, c.lineForm, wire.Identity{}).Body(
				wire.Translation{Edits: wire.Edits{Model: "vendor-model"}, MaxOutput: 100})
			var f *fault.Error
			if !errors.As(err, &f) {
				t.Fatal(err)
			}
			if f.Code != fault.InvalidRequest || f.Param != c.param || !strings.Contains(f.Message(), "`"+c.param+"`") ||
				strings.Contains(f.Message(), "messages[") {
				t.Errorf("got %v, param %q; want %q", err, f.Param, c.param)
			}
		})
	}
}
