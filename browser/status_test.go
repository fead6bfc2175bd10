package browser

import (
	"net/http"
	"strings"
	"testing"
)

// TestStatusPage checks the public page of availability in both languages on both displays, with a model that
// fails, one that works and one without requests. A node writes its counts when it stops.
func TestStatusPage(t *testing.T) {
	t.Parallel()
	p, folder := startProvider(t), t.TempDir()
	settings := []string{"TOLLGATE_LISTEN=127.0.0.1:" + freePort(t), "TOLLGATE_ADMIN_TOKEN=" + adminToken,
		"TOLLGATE_PRIVATE_NETWORKS=127.0.0.0/8", "TOLLGATE_PUBLIC_STATUS=true"}
	address, output, stop := serve(t, folder, settings)
	printed := printed.FindStringSubmatch(output)
	g := &gateway{url: address, key: printed[3], token: adminToken, folder: folder}
	op := &clicks{tab: open(t, g, "light", 1280)}
	op.operator()
	var models, lines string
	for _, model := range []string{"swift-1", "calm-1", "idle-1"} {
		m, l := p.catalogEntries(model, "line-"+model)
		models, lines = models+m, lines+l
	}
	op.open("/console/operator/catalog/edit")
	op.addModels(models, lines)
	op.click("main form button.main")
	op.waitForText("Applied.")
	account := g.call(t, adminToken, "/admin/v1/accounts", http.StatusOK, map[string]any{"name": "Acme"})["id"].(string)
	g.call(t, adminToken, "/admin/v1/accounts/"+account+"/credits", http.StatusOK, map[string]any{"usd": 5})
	key := g.call(t, adminToken, "/admin/v1/accounts/"+account+"/keys", http.StatusOK, map[string]any{"name": "a"})["key"].(string)
	if status, _ := g.chat(t, key, "calm-1"); status != http.StatusOK {
		t.Fatalf("the request got status %d", status)
	}
	p.down.Store(true)
	if status, _ := g.chat(t, key, "swift-1"); status != http.StatusBadGateway {
		t.Fatalf("the request got status %d while the provider is down, want 502", status)
	}
	stop()
	serve(t, folder, settings)
	for _, d := range displays {
		b := open(t, g, d.theme, d.width)
		b.visit("/console/status", "status-"+d.String())
		for _, want := range []string{"some models fail at the moment", "100 %", "0 %", "no recent requests"} {
			if !strings.Contains(b.text("main"), want) {
				t.Errorf("%s: no %q on the page", d, want)
			}
		}
		b.chooseChinese()
		b.visitChinese("/console/status", "status-zh-"+d.String())
	}
}
