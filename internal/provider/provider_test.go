package provider_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"tollgate/internal/app"
	"tollgate/internal/catalog"
	"tollgate/internal/fault"
	"tollgate/internal/money"
	"tollgate/internal/provider"
)

const key = "sk-secret-of-the-provider"

// TestPricesOfTheTable checks that every vendor's address and every row of the table make a valid
// catalog, with the prices of the costs plus the margin.
func TestPricesOfTheTable(t *testing.T) {
	t.Parallel()
	rows := 0
	for _, v := range provider.Vendors() {
		o := provider.LineOffer{Line: v.ID, Vendor: v, BaseURL: v.BaseURL, APIKey: "${secret:" + v.ID + "}", Margin: 300_000}
		if v.BaseURL == "" {
			o.BaseURL = "https://api.example.com/v1"
		}
		for _, id := range v.ListedModels() {
			l, ok := v.ListedModel(id)
			if !ok || l.Cost.Input == 0 || l.Cost.Input >= 100*money.Price(money.USD) || l.Cost.Output < l.Cost.Input ||
				l.MaxOutput > l.Context ||
				l.Cost.CachedInput > l.Cost.Input || l.Cost.CacheWrite1h < l.Cost.CacheWrite {
				t.Errorf("%s %s: %+v, want a plausible price", v.ID, id, l)
			}
			o.Models = append(o.Models, provider.SoldModel{ID: id, Input: l.Cost.Input, Output: l.Cost.Output, Context: l.Context,
				MaxOutput: l.MaxOutput})
			rows++
		}
		if len(o.Models) == 0 {
			o.Models = []provider.SoldModel{{ID: "m", Input: 1_000_000_000, Output: 2_000_000_000, Context: 1000, MaxOutput: 100}}
		}
		doc := parse(t, o.Document(&catalog.Document{}))
		m := doc.Models[0]
		if want := (o.Models[0].Output * 13) / 10; m.Price.Output != want || doc.Lines[0].Margin == nil || *doc.Lines[0].Margin != 300_000 {
			t.Errorf("%s: output of %s sells at %s, want %s", v.ID, m.ID, m.Price.Output, want)
		}
		if vendor, ok := provider.VendorOf(&doc.Lines[0]); !ok || vendor.ID != v.ID {
			t.Errorf("VendorOf the line of %s = %s, %t", v.ID, vendor.ID, ok)
		}
		for _, w := range doc.CostWarnings() {
			t.Errorf("%s: %s", v.ID, w)
		}
	}
	if rows < 60 {
		t.Errorf("the table has %d rows, want at least 60", rows)
	}
}

// parse validates a document by its text.
func parse(t *testing.T, doc *catalog.Document) *catalog.Document {
	t.Helper()
	parsed, _, err := catalog.Parse(doc.YAML(), app.Providers())
	if err != nil {
		t.Fatalf("the catalog is not valid: %v\n%s", err, doc.YAML())
	}
	return parsed
}

// TestMarginOfAnExistingLine checks that a new margin changes the prices with their bands, and nothing
// else of the catalog.
func TestMarginOfAnExistingLine(t *testing.T) {
	t.Parallel()
	v, _ := provider.VendorByID("anthropic")
	l, _ := v.ListedModel("claude-haiku-5-5")
	o := provider.LineOffer{Line: "a", Vendor: v, BaseURL: v.BaseURL, APIKey: "${A}", Margin: 500_000,
		Models: []provider.SoldModel{{ID: "claude-haiku-5-5", Input: l.Cost.Input, Output: l.Cost.Output, Context: l.Context,
			MaxOutput: l.MaxOutput}}}
	first := parse(t, o.Document(&catalog.Document{}))
	text := strings.Replace(string(first.YAML()), "owned_by: anthropic", "owned_by: me", 1)
	text = strings.Replace(text, "api_key: ${A}", "api_key: ${B}\n    priority: 7", 1)
	edited, _, err := catalog.Parse([]byte(text), app.Providers())
	if err != nil {
		t.Fatal(err)
	}
	o.Margin = 2 * money.One
	changes := catalog.Changes(edited, parse(t, o.Document(edited)))
	want := []string{"model claude-haiku-5-5: price.input 0.15 -> 0.3", "model claude-haiku-5-5: price.output 0.75 -> 1.5",
		"line a: margin 0.5 -> 2"}
	for _, w := range want {
		if !slices.Contains(changes, w) {
			t.Errorf("changes %q, want %q among them", changes, w)
		}
	}
	for _, c := range changes {
		if !strings.Contains(c, "price.") && !strings.Contains(c, "margin") {
			t.Errorf("unexpected change %q", c)
		}
	}
	o.Margin = 500_000
	if again := catalog.Changes(edited, parse(t, o.Document(edited))); len(again) > 0 {
		t.Errorf("the same margin changes %q, want nothing", again)
	}
}

// connect returns a fake provider on a private address as a connection, with a client for test calls.
func connect(t *testing.T, vendor string, handle http.HandlerFunc) (provider.Connection, *http.Client) {
	t.Helper()
	server := httptest.NewServer(handle)
	t.Cleanup(server.Close)
	v, ok := provider.VendorByID(vendor)
	if !ok {
		t.Fatalf("no vendor %s", vendor)
	}
	return provider.Connection{Vendor: v, BaseURL: server.URL, Key: key}, provider.NewClient()
}

// TestListModels checks the test calls of each kind of API.
func TestListModels(t *testing.T) {
	t.Parallel()
	for vendor, c := range map[string]struct {
		path, header, value, answer string
		want                        []string
	}{
		"deepseek": {"/models", "Authorization", "Bearer " + key,
			`{"data":[{"id":"b"},{"id":"a"},{"id":"a"},{"id":"x y"},{"id":""}]}`, []string{"a", "b"}},
		"anthropic": {"/v1/models", "X-Api-Key", key, `{"data":[{"id":"claude-1","type":"model"}],"has_more":false}`, []string{"claude-1"}},
		"gemini":    {"/models", "X-Goog-Api-Key", key, `{"models":[{"name":"models/gemini-1"},{"name":"models/${x}"}]}`, []string{"gemini-1"}},
	} {
		connection, client := connect(t, vendor, func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != c.path || r.Header.Get(c.header) != c.value {
				w.WriteHeader(http.StatusUnauthorized)
			}
			fmt.Fprint(w, c.answer)
		})
		if got, err := connection.ListModels(t.Context(), client); err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%s: ListModels = %q, %v, want %q", vendor, got, err, c.want)
		}
	}
	connection, client := connect(t, "zai", func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/chat/completions" {
			w.WriteHeader(http.StatusNotFound)
		}
		fmt.Fprint(w, `{"choices":[]}`)
	})
	if got, err := connection.ListModels(t.Context(), client); err != nil || !slices.Contains(got, "glm-5.3") {
		t.Errorf("without a list: ListModels = %q, %v, want those with a price", got, err)
	}
}

// TestListModelsExplainsFailures checks the field and the words of each failure, without the key.
func TestListModelsExplainsFailures(t *testing.T) {
	t.Parallel()
	status := func(code int, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(code)
			fmt.Fprint(w, body)
		}
	}
	for name, c := range map[string]struct {
		handle      http.HandlerFunc
		field, want string
	}{
		"wrong key":       {status(401, key), "key", "refused the key"},
		"xAI's wrong key": {status(400, `{"error":"Incorrect API key provided: `+key+`"}`), "key", "refused the key"},
		"no credit":       {status(402, "{}"), "key", "no credit"},
		"too many":        {status(429, "{}"), "key", "no more requests"},
		"wrong address":   {status(404, "{}"), "base_url", "no list of models"},
		"a web page":      {status(200, "<!doctype html>"), "base_url", "web page"},
		"a web page, 404": {status(404, " <html>"), "base_url", "web page"},
		"a redirect": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", "https://evil.example/")
			w.WriteHeader(302)
		}, "base_url", "leads to another one"},
		"an outage":        {status(500, "{}"), "base_url", "problem of its own"},
		"no JSON":          {status(200, "hello"), "base_url", "not a list"},
		"another shape":    {status(200, `{"data":{"id":1}}`), "base_url", "not a list"},
		"an empty list":    {status(200, `{"data":[]}`), "base_url", "names no models"},
		"a huge answer":    {status(200, strings.Repeat(" ", 9<<20)), "base_url", "more than 8 MiB"},
		"a broken answer":  {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, "base_url", "did not answer"},
		"names of nothing": {status(200, `{"data":[{"id":"a: b\n  - c"},{"id":"`+strings.Repeat("a", 200)+`"}]}`), "base_url", "names no models"},
	} {
		connection, client := connect(t, "compatible", c.handle)
		_, err := connection.ListModels(t.Context(), client)
		f, ok := errors.AsType[*fault.Error](err)
		if !ok || f.Param != c.field || !strings.Contains(f.Message(), c.want) || strings.Contains(f.Message(), key) {
			t.Errorf("%s: error %v, want one at %s with %q and without the key", name, err, c.field, c.want)
		}
	}
	many := `{"data":[` + strings.Repeat(`{"id":"m"},`, 5000) + `{"id":"n"}]}`
	connection, client := connect(t, "compatible", status(200, many))
	if got, err := connection.ListModels(t.Context(), client); err != nil || len(got) != 2 {
		t.Errorf("a long list: %q, %v, want m and n", got, err)
	}
	slow, client := connect(t, "compatible", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := slow.ListModels(ctx, client); err == nil || !strings.Contains(err.Error(), "did not answer") {
		t.Errorf("a slow provider: error %v, want that it did not answer", err)
	}
	unknown := provider.Connection{Vendor: slow.Vendor, BaseURL: "http://host.invalid"}
	if _, err := unknown.ListModels(t.Context(), client); err == nil || !strings.Contains(err.Error(), "name") {
		t.Errorf("an unknown host: error %v, want one about its name", err)
	}
}
