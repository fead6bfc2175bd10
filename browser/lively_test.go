package browser

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

// call sends a body to the API with the demo account's key, expects a status, and returns the
// answer.
func (g *gateway) call(t *testing.T, path string, status int, body map[string]any) map[string]any {
	t.Helper()
	return g.send(t, g.key, path, status, body)
}

// operator sends a body to the operator API.
func (g *gateway) operator(t *testing.T, path string, body map[string]any) map[string]any {
	t.Helper()
	return g.send(t, adminToken, path, http.StatusOK, body)
}

func (g *gateway) send(t *testing.T, token, path string, status int, body map[string]any) map[string]any {
	t.Helper()
	raw, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	r, err := http.NewRequest(http.MethodPost, g.url+path, bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+token)
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	got, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != status {
		t.Fatalf("%s: %d, %v: %s", path, answer.StatusCode, err, got)
	}
	var out map[string]any
	if err := json.Unmarshal(got, &out); err != nil {
		t.Fatalf("%v: %s", err, got)
	}
	return out
}

// life gives the account usage of two months, succeeded and failed jobs, and requests of every
// kind.
func (g *gateway) life(t *testing.T) {
	t.Helper()
	g.past(t)
	message := func(text string) []map[string]string { return []map[string]string{{"role": "user", "content": text}} }
	g.call(t, "/v1/chat/completions", 200, map[string]any{"model": "sandbox-chat", "messages": message("Hello!")})
	g.call(t, "/native/v1/messages", 200, map[string]any{"model": "sandbox-messages", "max_tokens": 200, "messages": message("Hello!")})
	g.call(t, "/v1/chat/completions", 503, map[string]any{"model": "sandbox-repair", "messages": message("Hello!")})
	g.call(t, "/v1/chat/completions", 400, map[string]any{"model": "sandbox-chat", "messages": []any{}})
	var jobs []string
	submit := func(kind string, body map[string]any) {
		body["model"] = "sandbox-" + kind
		id, _ := g.call(t, "/v1/"+kind+"s/generations", 202, body)["id"].(string)
		jobs = append(jobs, "/v1/"+kind+"s/jobs/"+id)
	}
	submit("image", map[string]any{"prompt": "a lighthouse in the fog, film grain", "seed": 7, "style": "vivid"})
	submit("image", map[string]any{"n": 2, "size": "16:9", "prompt": "two cats on a wall that look into the distance, as if they had " +
		"seen something there, in the evening, with long shadows and a very long description of what else there is to see"})
	submit("image", map[string]any{"prompt": "fail:moderation_blocked"})
	submit("video", map[string]any{"prompt": "a paper boat drifts down a gutter in the rain"})
	submit("video", map[string]any{"prompt": "fail:content_policy"})
	deadline := time.Now().Add(3 * stepTimeout)
	for _, job := range jobs {
		for !g.ended(t, job) {
			if time.Now().After(deadline) {
				t.Fatalf("%s does not end", job)
			}
		}
	}
}

// ended reports whether a job has ended.
func (g *gateway) ended(t *testing.T, job string) bool {
	t.Helper()
	r, err := http.NewRequest(http.MethodGet, g.url+job, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+g.key)
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	var body struct{ Status string }
	if err := json.NewDecoder(answer.Body).Decode(&body); err != nil {
		t.Fatal(err)
	}
	return body.Status == "succeeded" || body.Status == "failed"
}

// livelyPages are the pages of an account in use, with the names of their pictures.
var livelyPages = []struct{ name, path string }{
	{"overview", "/console"}, {"keys", "/console/keys"}, {"requests", "/console/requests"},
	{"requests-failed", "/console/requests?status=502"}, {"usage", "/console/usage"}, {"usage-keys", "/console/usage?by=key&span=7"},
	{"billing", "/console/billing"}, {"statements", "/console/billing/statements"}, {"jobs", "/console/jobs"},
	{"jobs-failed", "/console/jobs?status=failed"}, {"webhooks", "/console/webhooks"}, {"models", "/console/models"},
	{"model-vision", "/console/models?id=sandbox-vision"}, {"model-video", "/console/models?id=sandbox-video"},
}

// firsts maps a page to the name of the page behind its first row, which is tested too.
var firsts = map[string]string{"keys": "key", "requests-failed": "request-failed", "requests": "request", "statements": "statement",
	"webhooks": "delivery"}

// TestLivelyAccount checks the pages of an account in use, also on the smallest phone and on a
// laptop at a zoom of 200 %.
func TestLivelyAccount(t *testing.T) {
	if missing(t) {
		return
	}
	t.Parallel()
	g := start(t)
	g.life(t)
	for _, l := range []look{{"dark", 1280}, {"light", 390}, {"light", 320}, {"dark", 640}} {
		b := open(t, g, l.theme, l.width)
		b.called = fmt.Sprintf("%s-%d", l.theme, l.width)
		b.signIn()
		for _, p := range livelyPages {
			b.open(p.path)
			b.lookOver(p.name)
			b.fits(p.name)
			if inner := firsts[p.name]; inner != "" {
				b.press("tbody a.rowlink")
				b.lookOver(inner)
			}
		}
		b.open("/console/jobs?status=failed")
		b.press(".tile h3 a")
		b.lookOver("job-failed")
		b.open("/console/jobs?status=succeeded&kind=image")
		b.press(".tile h3 a")
		b.lookOver("job")
	}
}

// fits checks that no table scrolls sideways, and that the tiles of a gallery have equal sizes.
func (b *tab) fits(name string) {
	b.t.Helper()
	if wide := run(b, chromedp.Evaluate[string](`[...document.querySelectorAll(".tablewrap")].filter((one) => one.checkVisibility() &&
		one.scrollWidth > one.clientWidth + 1).map((one) => one.ariaLabel).join()`)); wide != "" {
		b.t.Errorf("%s: wider than the screen: %s", name, wide)
	}
	if sizes := run(b, chromedp.Evaluate[float64](`new Set([...document.querySelectorAll(".tile .picture")]
		.map((one) => Math.round(one.getBoundingClientRect().height))).size`)); sizes > 1 {
		b.t.Errorf("%s: the tiles have %v heights", name, sizes)
	}
}
