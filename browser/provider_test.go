package browser

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/chromedp/chromedp"
)

const vendorKey = "sk-of-the-vendor"

// startVendor starts a local vendor with OpenAI's interface, which accepts one key. Its model
// deepseek-flash has a list price.
func startVendor(t *testing.T) (base string) {
	t.Helper()
	models := http.NewServeMux()
	models.HandleFunc("GET /v1/models", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = fmt.Fprint(w, `{"object": "list", "data": [{"id": "deepseek-flash"}, {"id": "other-1"}]}`)
	})
	models.HandleFunc("POST /v1/chat/completions", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = fmt.Fprint(w, `{"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "deepseek-flash",
			"choices": [{"index": 0, "message": {"role": "assistant", "content": "Hello to you."}, "finish_reason": "stop"}],
			"usage": {"prompt_tokens": 9, "completion_tokens": 4, "total_tokens": 13}}`)
	})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.Header.Get("Authorization") != "Bearer "+vendorKey {
			w.WriteHeader(http.StatusUnauthorized)
			_, _ = fmt.Fprint(w, `{"error": {"message": "wrong key", "type": "authentication_error"}}`)
			return
		}
		models.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	return server.URL + "/v1"
}

// TestAddProvider adds a vendor on a private address with the form: a wrong key, the right one, a model
// with its list price, and a margin. A customer's request on the new line then costs the list price with
// the margin.
func TestAddProvider(t *testing.T) {
	t.Parallel()
	onDisplays(t, func(t *testing.T, g *gateway, d display) {
		base := startVendor(t)
		b := open(t, g, d.theme, d.width)
		b.operator()
		b.open("/console/operator/providers")
		b.press(`main a[href$="/providers/new"]`)
		b.waitForText("Where to get a key")
		b.choose("#f-vendor", "deepseek")
		b.fill("#f-key", "sk-wrong")
		b.fill("#f-base_url", base)
		b.press("main form button.main")
		b.expect("422")
		b.waitForText("The provider refused the key (status 401)")
		b.checkPage("provider-refused-key")
		b.fill("#f-key", vendorKey)
		b.press("main form button.main")
		b.waitForText("The provider answered and accepts the key.")
		b.waitForText("deepseek-flash: $0.30 in, $1.20 out per million tokens")
		b.checkPage("provider-models")
		b.press("main form button.main") // the model with a list price is chosen
		b.waitForText("Step 3 of 3")
		if input := b.value("#f-input0"); input != "0.3" {
			t.Errorf("the form suggests %q as the cost of input, want the list price", input)
		}
		b.fill("#f-margin", "50")
		b.press("main form button.main")
		b.waitForText("Sells at $1.80")
		b.checkPage("provider-preview")
		b.press("main form button.main")
		b.waitForText("Applied.")
		b.checkPage("providers")
		if run(b, chromedp.Evaluate[bool](`document.documentElement.outerHTML.includes("`+vendorKey+`")`)) {
			t.Error("the page shows the key")
		}

		account := g.call(t, g.token, "/admin/v1/accounts", http.StatusOK, map[string]any{"name": "Acme"})["id"].(string)
		g.call(t, g.token, "/admin/v1/accounts/"+account+"/credits", http.StatusOK, map[string]any{"usd": 5})
		key := g.call(t, g.token, "/admin/v1/accounts/"+account+"/keys", http.StatusOK, map[string]any{"name": "a"})["key"].(string)
		eventually(t, "the new line does not answer", func() bool {
			status, _ := g.chat(t, key, "deepseek-flash")
			return status == http.StatusOK
		})
		g.wantBalance(t, "Acme", "4.99998875") // 9 tokens at 0.45 and 4 at 1.80 USD per million
	}, "TOLLGATE_PRIVATE_NETWORKS=")
}
