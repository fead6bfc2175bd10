package browser

import (
	"net/http"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

// addHistory gives the account usage of two months, succeeded and failed jobs, and requests of
// every kind.
func (g *gateway) addHistory(t *testing.T) {
	t.Helper()
	g.seedUsage(t)
	g.call(t, g.key, "/v1/chat/completions", 200, hello("sandbox-chat"))
	messages := hello("sandbox-messages")
	messages["max_tokens"] = 200
	g.call(t, g.key, "/native/v1/messages", 200, messages)
	g.call(t, g.key, "/v1/chat/completions", 503, hello("sandbox-repair"))
	g.call(t, g.key, "/v1/chat/completions", 400, map[string]any{"model": "sandbox-chat", "messages": []any{}})
	var jobs []string
	submit := func(kind string, body map[string]any) {
		body["model"] = "sandbox-" + kind
		id, _ := g.call(t, g.key, "/v1/"+kind+"s/generations", 202, body)["id"].(string)
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
	_, _, body := g.request(t, http.MethodGet, g.key, job, nil)
	return body["status"] == "succeeded" || body["status"] == "failed"
}

// livelyPages are the pages of an account in use, with the names of their pictures.
var livelyPages = []struct{ name, path string }{
	{"overview", "/console"}, {"keys", "/console/keys"}, {"requests", "/console/requests"},
	{"requests-failed", "/console/requests?status=502"}, {"usage", "/console/usage"}, {"usage-keys", "/console/usage?by=key&span=7"},
	{"billing", "/console/billing"}, {"statements", "/console/billing/statements"}, {"jobs", "/console/jobs"},
	{"jobs-failed", "/console/jobs?status=failed"}, {"webhooks", "/console/webhooks"}, {"models", "/console/models"},
	{"model-vision", "/console/models?id=sandbox-vision"}, {"model-video", "/console/models?id=sandbox-video"},
}

// firsts maps a list to the name of the page that its first row links to. That page is tested too.
var firsts = map[string]string{"keys": "key", "requests-failed": "request-failed", "requests": "request", "statements": "statement",
	"webhooks": "delivery"}

// TestLivelyAccount checks the pages of an account in use, also on the smallest phone and on a
// laptop at a zoom of 200 %.
func TestLivelyAccount(t *testing.T) {
	t.Parallel()
	g := start(t)
	g.addHistory(t)
	for i, l := range []display{{"dark", 1280}, {"light", 390}, {"light", 320}, {"dark", 640}} {
		t.Run(l.String(), func(t *testing.T) {
			t.Parallel()
			b := open(t, g, l.theme, l.width)
			b.sameColors = i > 1
			b.signIn()
			for _, p := range livelyPages {
				b.visit(p.path, p.name)
				b.checkTiles(p.name)
				if inner := firsts[p.name]; inner != "" {
					b.press("tbody a.rowlink")
					b.checkPage(inner)
				}
			}
			b.open("/console/jobs?status=failed")
			b.press(".tile h3 a")
			b.checkPage("job-failed")
			b.open("/console/jobs?status=succeeded&kind=image")
			b.press(".tile h3 a")
			b.checkPage("job")
		})
	}
}

// checkTiles checks that the tiles of a gallery have equal sizes.
func (b *tab) checkTiles(name string) {
	b.t.Helper()
	if sizes := run(b, chromedp.Evaluate[float64](`new Set([...document.querySelectorAll(".tile .picture")]
		.map((one) => Math.round(one.getBoundingClientRect().height))).size`)); sizes > 1 {
		b.t.Errorf("%s: the tiles have %v heights", name, sizes)
	}
}
