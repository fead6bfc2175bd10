package crash

import (
	"encoding/base64"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"tollgate/internal/gatewaytest/fakeprovider"
	"tollgate/internal/gatewaytest/scene"
	"tollgate/internal/store/storetest"
)

// owner is a browser that adds providers with the form.
type owner struct {
	t      *testing.T
	n      *scene.Node
	vendor string // address
	client *http.Client
}

// newVendor starts a vendor with two models.
func newVendor(t *testing.T) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"data":[{"id":"lark-2"},{"id":"swift-2"}]}`)
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// post sends a form and returns the page. Without an answer, it returns an empty page.
func (o *owner) post(path string, form url.Values) string {
	resp, err := o.client.PostForm(o.n.URL+path, form)
	if err != nil {
		return ""
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return ""
	}
	return string(body)
}

const providersPath = "/console/operator/providers"

var carried = regexp.MustCompile(`<input[^>]* name="(line|vendor|base_url|api_key|exists|base|all)"[^>]* value="([^"]*)"`)

// next returns the hidden fields of a page with more fields.
func next(page string, more url.Values) url.Values {
	for _, m := range carried.FindAllStringSubmatch(page, -1) {
		more[m[1]] = []string{m[2]}
	}
	return more
}

// add goes through the form. It ends early if a step is not answered.
func (o *owner) add(line string) {
	first := o.post(providersPath+"/new", url.Values{"vendor": {"compatible"}, "key": {"sk-" + line}, "base_url": {o.vendor}, "line": {line}})
	if !strings.Contains(first, "Step 2 of 3") {
		return
	}
	second := o.post(providersPath+"/choose", next(first, url.Values{"models": {"swift-2"}}))
	if !strings.Contains(second, "Step 3 of 3") {
		return
	}
	o.post(providersPath+"/prices", next(second, url.Values{"margin": {"20"}, "model0": {"swift-2"}, "input0": {"1"}, "output0": {"2"},
		"context0": {"1000"}, "answer0": {"100"}, "sure": {"yes"}}))
}

// state returns the lines of the catalog that refer to the line's secret, and whether it is stored.
func (o *owner) state(line string) (lines []string, stored bool) {
	o.t.Helper()
	var secrets struct {
		Data []struct {
			Name  string
			Lines []string
		}
	}
	o.n.Admin("GET", "/secrets", nil, &secrets)
	for _, s := range secrets.Data {
		if s.Name == line {
			return s.Lines, true
		}
	}
	return nil, false
}

// lines returns the lines of the catalog.
func (o *owner) lines() (ids []string) {
	o.t.Helper()
	var doc struct{ Lines []struct{ ID string } }
	o.n.Admin("GET", "/catalog", nil, &doc)
	for _, l := range doc.Lines {
		ids = append(ids, l.ID)
	}
	return ids
}

// TestKillWhileAProviderIsAdded kills the real process at random moments of the form, and once after the
// key is stored and before the catalog is applied. Afterwards the catalog has the line, and the secret is
// stored, or no line uses the secret. A second submission of the form adds the line.
func TestKillWhileAProviderIsAdded(t *testing.T) {
	t.Parallel()
	rounds := 12
	if os.Getenv("TOLLGATE_TORTURE") != "" {
		rounds = 200
	}
	storetest.EachURL(t, func(t *testing.T, database string) {
		jar, err := cookiejar.New(nil)
		if err != nil {
			t.Fatal(err)
		}
		n := scene.NewNode(t, scene.Binary(t), database, map[string]string{"node_lease": "1s",
			"secret_key": base64.StdEncoding.EncodeToString(make([]byte, 32))})
		n.SetCatalog([]map[string]any{scene.ChatModel("m", nil)},
			[]map[string]any{scene.ChatLine("first", fakeprovider.New(t).URL(), nil, "m")})
		o := &owner{t: t, n: n, vendor: newVendor(t), client: &http.Client{Jar: jar}}
		o.post("/console/operator/sign-in", url.Values{"admin_token": {scene.AdminToken}})
		began := time.Now()
		o.add("whole")
		whole := time.Since(began)
		var unused, used, absent int
		for round := range rounds {
			line := fmt.Sprintf("line-%d", round)
			if round == 0 {
				o.post(providersPath+"/new", url.Values{"vendor": {"compatible"}, "key": {"sk-1"}, "base_url": {o.vendor}, "line": {line}})
				n.Kill()
			} else {
				done := make(chan struct{})
				go func() {
					defer close(done)
					o.add(line)
				}()
				select {
				case <-done:
				case <-time.After(rand.N(whole)):
				}
				n.Kill()
				<-done
			}
			n.Restart()
			switch lines, stored := o.state(line); {
			case len(lines) > 0 && slices.Contains(o.lines(), line):
				used++
			case len(lines) > 0 || slices.Contains(o.lines(), line):
				t.Errorf("round %d: secret used by %v, lines %v", round, lines, o.lines())
			case stored:
				unused++
			default:
				absent++
			}
			o.add(line)
			if lines, _ := o.state(line); !slices.Equal(lines, []string{line}) || !slices.Contains(o.lines(), line) {
				t.Errorf("round %d: after a second submission the secret is used by %v, and the lines are %v", round, lines, o.lines())
			}
		}
		if unused == 0 {
			t.Error("no round left an unused secret, want the first one")
		}
		t.Logf("after the kill: %d with both, %d with the secret, %d with neither", used, unused, absent)
	})
}
