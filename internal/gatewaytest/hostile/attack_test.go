package hostile

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"tollgate/internal/gatewaytest/fakeprovider"
	"tollgate/internal/gatewaytest/scene"
)

// attack is a request of the hostile account with the vendor's reply.
type attack struct {
	name  string
	to    []string // names of vendors, or forms of lines; if empty, from identifies the vendor
	from  string
	parts []string // further parts of the request: tools, image
	reply fakeprovider.Reply
}

// applies reports whether the attack is for a vendor.
func (a attack) applies(t testing.TB, v vendor) bool {
	t.Helper()
	if a.from != "" {
		return v.sends(t, a.from)
	}
	return slices.Contains(a.to, v.name) || slices.ContainsFunc(v.forms, func(form string) bool { return slices.Contains(a.to, form) })
}

// appliesTo reports whether the attack is for a vendor's requests in a form.
func (a attack) appliesTo(v vendor, form string) bool {
	return a.from != "" || slices.Contains(a.to, v.name) || slices.Contains(a.to, form)
}

// attacks returns the attacks of testdata, and the vendors' errors in the testdata of package
// upstream. It omits errors that no request can cause: a credential or model rejected by name. Each
// attack must apply to a vendor.
func attacks(t testing.TB) []attack {
	t.Helper()
	all := append(readAttacks(t, filepath.Join("testdata", "worst.txtar")),
		readAttacks(t, filepath.Join("..", "..", "upstream", "testdata", "vendors.txtar"))...)
	for _, k := range all {
		if !slices.ContainsFunc(vendors(), func(v vendor) bool { return k.applies(t, v) }) {
			t.Errorf("attack %q applies to no vendor", k.name)
		}
	}
	return all
}

// readAttacks reads a file of sections with lines `name: value` and a body.
func readAttacks(t testing.TB, file string) (all []attack) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, section := range txtar.Parse(text).Files {
		k, ends := attack{name: section.Name}, ""
		k.reply.Header = map[string]string{}
		rest := strings.TrimSpace(string(section.Data))
		for !strings.HasPrefix(rest, "{") && !strings.HasPrefix(rest, "[") && !strings.HasPrefix(rest, "<") && rest != "" {
			line, after, _ := strings.Cut(rest, "\n")
			name, value, ok := strings.Cut(line, ":")
			if value = strings.TrimSpace(value); !ok || name == "data" || name == "event" {
				break
			}
			rest = strings.TrimSpace(after)
			switch name {
			case "to":
				k.to = strings.Fields(value)
			case "from":
				k.from = value
			case "status":
				if k.reply.Status, err = strconv.Atoi(value); err != nil {
					t.Fatalf("%s: %s: %v", file, k.name, err)
				}
			case "type":
				k.reply.Header["X-Amzn-Errortype"] = value
			case "retry-after":
				k.reply.Header["Retry-After"] = value
			case "parts":
				k.parts = strings.Fields(value)
			case "connection":
				k.reply.Before = map[string]fakeprovider.Break{"reset": fakeprovider.Reset, "cut": fakeprovider.Cut}[value]
			case "ends":
				ends = value
			}
		}
		if ends == "credential" || ends == "model" {
			continue
		}
		k.reply.Body = rest
		switch {
		case strings.HasPrefix(rest, "<"):
			k.reply.ContentType = "text/html"
		case strings.HasPrefix(rest, "data:"), strings.HasPrefix(rest, "event:"):
			k.reply.ContentType, k.reply.Body = "text/event-stream", rest+"\n\n"
		}
		all = append(all, k)
	}
	return all
}

// marker returns the text that identifies an attack in a request.
func marker(number int) string { return fmt.Sprintf("attack-%d.", number) }

// request returns a request in a form, with a text and the further parts of an attack.
func request(form scene.Form, model string, stream bool, words string, parts []string) string {
	more := map[string]any{}
	content := any(words)
	if slices.Contains(parts, "image") {
		content = []any{textPart(form, words), imagePart(form)}
	}
	messages := []any{map[string]any{"role": "user", "content": content}}
	if form == scene.Responses {
		more["input"] = messages
	} else {
		more["messages"] = messages
	}
	if slices.Contains(parts, "tools") {
		more["tools"] = []any{tool(form)}
	}
	return scene.Request(form, model, stream, more)
}

func textPart(form scene.Form, words string) map[string]any {
	if form == scene.Responses {
		return map[string]any{"type": "input_text", "text": words}
	}
	return map[string]any{"type": "text", "text": words}
}

// pixel is a GIF of one pixel.
const pixel = "R0lGODlhAQABAIAAAAUEBAAAACwAAAAAAQABAAACAkQBADs="

func imagePart(form scene.Form) map[string]any {
	switch form {
	case scene.Responses:
		return map[string]any{"type": "input_image", "image_url": "data:image/gif;base64," + pixel}
	case scene.Messages:
		return map[string]any{"type": "image", "source": map[string]any{"type": "base64", "media_type": "image/gif", "data": pixel}}
	}
	return map[string]any{"type": "image_url", "image_url": map[string]any{"url": "data:image/gif;base64," + pixel}}
}

func tool(form scene.Form) map[string]any {
	schema := json.RawMessage(`{"type":"object","properties":{"x":{"type":"string"}}}`)
	function := map[string]any{"name": "look", "description": "looks", "parameters": schema}
	switch form {
	case scene.Responses:
		out := maps.Clone(function)
		out["type"] = "function"
		return out
	case scene.Messages:
		return map[string]any{"name": "look", "description": "looks", "input_schema": schema}
	}
	return map[string]any{"type": "function", "function": function}
}
