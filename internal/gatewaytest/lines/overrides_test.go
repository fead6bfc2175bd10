package lines

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"tollgate/internal/gatewaytest/fakeprovider"
	"tollgate/internal/gatewaytest/fakestudio"
	"tollgate/internal/gatewaytest/scene"
	"tollgate/internal/store/storetest"
)

// teamSecret is the secret in a header of the lines.
const teamSecret = "team-secret-of-the-operator"

// overrides returns the request overrides of a line.
func overrides(set map[string]any, omit ...string) map[string]any {
	return map[string]any{"headers": map[string]string{"x-team": "a", "x-secret": "Team ${TEAM_SECRET}"}, "set": set, "omit": omit}
}

// checkHeaders checks that a request has the headers of its line.
func checkHeaders(t *testing.T, h map[string][]string) {
	t.Helper()
	if fmt.Sprint(h["X-Team"], h["X-Secret"]) != "[a] [Team "+teamSecret+"]" {
		t.Errorf("headers %v", h)
	}
}

// TestOverrides checks the request overrides of lines for every provider: for jobs, and for chat in
// all forms, native and translated.
func TestOverrides(t *testing.T) {
	t.Parallel()
	binary := scene.Binary(t)
	storetest.EachURL(t, func(t *testing.T, database string) {
		p := scene.NewNode(t, binary, database, map[string]string{"TEAM_SECRET": teamSecret, "FAILING_LINE_KEY": scene.Credential})
		var models, lines []map[string]any
		var tests []func(t *testing.T)
		for _, lineForm := range []string{"chat", "responses", "messages", "gemini"} {
			for _, in := range scene.ClientForms() {
				if lineForm == "responses" && in != scene.Responses {
					continue
				}
				model, line, test := overriddenChat(t, p, lineForm, in)
				models, lines, tests = append(models, model), append(lines, line), append(tests, test)
			}
		}
		for _, m := range fakestudio.Providers() {
			for _, kind := range []string{"image", "video"} {
				model, line, test := overriddenJob(t, p, m, kind)
				models, lines, tests = append(models, model), append(lines, line), append(tests, test)
			}
		}
		for _, m := range fakestudio.Vendors() {
			model, line, test := overriddenJob(t, p, m, "image")
			models, lines, tests = append(models, model), append(lines, line), append(tests, test)
		}
		p.Admin("PUT", "/catalog", map[string]any{"models": models, "lines": lines}, nil)
		for _, test := range tests {
			test(t)
		}
		if strings.Contains(p.Output(), teamSecret) {
			t.Error("the log shows a header's secret")
		}
	})
}

// overriddenChat returns a model for clients of one form, a line of the same or another form, and a
// test of both. The provider answers two requests. It rejects the third request with a message that
// repeats a header.
func overriddenChat(t *testing.T, p *scene.Node, lineForm string, in scene.Form) (model, line map[string]any, test func(*testing.T)) {
	id := "overridden-" + lineForm + "-" + string(in)
	set := map[string]any{"service_note": map[string]any{"kind": "fixed", "list": []int{1, 2}}}
	server := fakeprovider.New(t, fakeprovider.Good(lineForm, false), fakeprovider.Good(lineForm, true),
		fakeprovider.Error(400, "invalid_request_error", "odd", "you sent Team "+teamSecret))
	line = scene.FormLine(id, lineForm, server.URL(), overrides(set, "metadata", "stream_options"), id)
	test = func(t *testing.T) {
		t.Run(id, func(t *testing.T) {
			g := scene.GatewayAt(t, p.Process)
			_, key := p.Account(10, nil)
			more := map[string]any{"service_note": "the client's", "metadata": map[string]any{"user_id": "a"}}
			for i, streamed := range []bool{false, true, false} {
				a := g.Send(t, in, key, scene.Request(in, id, streamed, more))
				if wantOK := i < 2; wantOK != (a.Status == 200) || strings.Contains(a.Raw, teamSecret) {
					t.Fatalf("request %d: %d %s", i, a.Status, a.Raw)
				}
			}
			for _, r := range server.Requests() {
				checkHeaders(t, r.Header)
				var members map[string]json.RawMessage
				if err := json.Unmarshal(r.Body, &members); err != nil {
					t.Fatal(err)
				}
				if got := string(members["service_note"]); got != `{"kind":"fixed","list":[1,2]}` || bytes.Contains(r.Body, []byte("client's")) {
					t.Errorf("the fixed field arrived as %s in %s", got, r.Body)
				}
				for _, name := range []string{"metadata", "stream_options"} {
					if members[name] != nil {
						t.Errorf("%s was sent: %s", name, r.Body)
					}
				}
			}
		})
	}
	return scene.FormModel(id, nil, in), line, test
}

// overriddenJob returns a model for images or videos, a line of provider m, and a test of both.
func overriddenJob(t *testing.T, p *scene.Node, m fakestudio.Provider, kind string) (model, line map[string]any, test func(*testing.T)) {
	id := "overridden-" + m.Name + "-" + kind
	// A field of the provider, its value, both as text in the request, and a field that the line
	// omits.
	field, value, sent, omitted := "guidance", any("fixed"), `"guidance":"fixed"`, "style"
	switch {
	case m.Name == "openai" && kind == "image":
		field, value, sent, omitted = "quality", "medium", `"quality":"medium"`, "background"
	case m.Name == "xai":
		field, sent = "user", `"user":"fixed"`
	case m.Name == "ark" || m.Name == "dashscope":
		field, value, sent = "watermark", true, `"watermark":true`
	case m.Name == "openai":
		sent = "name=\"guidance\"\r\n\r\nfixed\r\n"
	case m.Name == "bfl":
		field, sent, omitted = "output_format", `"output_format":"fixed"`, "prompt_upsampling"
	case m.Name == "stability":
		field, sent, omitted = "style_preset", "name=\"style_preset\"\r\n\r\nfixed\r\n", "negative_prompt"
	case m.Name == "ideogram":
		field, sent, omitted = "magic_prompt", `"magic_prompt":"fixed"`, "quality"
	case m.Name == "recraft":
		field, sent, omitted = "style_id", `"style_id":"fixed"`, "image_format"
	case m.Name == "luma":
		field, sent, omitted = "style", `"style":"fixed"`, "output_format"
	case m.Name == "minimax":
		field, value, sent, omitted = "prompt_optimizer", true, `"prompt_optimizer":true`, "aigc_watermark"
	case m.Name == "kling":
		field, value, sent, omitted = "image_fidelity", 0.5, `"image_fidelity":0.5`, "image_reference"
	case m.Name == "runway":
		field, value = "contentModeration", map[string]any{"publicFigureThreshold": "low"}
		sent = `"contentModeration":{"publicFigureThreshold":"low"}`
	case (m.Name == "gemini" || m.Name == "vertex") && kind == "image":
		field, value, sent, omitted = "topK", 7, `"topK":7`, "topP"
	case m.Name == "gemini":
		field, value, sent, omitted = "personGeneration", "allow_adult", `"personGeneration":"allow_adult"`, "enhancePrompt"
	}
	studio := m.Open(t)
	line = m.JobLine(id, studio, kind, overrides(map[string]any{field: value}, omitted), id)
	more := map[string]any{"params": []string{field, omitted}}
	if model = scene.ImageModel(id, more); kind == "video" {
		model = scene.VideoModel(id, more)
	}
	test = func(t *testing.T) {
		t.Run(id, func(t *testing.T) {
			c := p.Customer()
			job := c.Submit(t, kind, scene.JobRequest(id, "a boat", map[string]any{field: "the client's", omitted: "the client's"}))
			c.Becomes(t, kind, job, "succeeded")
			for _, s := range studio.Submissions() {
				checkHeaders(t, s.Header)
				if !bytes.Contains(s.Body, []byte(sent)) || bytes.Contains(s.Body, []byte("client's")) ||
					bytes.Contains(s.Body, []byte(`"`+omitted+`"`)) {
					t.Errorf("submitted: %s", s.Body)
				}
			}
		})
	}
	return model, line, test
}
