package translate

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"tollgate/internal/wire"
	"tollgate/internal/wire/translate/internal/pairtest"
)

// imageRequests are requests of each form with an image of the type %[1]s and the base64 %[2]s.
var imageRequests = map[wire.Form][]string{
	wire.FormChat: {`{"model":"m","messages":[{"role":"user","content":[{"type":"image_url","image_url":` +
		`{"url":"data:%[1]s;base64,%[2]s"}}]}]}`},
	wire.FormMessages: {
		`{"model":"m","max_tokens":9,"messages":[{"role":"user","content":[{"type":"image","source":` +
			`{"type":"base64","media_type":"%[1]s","data":"%[2]s"}}]}]}`,
		`{"model":"m","max_tokens":9,"messages":[{"role":"user","content":[{"type":"image","source":` +
			`{"data" : "%[2]s", "media_type":"%[1]s", "type":"base64"}}]}]}`,
		`{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"x"},{"role":"assistant","content":[{"type":"tool_use","id":"t",` +
			`"name":"f","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":[{"type":"image","source":` +
			`{"type":"base64","media_type":"%[1]s","data":"%[2]s"}}]}]}]}`,
	},
	wire.FormResponses: {`{"model":"m","input":[{"role":"user","content":[{"type":"input_image","image_url":"data:%[1]s;base64,%[2]s"}]}]}`},
	wire.FormGemini: {
		`{"contents":[{"role":"user","parts":[{"inlineData":{"mimeType":"%[1]s","data":"%[2]s"}}]}]}`,
		`{"contents":[{"role":"user","parts":[{"inline_data":{"data":"%[2]s","mime_type":"%[1]s"}}]}]}`,
	},
}

// TestTypesOfImages expects the media type of the bytes on every line, also of the client's own form.
func TestTypesOfImages(t *testing.T) {
	t.Parallel()
	const jpeg, png, gif, webp = "/9j/4AAQSkZJRgABAQAA", "iVBORw0KGgoAAAANSUhEUg==", "R0lGODlhAQABAAAAACw=", "UklGRiQAAABXRUJQVlA4IA=="
	const avif, heic = "AAAAHGZ0eXBhdmlmAAAAAGF2aWZtaWYx", "AAAAGGZ0eXBtaWYxAAAAAG1pZjFoZWlj"
	for _, c := range []struct{ declared, data, want string }{
		{"image/jpg", jpeg, "image/jpeg"}, {"image/jpg", "AAAA", "image/jpeg"}, {"image/pjpeg", jpeg, "image/jpeg"},
		{"image/png", jpeg, "image/jpeg"}, {"image/jpeg", png, "image/png"}, {"image/png", webp, "image/webp"},
		{"image/webp", gif, "image/gif"}, {"application/octet-stream", png, "image/png"}, {"image/x-png", png, "image/png"},
		{"IMAGE/JPG", jpeg, "image/jpeg"}, {"image/png", `\/9j\/4AAQSkZJRgAB`, "image/jpeg"},
		{"image/png", png, "image/png"}, {"image/jpeg", "AAAA", "image/jpeg"}, {"IMAGE/PNG", png, "image/png"},
		{"image/png; charset=binary", png, "image/png"}, {"Image/WebP", "AAAA", "image/webp"}, {"", png, "image/png"},
		{"image/jpeg", heic, "image/heic"}, {"image/png", avif, "image/avif"},
	} {
		for client, bodies := range imageRequests {
			for i, body := range bodies {
				r := request(t, client, fmt.Sprintf(body, c.declared, c.data))
				for _, line := range lineForms {
					got, err := pairtest.Body(New(r, line, pairtest.Identity()), wire.Translation{Edits: wire.Edits{Model: "v"}, MaxOutput: 9})
					where := fmt.Sprintf("%s %d on %s, %s as %s", client, i, line, c.want, c.declared)
					if strings.HasPrefix(c.want, "image/h") || c.want == "image/avif" {
						if line == wire.FormMessages && client != line { // Claude takes four types
							if err == nil {
								t.Errorf("%s: got %s, want a refusal", where, got)
							}
							continue
						}
					}
					if err != nil || !json.Valid(got) {
						t.Errorf("%s: got %s, %v", where, got, err)
						continue
					}
					sent := strings.ReplaceAll(string(got), `\/`, "/")
					data := strings.ReplaceAll(c.data, `\/`, "/")
					if !strings.Contains(sent, c.want) || !strings.Contains(sent, data) ||
						c.declared != c.want && c.declared != "" && strings.Contains(sent, c.declared) {
						t.Errorf("%s: the line got %s, want %s", where, got, c.want)
					}
				}
			}
		}
	}
}

// TestTypesOfDocuments expects a PDF under another type on the messages line.
func TestTypesOfDocuments(t *testing.T) {
	t.Parallel()
	const pdf = "JVBERi0xLjcKJeLjz9MK"
	for client, body := range map[wire.Form]string{
		wire.FormChat: `{"model":"m","messages":[{"role":"user","content":[{"type":"file","file":{"filename":"a","file_data":` +
			`"data:application/octet-stream;base64,` + pdf + `"}}]}]}`,
		wire.FormResponses: `{"model":"m","input":[{"role":"user","content":[{"type":"input_file","filename":"a","file_data":` +
			`"data:application/octet-stream;base64,` + pdf + `"}]}]}`,
		wire.FormMessages: `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":[{"type":"document","source":` +
			`{"type":"base64","media_type":"application/octet-stream","data":"` + pdf + `"}}]}]}`,
	} {
		for _, line := range lineForms {
			got, err := pairtest.Body(New(request(t, client, body), line, pairtest.Identity()), wire.Translation{Edits: wire.Edits{Model: "v"}})
			if err != nil || !strings.Contains(string(got), "application/pdf") || strings.Contains(string(got), "octet-stream") {
				t.Errorf("%s on %s: the line got %s, %v; want the type application/pdf", client, line, got, err)
			}
		}
	}
}

// TestDocumentsAsImages expects a PDF that a client sent as an image to be a file on lines of other forms.
func TestDocumentsAsImages(t *testing.T) {
	t.Parallel()
	kinds := map[wire.Form]string{wire.FormChat: `"type":"file"`, wire.FormMessages: `"type":"document"`,
		wire.FormResponses: `"type":"input_file"`,
		wire.FormGemini:    `"mimeType":"application/pdf"`, wire.FormInteractions: `"type":"document"`}
	for client, bodies := range imageRequests {
		for line, kind := range kinds {
			if line == client {
				continue
			}
			r := request(t, client, fmt.Sprintf(bodies[0], "image/png", "JVBERi0xLjcKJeLjz9MK"))
			got, err := pairtest.Body(New(r, line, pairtest.Identity()), wire.Translation{Edits: wire.Edits{Model: "v"}, MaxOutput: 9})
			if err != nil || !strings.Contains(string(got), kind) || !strings.Contains(string(got), "application/pdf") {
				t.Errorf("%s on %s: the line got %s, %v, want %s", client, line, got, err, kind)
			}
		}
	}
}

// TestTypesInTexts expects no change in texts and arguments that look like a file.
func TestTypesInTexts(t *testing.T) {
	t.Parallel()
	for client, body := range map[wire.Form]string{
		wire.FormChat: `{"model":"v","messages":[{"role":"user","content":"data:image/png;base64,/9j/4AAQSkZJRgAB"}],"store":false}`,
		wire.FormGemini: `{"contents":[{"role":"model","parts":[{"functionCall":{"name":"f",` +
			`"args":{"mimeType":"image/png","data":"/9j/4AAQSkZJRgAB"}},` +
			`"thoughtSignature":"c2ln"},` +
			`{"text":"\"inlineData\":{\"mimeType\":\"image/png\",\"data\":\"/9j/4AAQSkZJRgAB\"}"}]},{"parts":[{"text":"x"}]}],` +
			`"generationConfig":{"responseModalities":["TEXT"]}}`,
		wire.FormMessages: `{"model":"v","max_tokens":9,"messages":[{"role":"user","content":"data:image/png;base64,/9j/4AAQSkZJRgAB"},` +
			`{"role":"assistant","content":[{"type":"tool_use","id":"t","name":"f",` +
			`"input":{"media_type":"image/png","data":"/9j/4AAQSkZJRgAB"}}]},` +
			`{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":"base64"}]}]}`,
	} {
		got, err := pairtest.Body(New(request(t, client, body), client, pairtest.Identity()), wire.Translation{Edits: wire.Edits{Model: "v"}})
		if err != nil || string(got) != body {
			t.Errorf("%s: got %s, %v; want %s", client, got, err, body)
		}
	}
}
