package browser

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"tollgate/internal/gatewaytest/fakemail"
	"tollgate/internal/gatewaytest/fakepayment"
)

// ownersToken matches the operator's token in the output of a first start.
var ownersToken = regexp.MustCompile(`operator's token, which is in data/admin-token:\s+(\S+)`)

// TestOwner goes from an empty folder to a customer who signs up, pays and calls. The owner reads only the
// output of the program and the pages.
func TestOwner(t *testing.T) {
	t.Parallel()
	began := time.Now()
	p, stripe, mails := startProvider(t), fakepayment.NewStripe(t), fakemail.Start(t, fakemail.Options{})
	folder, listen := t.TempDir(), "TOLLGATE_LISTEN=127.0.0.1:"+freePort(t)
	address, output, stop := serve(t, folder, []string{listen})
	token := ownersToken.FindStringSubmatch(output)
	if token == nil || !strings.Contains(output, address+"/console/operator") {
		t.Fatalf("the first start prints no token, or not where to use it:\n%s", output)
	}
	g := &gateway{url: address, token: token[1], folder: folder}
	op := &clicks{tab: open(t, g, "light", 1280)}
	op.operator()
	op.waitForText("Customers cannot pay yet")
	op.checkPage("new")
	op.addProvider(p)
	op.click(menu(""))
	op.waitForText("Customers cannot pay yet")
	settings := run(op.tab, chromedp.Evaluate[string](`document.querySelector("#settings-0-text").textContent`))
	stop()

	g.configure(t, settings, map[string]string{"public_url": address, "smtp_server": mails.Address, "smtp_user": "",
		"smtp_password_file": ""}, map[string]string{"stripe-key": fakepayment.StripeKey, "stripe-secret": fakepayment.StripeSecret},
		"smtp_security: none", "stripe_url: "+stripe.URL, "private_networks: [127.0.0.0/8]")
	serve(t, folder, []string{listen}, "--config", "tollgate.yaml")
	stripe.SendTo(address + "/payments/stripe/webhook")

	const ada = "ada@example.com"
	b := open(t, g, "light", 390)
	b.signUp(mails, ada, "my own horse")
	b.order("10.00")
	b.pay(stripe.URL)
	key := b.createKey("backend")
	if status, _ := g.chat(t, key, "vendor-1"); status != http.StatusOK {
		t.Fatalf("the customer's request got status %d", status)
	}
	g.wantBalance(t, ada, "9.9999796") // 9 tokens at 1.2 and 4 at 2.4 USD per million
	op.open("/console/operator")
	if run(op.tab, chromedp.Evaluate[bool](`document.body.innerText.includes("Steps to your first paying customer")`)) {
		t.Error("the first steps are still shown")
	}
	g.audit(t)
	if took := time.Since(began); took > 15*time.Minute {
		t.Errorf("the first self-paying customer took %s", took)
	}
}

// addProvider adds a provider with the form, with a margin of 20 %.
func (c *clicks) addProvider(p *provider) {
	c.t.Helper()
	c.click(`main .steps a.main`)
	c.do(chromedp.Evaluate[chromedp.Void](`void (document.querySelector("#f-vendor").value = "compatible")`))
	c.fill("#f-key", "sk-vendor-1234567890")
	c.fill("#f-base_url", p.url+"/v1")
	c.fill("#f-line", "main")
	c.click("main form button.main")
	c.waitForText("The provider answered and accepts the key.")
	c.do(chromedp.Click(chromedp.CSS(`main input[type=checkbox][value="vendor-1"]`)))
	c.click("main form button.main")
	c.waitForText("Step 3 of 3")
	for id, value := range map[string]string{"margin": "20", "input0": "1", "output0": "2", "context0": "128000", "answer0": "8000"} {
		c.fill("#f-"+id, value)
	}
	c.click("main form button.main")
	c.waitForText("model vendor-1: added")
	c.click("main form button.main")
	c.waitForText("Applied.")
}

// configure writes the settings file with other values and further lines, and the files of secrets. Settings
// with an empty value are left out.
func (g *gateway) configure(t *testing.T, settings string, values, secrets map[string]string, more ...string) {
	t.Helper()
	var lines []string
	for line := range strings.Lines(settings) {
		key, _, _ := strings.Cut(line, ":")
		switch value, ok := values[key]; {
		case !ok:
			lines = append(lines, strings.TrimSpace(line))
		case value != "":
			lines = append(lines, fmt.Sprintf("%s: %q", key, value))
		}
	}
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(g.folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range secrets {
		write(name, text)
	}
	write("tollgate.yaml", strings.Join(append(lines, more...), "\n"))
}
