package userpages_test

import (
	"net/http"
	"testing"
	"time"

	"tollgate/internal/availability"
	"tollgate/internal/console"
	"tollgate/internal/console/consoletest"
)

// soldModels and soldLines add models to the catalog.
const soldModels = `  - {id: swift, kind: chat, forms: [chat], context_window: 1000, max_output_tokens: 100, price: {input: 1, output: 1}}
  - {id: calm, kind: chat, forms: [chat], context_window: 1000, max_output_tokens: 100, price: {input: 1, output: 1}}
  - {id: idle, kind: chat, forms: [chat], context_window: 1000, max_output_tokens: 100, price: {input: 1, output: 1}}
  - {id: soon, kind: chat, state: coming_soon, forms: [chat], context_window: 1000, max_output_tokens: 100, price: {input: 1, output: 1}}
`

const soldLines = `  - {id: secret-line, provider: openai, base_url: "https://provider.example/v1", models: {swift: a, calm: b, idle: c}}
`

// TestStatusPage checks that everybody sees which models fail now and their availability by day, without
// lines, and that a shop without the setting has no such page and no link to it.
func TestStatusPage(t *testing.T) {
	t.Parallel()
	consoletest.Each(t, func(t *testing.T, s *consoletest.Scene) {
		b := s.Browser()
		b.Handler = s.Console(func(o *console.Options) { o.Availability = nil })
		b.Get("/console/status").Want(t, http.StatusNotFound)
		b.Get("/console/sign-in").Without(t, "/console/status")
		b.Handler = s.Console(nil)
		b.Get("/console/status").Want(t, http.StatusOK, "No models are for sale yet", "no recent requests")

		s.Sell(soldModels, soldLines)
		report := s.Options.Availability
		report.Ended("swift", "", false)
		report.Ended("calm", "upstream_error", false)
		if err := report.Write(t.Context()); err != nil {
			t.Fatal(err)
		}
		s.Exec(`INSERT INTO availability_day (day, model, minutes, up, newest_ms, newest_up) VALUES ($1, 'swift', 1439, 1438, 0, 1)`,
			time.Now().UTC().AddDate(0, 0, -2).Unix()/(24*60*60))
		b.Handler = s.Console(func(o *console.Options) {
			o.Availability = availability.New(availability.Options{DB: s.DB, Known: func(string) bool { return true }}) // without a cached report
		})
		got := b.Get("/console/status")
		got.Want(t, http.StatusOK, "some models fail at the moment", "<h2>swift</h2>", "99.93 %", "works",
			"<h2>calm</h2>", "0 %", "fails", "<h2>idle</h2>",
			"no recent requests", `href="/console/status"`)
		got.Without(t, "secret-line", "provider.example", "soon", "sandbox")
	})
}
