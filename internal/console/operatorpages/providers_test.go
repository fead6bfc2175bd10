package operatorpages_test

import (
	"fmt"
	"html"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"

	"tollgate/internal/console/consoletest"
	"tollgate/internal/store"
)

const providerKey = "sk-vendor-0123456789abcdef"

// fakeVendor is an API compatible with OpenAI's, with one valid key.
func fakeVendor(t *testing.T) (base string, valid *atomic.Value) {
	t.Helper()
	valid = new(atomic.Value)
	valid.Store(providerKey)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.Header.Get("Authorization") != "Bearer "+valid.Load().(string) {
			w.WriteHeader(http.StatusUnauthorized)
			fmt.Fprintf(w, `{"error":{"message":"bad key %s"}}`, r.Header.Get("Authorization"))
			return
		}
		fmt.Fprint(w, `{"object":"list","data":[{"id":"lark-2"},{"id":"swift-2"},{"id":"a b: <script>"}]}`)
	}))
	t.Cleanup(server.Close)
	return server.URL, valid
}

var inputTag = regexp.MustCompile(`<input[^>]* name="([^"]+)"[^>]*>`)

// fieldsOf returns the fields of the first form with an action, as alternating names and values, without
// unchecked boxes.
func fieldsOf(page, action string) (fields []string) {
	at := strings.Index(page, `action="`+action+`"`)
	if at < 0 {
		return nil
	}
	form, _, _ := strings.Cut(page[at:], "</form>")
	for _, m := range inputTag.FindAllStringSubmatch(form, -1) {
		_, rest, _ := strings.Cut(m[0], `value="`)
		value, _, _ := strings.Cut(rest, `"`)
		if !strings.Contains(m[0], "checkbox") || strings.Contains(m[0], " checked") {
			fields = append(fields, m[1], html.UnescapeString(value))
		}
	}
	return fields
}

// with replaces or adds fields.
func with(fields []string, changes ...string) []string {
	fields = append([]string(nil), fields...)
	for i := 0; i < len(changes); i += 2 {
		found := false
		for j := 0; j < len(fields); j += 2 {
			if fields[j] == changes[i] {
				fields[j+1], found = changes[i+1], true
			}
		}
		if !found {
			fields = append(fields, changes[i], changes[i+1])
		}
	}
	return fields
}

// TestAddAProvider goes through the form: a wrong key, the test call, the models, prices with a margin,
// the preview and the apply. Then it replaces the key, changes the margin, and finds out that the key is
// on no page.
func TestAddAProvider(t *testing.T) {
	t.Parallel()
	consoletest.Each(t, func(t *testing.T, s *consoletest.Scene) {
		const path = "/console/operator/providers"
		base, valid := fakeVendor(t)
		b := s.Operator()
		b.Get(path).Want(t, http.StatusOK, "Add a provider", "sandbox", "from YAML")
		b.Get(path+"/new").Want(t, http.StatusOK, "DeepSeek", "https://platform.openai.com/api-keys", `type="password"`)
		start := func(changes ...string) consoletest.Answer {
			return b.Post(path+"/new", with([]string{"vendor", "compatible", "key", providerKey, "reference", "", "base_url", base,
				"line", "main"}, changes...)...)
		}
		start("key", "sk-wrong").Want(t, http.StatusUnprocessableEntity, "The provider refused the key (status 401)")
		start("key", providerKey+"\n evil").Want(t, http.StatusUnprocessableEntity, "a space or a line break")
		start("line", "sandbox").Want(t, http.StatusUnprocessableEntity, "There is a line sandbox already")
		start("line", "a: {b").Want(t, http.StatusUnprocessableEntity, "must begin with a letter")
		start("key", "", "reference", "sk-literal").Want(t, http.StatusUnprocessableEntity, "and not the key itself")
		start("key", "", "reference", "${NOT_SET}").Want(t, http.StatusUnprocessableEntity, "the variable NOT_SET is not set")
		start("vendor", "deepseek", "key", "").Want(t, http.StatusUnprocessableEntity, "Paste the key")
		s.Update(func(tx *store.Tx) error {
			all, err := s.Options.SecretKeys.ListTx(tx)
			if len(all) != 0 {
				t.Errorf("after rejected forms, the secrets are %+v, want none", all)
			}
			return err
		})

		step2 := start()
		step2.Want(t, http.StatusOK, "lark-2", "swift-2", "Step 2 of 3")
		b.Get(path).Want(t, http.StatusOK, "No line uses this key") // the tab was closed, or the node died, after the key was stored
		choose := fieldsOf(step2.Body.String(), path+"/choose")
		b.Post(path+"/choose", choose...).Want(t, http.StatusUnprocessableEntity, "Choose at least one model")
		step3 := b.Post(path+"/choose", append(choose, "models", "swift-2")...)
		step3.Want(t, http.StatusOK, "swift-2", "Step 3 of 3")
		prices := fieldsOf(step3.Body.String(), path+"/prices")
		b.Post(path+"/prices", prices...).Want(t, http.StatusUnprocessableEntity,
			"Enter what the vendor takes for a million tokens of swift-2")
		full := with(prices, "input0", "1", "output0", "2.5", "context0", "100000", "answer0", "8000", "margin", "20")
		b.Post(path+"/prices", with(full, "model0", "x: {y")...).Want(t, http.StatusUnprocessableEntity, "This form is incomplete")
		preview := b.Post(path+"/prices", full...)
		preview.Want(t, http.StatusOK, "model swift-2: added", "line main: added", "Apply as revision 2", "Sells at $1.2", "Sells at $3")
		if _, revision := currentCatalog(s); revision != 1 {
			t.Fatalf("after a preview the revision is %d, want 1", revision)
		}
		sure := with(full, "sure", "yes")
		b.Post(path+"/prices", sure...).Want(t, http.StatusSeeOther, "done=applied")
		b.Post(path+"/prices", sure...).Want(t, http.StatusBadRequest, "Somebody has added a line main")
		text, revision := currentCatalog(s)
		for _, want := range []string{`api_key: "${secret:main}"`, "margin: 0.2", "input: 1.2", "output: 3",
			"base_url: " + base, "sandbox-chat"} {
			if !strings.Contains(text, want) {
				t.Errorf("the catalog is %s, want %q in it", text, want)
			}
		}
		if revision != 2 || s.Options.Catalog.Current().Revision != 2 {
			t.Errorf("revision %d, on this node %d, want 2", revision, s.Options.Catalog.Current().Revision)
		}
		b.Get("/console/operator/catalog").Want(t, http.StatusOK, "swift-2")
		b.Get("/console/operator/catalog/edit").Want(t, http.StatusOK, "come from the form", "main (line ")

		line := b.Get(path + "/main")
		line.Want(t, http.StatusOK, "Replace the key", `value="20"`, "swift-2")
		margin := with(fieldsOf(line.Body.String(), path+"/prices"), "margin", "50", "sure", "yes")
		b.Post(path+"/prices", margin...).Want(t, http.StatusSeeOther, "done=applied")
		if text, _ := currentCatalog(s); !strings.Contains(text, "margin: 0.5") || !strings.Contains(text, "input: 1.5") {
			t.Errorf("the catalog is %s, want the new margin", text)
		}
		b.Post(path+"/prices", margin...).Want(t, http.StatusConflict)

		b.Post(path+"/main/key", "key", "sk-wrong").Want(t, http.StatusUnprocessableEntity, "refused the key")
		valid.Store("sk-vendor-the-next-key")
		b.Post(path+"/main/key", "key", "sk-vendor-the-next-key").Want(t, http.StatusSeeOther, "done=key")
		if value, reason := s.Options.Catalog.Resolve("${secret:main}"); value != "sk-vendor-the-next-key" {
			t.Errorf("the key on this node is %q, %s, want the next one", value, reason)
		}
		b.Post(path+"/main/models").Want(t, http.StatusOK, "lark-2")
		b.Post(path+"/keys/main/delete").Want(t, http.StatusBadRequest, "The lines of the catalog use this secret")
		for _, page := range []string{path, path + "/main", "/console/operator/catalog", "/console/operator/catalog/edit",
			"/console/operator/log", "/console/operator/lines", "/console/operator/lines/main"} {
			if body := b.Get(page).Body.String(); strings.Contains(body, "sk-vendor") {
				t.Errorf("%s shows the key", page)
			}
		}
		for _, answer := range []consoletest.Answer{step2, step3, preview} {
			if strings.Contains(answer.Body.String(), providerKey) || strings.Contains(answer.Body.String(), "<script>") {
				t.Error("a step shows the key, or runs a model's name")
			}
		}
	})
}
