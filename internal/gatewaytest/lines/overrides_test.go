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

// teamSecret is the value of a secret header of the lines.
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

// TestOverrides checks the request overrides of lines for every provider: chat in all forms, native
// and translated, and jobs.
func TestOverrides(t *testing.T) {
	t.Parallel()
	binary := scene.Binary(t)
	storetest.EachURL(t, func(t *testing.T, database string) {
		p := scene.NewNode(t, binary, database, map[string]string{"TEAM_SECRET": teamSecret, "FAILING_LINE_KEY": scene.Credential})
		var models, lines []map[string]any
		var plays []func(t *testing.T)
		for _, spoken := range []string{"chat", "responses", "messages", "gemini"} {
			for _, in := range scene.ClientForms() {
				if spoken == "responses" && in != scene.Responses {
					continue
				}
				model, line, play := overriddenChat(t, p, spoken, in)
				models, lines, plays = append(models, model), append(lines, line), append(plays, play)
			}
		}
		for _, m := range fakestudio.Providers() {
			for _, kind := range []string{"image", "video"} {
				model, line, play := overriddenJob(t, p, m, kind)
				models, lines, plays = append(models, model), append(lines, line), append(plays, play)
			}
		}
		for _, m := range fakestudio.Vendors() {
			model, line, play := overriddenJob(t, p, m, "image")
			models, lines, plays = append(models, model), append(lines, line), append(plays, play)
		}
		p.Admin("PUT", "/catalog", map[string]any{"models": models, "lines": lines}, nil)
		for _, play := range plays {
			play(t)
		}
		if strings.Contains(p.Output(), teamSecret) {
			t.Error("the log shows a header's secret")
		}
	})
}

// overriddenChat returns a line of a form, for clients of a form. It answers two requests and
// rejects one with a message that repeats a header.
func overriddenChat(t *testing.T, p *scene.Node, spoken string, in scene.Form) (model, line map[string]any, play func(*testing.T)) {
	id := "overridden-" + spoken + "-" + string(in)
	set := map[string]any{"service_note": map[string]any{"kind": "fixed", "list": []int{1, 2}}}
	server := fakeprovider.New(t, fakeprovider.Good(spoken, false), fakeprovider.Good(spoken, true),
		fakeprovider.Error(400, "invalid_request_error", "odd", "you sent Team "+teamSecret))
	line = scene.FormLine(id, spoken, server.URL(), overrides(set, "metadata", "stream_options"), id)
	play = func(t *testing.T) {
		t.Run(id, func(t *testing.T) {
			g := scene.GatewayAt(t, p.Process)
			_, key := p.Account(10, nil)
			more := map[string]any{"service_note": "the client's", "metadata": map[string]any{"user_id": "a"}}
			for i, streamed := range []bool{false, true, false} {
				a := g.Send(t, in, key, scene.Request(in, id, streamed, more))
				if good := i < 2; good != (a.Status == 200) || strings.Contains(a.Raw, teamSecret) {
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
				for _, gone := range []string{"metadata", "stream_options"} {
					if members[gone] != nil {
						t.Errorf("%s was sent: %s", gone, r.Body)
					}
				}
			}
		})
	}
	return scene.FormModel(id, nil, in), line, play
}

// overriddenJob returns a line of a provider of pictures or clips.
func overriddenJob(t *testing.T, p *scene.Node, m fakestudio.Provider, kind string) (model, line map[string]any, play func(*testing.T)) {
	id := "overridden-" + m.Name + "-" + kind
	// a field of the provider, its value, its form in the request, and a field that is never sent
	field, value, arrives, omitted := "guidance", any("fixed"), `"guidance":"fixed"`, "style"
	switch {
	case m.Name == "openai" && kind == "image":
		field, value, arrives, omitted = "quality", "medium", `"quality":"medium"`, "background"
	case m.Name == "xai":
		field, arrives = "user", `"user":"fixed"`
	case m.Name == "ark" || m.Name == "dashscope":
		field, value, arrives = "watermark", true, `"watermark":true`
	case m.Name == "openai":
		arrives = "name=\"guidance\"\r\n\r\nfixed\r\n"
	case m.Name == "bfl":
		field, arrives, omitted = "output_format", `"output_format":"fixed"`, "prompt_upsampling"
	case m.Name == "stability":
		field, arrives, omitted = "style_preset", "name=\"style_preset\"\r\n\r\nfixed\r\n", "negative_prompt"
	case m.Name == "ideogram":
		field, arrives, omitted = "magic_prompt", `"magic_prompt":"fixed"`, "quality"
	case m.Name == "recraft":
		field, arrives, omitted = "style_id", `"style_id":"fixed"`, "image_format"
	case m.Name == "luma":
		field, arrives, omitted = "style", `"style":"fixed"`, "output_format"
	case m.Name == "minimax":
		field, value, arrives, omitted = "prompt_optimizer", true, `"prompt_optimizer":true`, "aigc_watermark"
	case m.Name == "kling":
		field, value, arrives, omitted = "image_fidelity", 0.5, `"image_fidelity":0.5`, "image_reference"
	case m.Name == "runway":
		field, value = "contentModeration", map[string]any{"publicFigureThreshold": "low"}
		arrives = `"contentModeration":{"publicFigureThreshold":"low"}`
	case (m.Name == "gemini" || m.Name == "vertex") && kind == "image":
		field, value, arrives, omitted = "topK", 7, `"topK":7`, "topP"
	case m.Name == "gemini":
		field, value, arrives, omitted = "personGeneration", "allow_adult", `"personGeneration":"allow_adult"`, "enhancePrompt"
	}
	studio := m.Open(t)
	line = m.JobLine(id, studio, kind, overrides(map[string]any{field: value}, omitted), id)
	more := map[string]any{"params": []string{field, omitted}}
	if model = scene.ImageModel(id, more); kind == "video" {
		model = scene.VideoModel(id, more)
	}
	play = func(t *testing.T) {
		t.Run(id, func(t *testing.T) {
			c := p.Customer()
			job := c.Submit(t, kind, scene.JobRequest(id, "a boat", map[string]any{field: "the client's", omitted: "the client's"}))
			c.Becomes(t, kind, job, "succeeded")
			for _, s := range studio.Submissions() {
				checkHeaders(t, s.Header)
				if !bytes.Contains(s.Body, []byte(arrives)) || bytes.Contains(s.Body, []byte("client's")) ||
					bytes.Contains(s.Body, []byte(`"`+omitted+`"`)) {
					t.Errorf("submitted: %s", s.Body)
				}
			}
		})
	}
	return model, line, play
}
