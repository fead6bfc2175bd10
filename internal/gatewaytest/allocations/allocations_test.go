// Package allocations owns the budgets of memory: objects and bytes allocated by the gateway's process
// for a request, including all records of it.
package allocations

import (
	"io"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"tollgate/internal/gatewaytest/fakeprovider"
	"tollgate/internal/gatewaytest/scene"
	"tollgate/internal/store/storetest"
)

// budget is the limit of one measurement: about a fifth more than was measured when it was set. Raise
// it only with a reason in the commit's message.
type budget struct{ objects, bytes float64 }

// TestBudgets compares the allocations of a request and of a streamed chunk with their budgets, if line
// and client speak the same form. Requests follow each other, so none shares a commit with others.
func TestBudgets(t *testing.T) {
	t.Parallel()
	binary := scene.Binary(t)
	storetest.EachURL(t, func(t *testing.T, database string) {
		budgets := map[string]budget{"whole": {560, 46_000}, "200 KB": {600, 300_000}, "chunk": {1, 500}}
		if !strings.HasPrefix(database, "sqlite:") {
			budgets = map[string]budget{"whole": {1320, 96_000}, "200 KB": {1350, 350_000}, "chunk": {1, 500}}
		}
		provider := fakeprovider.New(t)
		chunks := 8
		provider.Always(func(r fakeprovider.Request) fakeprovider.Reply {
			if r.IsStream() {
				return fakeprovider.Stream(100, chunks, strings.Split(strings.Repeat("word ", chunks), " ")...)
			}
			return fakeprovider.Answer("good", 100, 1)
		})
		g := scene.Open(t, binary, database, map[string]string{"log_level": "warn"})
		g.SetCatalog([]map[string]any{scene.ChatModel("swift", nil)},
			[]map[string]any{scene.ChatLine("only", provider.URL(), nil, "swift")})
		_, key := g.Process.Account(100, nil)
		measure := func(request string) budget {
			t.Helper()
			const requests = 300
			var before budget
			for i := range 2 * requests { // the first half fills pools and caches
				if i == requests {
					before = allocated(t, g)
				}
				if a := g.Send(t, scene.Chat, key, request); a.Status != 200 {
					t.Fatalf("%d %s", a.Status, a.Raw)
				}
			}
			after := allocated(t, g)
			return budget{(after.objects - before.objects) / requests, (after.bytes - before.bytes) / requests}
		}
		check := func(name string, got budget) {
			t.Helper()
			t.Logf("%s: %.1f objects, %.0f bytes", name, got.objects, got.bytes)
			if want := budgets[name]; got.objects > want.objects || got.bytes > want.bytes {
				t.Errorf("%s: %.1f objects and %.0f bytes are allocated, want at most %.1f and %.0f",
					name, got.objects, got.bytes, want.objects, want.bytes)
			}
		}
		check("whole", measure(scene.Request(scene.Chat, "swift", false, nil)))
		check("200 KB", measure(scene.Request(scene.Chat, "swift", false, map[string]any{"messages": []any{
			map[string]any{"role": "user", "content": strings.Repeat("word ", 40_000)}}})))
		streamed := scene.Request(scene.Chat, "swift", true, nil)
		short := measure(streamed)
		chunks = 208
		long := measure(streamed)
		check("chunk", budget{(long.objects - short.objects) / 200, (long.bytes - short.bytes) / 200})
	})
}

// allocated returns the allocations of the gateway's process since its start.
func allocated(t *testing.T, g *scene.Gateway) budget {
	t.Helper()
	res, err := scene.Do(t.Context(), g.Client, "GET", g.Process.URL+"/metrics", "", "Authorization", "Bearer "+scene.AdminToken)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	number := func(name string) float64 {
		found := regexp.MustCompile(`(?m)^` + name + ` (\S+)$`).FindSubmatch(text)
		if found == nil {
			t.Fatalf("/metrics has no %s", name)
		}
		n, err := strconv.ParseFloat(string(found[1]), 64)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	return budget{number("go_memstats_mallocs_total"), number("go_memstats_alloc_bytes_total")}
}
