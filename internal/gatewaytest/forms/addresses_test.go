package forms

import (
	"encoding/base64"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"tollgate/internal/gatewaytest/fakeprovider"
	"tollgate/internal/gatewaytest/scene"
	"tollgate/internal/media/formattest"
)

// addressScenes send images by address in every form. For some models the provider fetches the
// images, for others the gateway.
func addressScenes(t testing.TB) []scene.Scenario {
	picture := formattest.Picture(t, "image/png", 12, 7, 1)
	var gets atomic.Int64
	host := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		gets.Add(1)
		switch r.URL.Path {
		case "/a":
			_, _ = w.Write(picture)
		case "/text":
			_, _ = w.Write([]byte("no picture"))
		case "/large":
			_, _ = w.Write(make([]byte, 15<<20))
		default:
			w.WriteHeader(http.StatusNotFound)
		}
	}))
	t.Cleanup(host.Close)
	inline := `"inlineData":{"mimeType":"image/png","data":"` + base64.StdEncoding.EncodeToString(picture) + `"`
	var scenes []scene.Scenario
	for _, c := range []struct {
		name, vendor, path string
		want               string // the expected part of the provider's request; "" if the request is rejected
	}{
		{"fetched by the gateway", "gemini-2.5-flash", "/a", inline},
		{"fetched by the provider", "gemini-3.8-flash", "/a", `"fileData":{"mimeType":"image/jpeg","fileUri":"` + host.URL + `/a"}`},
		{"missing", "gemini-2.5-flash", "/gone", ""},
		{"not an image", "gemini-2.5-flash", "/text", ""},
		{"too large", "gemini-2.5-flash", "/large", ""},
	} {
		for _, form := range scene.ClientForms() {
			id := "address-" + string(form) + "-" + strings.ReplaceAll(c.name, " ", "-")
			p := fakeprovider.New(t)
			if c.want != "" {
				p.Expect(fakeprovider.GeminiAnswer("a picture", 100, 10))
			}
			scenes = append(scenes, single{name: "image by address from " + string(form) + ", " + c.name,
				in: form, line: "gemini", model: id, provider: p, modelMore: scene.PriceList(),
				lineMore: map[string]any{"models": map[string]any{id: c.vendor}},
			}.plays(func(t *testing.T, s scene.FormClient) {
				before := gets.Load()
				a := s.Ask(scene.Request(form, id, false, withImageAddress(form, host.URL+c.path)))
				if c.want == "" {
					if a.Status != 400 || len(p.Requests()) != 0 || gets.Load() == before {
						t.Errorf("%d %s", a.Status, a.Raw)
					}
					s.CheckCharge(a, 0)
					return
				}
				if a.Status != 200 {
					t.Fatalf("%d %s", a.Status, a.Raw)
				}
				if got := string(p.Requests()[0].Body); !strings.Contains(got, c.want) {
					t.Errorf("sent %s; want %s", got, c.want)
				}
				s.CheckCharge(a, 100*1000+10*10_000)
			}))
		}
	}
	return scenes
}

// withImageAddress returns the request member for an image with an address.
func withImageAddress(form scene.Form, address string) map[string]any {
	type m = map[string]any
	user := func(part m) []any { return []any{m{"role": "user", "content": []any{part}}} }
	switch form {
	case scene.Responses:
		return m{"input": user(m{"type": "input_image", "image_url": address})}
	case scene.Messages:
		return m{"messages": user(m{"type": "image", "source": m{"type": "url", "url": address}})}
	}
	return m{"messages": user(m{"type": "image_url", "image_url": m{"url": address}})}
}
