package userpages_test

import (
	"net/http"
	"net/url"
	"testing"

	"tollgate/internal/console/consoletest"
)

func TestModels(t *testing.T) {
	t.Parallel()
	consoletest.Each(t, func(t *testing.T, s *consoletest.Scene) {
		b := s.SignedIn("ada@example.com")
		b.Get("/console/models").Want(t, http.StatusOK, "sandbox-chat", "sandbox-image", "sandbox-video", "coming soon", "per million tokens")
		b.Get("/console/models?kind=audio").Want(t, http.StatusOK, "No models are open to you")
		for _, m := range s.Options.Catalog.Current().Models() {
			page := b.Get("/console/models?id=" + url.QueryEscape(m.ID))
			if m.State == "retired" {
				page.Want(t, http.StatusNotFound)
				continue
			}
			page.Want(t, http.StatusOK, m.ID, consoletest.PublicURL, "Prices")
		}
		b.Get("/console/models?id=sandbox-chat").Want(t, http.StatusOK, "/v1/chat/completions", "million tokens", "Codex")
		b.Get("/console/models?id=sandbox-video").Want(t, http.StatusOK, "/v1/videos/generations", "second")
		b.Get("/console/models?id=nothing").Want(t, http.StatusNotFound)
	})
}
