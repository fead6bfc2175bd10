package console_test

import (
	"net/http"
	"net/url"
	"testing"
)

func TestModels(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *scene) {
		b := s.signedIn("ada@example.com")
		want(t, b.get("/console/models"), http.StatusOK, "sandbox-chat", "sandbox-image", "sandbox-video", "coming soon", "per million tokens")
		want(t, b.get("/console/models?kind=audio"), http.StatusOK, "No models are open to you")
		for _, m := range s.options.Catalog.Current().Models() {
			page := b.get("/console/models?id=" + url.QueryEscape(m.ID))
			if m.State == "retired" {
				want(t, page, http.StatusNotFound)
				continue
			}
			want(t, page, http.StatusOK, m.ID, publicURL, "Prices")
		}
		want(t, b.get("/console/models?id=sandbox-chat"), http.StatusOK, "/v1/chat/completions", "million tokens", "Codex")
		want(t, b.get("/console/models?id=sandbox-video"), http.StatusOK, "/v1/videos/generations", "second")
		want(t, b.get("/console/models?id=nothing"), http.StatusNotFound)
	})
}
