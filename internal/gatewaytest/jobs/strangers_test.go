package jobs

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"tollgate/internal/gatewaytest/fakestudio"
	"tollgate/internal/gatewaytest/scene"
)

// strangersResults plays a provider whose results are at addresses in the operator's network,
// directly or after a redirect. The gateway fetches no result from these addresses, or from another
// port of the provider's host. It fetches results from the line's own host and port, although this
// address is also private, because the operator chose the address.
func strangersResults(t *testing.T, binary, database string) {
	vault, otherPort := newGallery(t, "127.0.0.2", ""), newGallery(t, "127.0.0.1", "")
	var own *httptest.Server
	own = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, model, ok := strings.Cut(r.URL.Path, "/at/") // from the base address of a line
		switch {
		case r.URL.Path == "/p.png":
			_, _ = w.Write(fakestudio.Picture(1))
		case r.URL.Path == "/away":
			http.Redirect(w, r, vault.address+"/p.png", http.StatusFound)
		case r.URL.Path == "/beside":
			http.Redirect(w, r, otherPort.address+"/p.png", http.StatusFound)
		case ok && r.Method == http.MethodPost:
			model, _, _ = strings.Cut(model, "/images/")
			address := map[string]string{"own": own.URL + "/p.png", "redirect": own.URL + "/away", "vault": vault.address + "/p.png",
				"name": strings.Replace(vault.address, "127.0.0.2", "localhost", 1) + "/p.png",
				"port": otherPort.address + "/p.png", "port-redirect": own.URL + "/beside"}[model]
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(w, `{"created":1,"data":[{"url":%q}]}`, address)
		default:
			t.Errorf("the provider got %s %s", r.Method, r.URL)
		}
	}))
	t.Cleanup(own.Close)
	p := scene.NewNode(t, binary, database, nil)
	names := []string{"own", "redirect", "vault", "name", "port", "port-redirect"}
	var models, lines []map[string]any
	for _, name := range names {
		models = append(models, scene.ImageModel(name, nil))
		lines = append(lines, map[string]any{"id": name, "provider": "openai", "base_url": own.URL + "/at/" + name,
			"api_key": "${FAILING_LINE_KEY}",
			"models":  map[string]string{name: "gpt-image-2"}, "timeouts": map[string]any{"total": "60s"}})
	}
	p.SetCatalog(models, lines)
	c := p.Customer()
	jobs := map[string]string{}
	for _, name := range names {
		jobs[name] = c.Submit(t, "image", scene.JobRequest(name, "a cat", nil))
	}
	for _, name := range names {
		want := "failed"
		if name == "own" {
			want = "succeeded"
		}
		j := c.Becomes(t, "image", jobs[name], want)
		if want == "failed" && (j.Error.Code != "upstream_error" || strings.Contains(j.Raw, "127.0.0.") || strings.Contains(j.Raw, "public")) {
			t.Errorf("%s: the client got %s", name, j.Raw)
		}
	}
	if n := vault.hits.Load() + otherPort.hits.Load(); n != 0 {
		t.Errorf("the forbidden servers got %d requests", n)
	}
	c.CheckFunds(t, scene.PricePicture, 0)
	p.Audit(t)
}
