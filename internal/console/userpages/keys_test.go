package userpages_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"tollgate/internal/account"
	"tollgate/internal/console"
	"tollgate/internal/console/consoletest"
	"tollgate/internal/money"
	"tollgate/internal/store"
)

// TestKeyLife checks that a key is created, shown once, changed, disabled, enabled and deleted.
func TestKeyLife(t *testing.T) {
	t.Parallel()
	consoletest.Each(t, func(t *testing.T, s *consoletest.Scene) {
		b := s.SignedIn("ada@example.com")
		b.Get("/console/keys").Want(t, http.StatusOK, "No keys yet", "/console/keys/new")
		once := b.Get("/console/keys/new").Once(t)
		fields := []string{"name", "back<b>end", "rpm", "60", "daily_budget_usd", "$0.5", "total_limit_usd", "", "allowed_models", "sandbox-chat",
			"allowed_ips", "192.0.2.0/24\r\n2001:db8::1", "wait_for_pictures", "yes", "once", once}

		wrong := append([]string{}, fields...)
		wrong[3], wrong[5] = "sixty", "five"
		b.Post("/console/keys/new", wrong...).Want(t, http.StatusUnprocessableEntity, "must be a whole number from 1", `value="sixty"`,
			`value="back&lt;b&gt;end"`, `value="sandbox-chat" checked`, "192.0.2.0/24")

		got := b.Post("/console/keys/new", fields...)
		got.Want(t, http.StatusOK, "Copy this key now.", "curl ", "Codex", "Cline", consoletest.PublicURL+"/v1")
		shown := got.Secrets()
		if len(shown) < 7 {
			t.Errorf("the secret is shown %d times, want at least 7", len(shown))
		}
		again := b.Post("/console/keys/new", fields...)
		again.Want(t, http.StatusOK, "already sent")
		if len(again.Secrets()) > 0 {
			t.Error("the page shows the secret again after a reload")
		}
		var keys []account.Key
		s.Update(func(tx *store.Tx) (err error) {
			keys, _, err = account.ListKeysTx(tx, s.Accounts["ada"].ID, "", 10)
			return err
		})
		if len(keys) != 1 {
			t.Fatalf("the account has %d keys, want 1", len(keys))
		}
		k := keys[0]
		l := k.Ledger.Limits
		if k.Name != "back<b>end" || *l.RPM != 60 || *l.DailyBudget != money.USD/2 || l.TotalLimit != nil || len(k.AllowedIPs) != 2 ||
			len(k.AllowedModels) != 1 || !k.WaitForPictures || !strings.HasPrefix(shown[0], k.Hint[:7]) {
			t.Errorf("the form created the key %+v", k)
		}
		for _, page := range []string{"/console/keys", "/console/keys/" + k.ID, "/console"} {
			if len(b.Get(page).Secrets()) > 0 {
				t.Errorf("%s shows the secret", page)
			}
		}
		b.Get("/console/keys").Want(t, http.StatusOK, "back&lt;b&gt;end", "60/min, $0.50/day, 1 model, 2 addresses", "never")
		b.Get("/console/keys/"+k.ID).Want(t, http.StatusOK, `value="0.5"`, `value="sandbox-chat" checked`, "2001:db8::1", "Wait for pictures")

		b.Post("/console/keys/"+k.ID, "name", "backend", "rpm", "0").Want(t, http.StatusUnprocessableEntity, "whole number")
		b.Post("/console/keys/"+k.ID, "name", "backend", "account", "acct_x").Want(t, http.StatusBadRequest)
		b.Post("/console/keys/"+k.ID, "name", "backend").Want(t, http.StatusSeeOther, "done=saved")
		b.Post("/console/keys/"+k.ID+"/disable").Want(t, http.StatusSeeOther)
		b.Get("/console/keys/"+k.ID+"?done=disabled").Want(t, http.StatusOK, "it answers 401", "/enable")
		b.Post("/console/keys/"+k.ID+"/enable").Want(t, http.StatusSeeOther)

		arrival := b.Get("/console/keys/" + k.ID + "/arrival")
		arrival.Want(t, http.StatusOK, "Waiting for the first request")
		b.Headers["If-None-Match"] = arrival.Header().Get("ETag")
		b.Get("/console/keys/"+k.ID+"/arrival").Want(t, http.StatusNotModified)
		delete(b.Headers, "If-None-Match")

		b.Get("/console/keys/"+k.ID+"?confirm=delete").Want(t, http.StatusOK, `<dialog id="delete" open`)
		b.Post("/console/keys/"+k.ID+"/delete", "typed", "back").Want(t, http.StatusUnprocessableEntity, "was not deleted")
		b.Post("/console/keys/"+k.ID+"/delete", "typed", "backend").Want(t, http.StatusSeeOther, "done=deleted")
		b.Get("/console/keys/"+k.ID).Want(t, http.StatusNotFound, "Not found")
	})
}

// TestKeyWithInvisibleCharacters checks that a new name with invisible characters is rejected, and
// that a stored key with such a name can be shown, changed, and deleted by its visible characters.
func TestKeyWithInvisibleCharacters(t *testing.T) {
	t.Parallel()
	consoletest.Each(t, func(t *testing.T, s *consoletest.Scene) {
		const name = "back\u202eend"
		b, k := s.SignedIn("ada@example.com"), s.Key("ada", "backend")
		path := "/console/keys/" + k.ID
		b.Post(path, "name", name).Want(t, http.StatusUnprocessableEntity, "Name has an invisible character (U&#43;202E)", "aria-invalid")
		s.Exec(`UPDATE api_key SET name = $1 WHERE id = $2`, name, k.ID)
		b.Get("/console/keys").Want(t, http.StatusOK, name)
		b.Get(path).Want(t, http.StatusOK, `value="`+name+`"`)
		b.Post(path, "name", name, "rpm", "7").Want(t, http.StatusSeeOther, "done=saved")
		b.Post(path+"/disable").Want(t, http.StatusSeeOther)
		b.Post(path+"/delete", "typed", "backened").Want(t, http.StatusUnprocessableEntity, "was not deleted")
		b.Post(path+"/delete", "typed", "backend").Want(t, http.StatusSeeOther, "done=deleted")
	})
}

// TestKeyOfAnotherAccountIsNotFound checks that the id of another account's key gets the same answer
// as an unknown id.
func TestKeyOfAnotherAccountIsNotFound(t *testing.T) {
	t.Parallel()
	consoletest.Each(t, func(t *testing.T, s *consoletest.Scene) {
		b, id := s.SignedIn("bob@example.com"), s.Key("ada", "ada's").ID
		unknown := id[:len(id)-1] + "0"
		if id == unknown {
			unknown = id[:len(id)-1] + "1"
		}
		request := regexp.MustCompile(`req_[0-9a-z]+`)
		same := func(got, missing string) bool {
			got, missing = strings.ReplaceAll(got, id, "ID"), strings.ReplaceAll(missing, unknown, "ID")
			return request.ReplaceAllString(got, "") == request.ReplaceAllString(missing, "")
		}
		for _, path := range []string{"", "/arrival"} {
			got, missing := b.Get("/console/keys/"+id+path), b.Get("/console/keys/"+unknown+path)
			if got.Code != http.StatusNotFound || missing.Code != http.StatusNotFound || !same(got.Body.String(), missing.Body.String()) {
				t.Errorf("the key%s of another account: %d %s, want the 404 of an unknown key: %d %s", path, got.Code, got.Body,
					missing.Code, missing.Body)
			}
		}
	})
}

// TestLongListsHavePages checks that 51 keys need two pages.
func TestLongListsHavePages(t *testing.T) {
	t.Parallel()
	consoletest.Each(t, func(t *testing.T, s *consoletest.Scene) {
		for range 51 {
			s.Key("ada", "many")
		}
		b := s.SignedIn("ada@example.com")
		next := regexp.MustCompile(`href="(/console/keys\?after=key_[^"]+)"`).FindStringSubmatch(b.Get("/console/keys").Body.String())
		if next == nil {
			t.Fatal("the page has no link to the next page")
		}
		got := b.Get(next[1])
		got.Want(t, http.StatusOK, "First page")
		if n := strings.Count(got.Body.String(), "rowlink"); n != 1 {
			t.Errorf("the next page has %d keys, want 1", n)
		}
	})
}

// TestKeysBeyondTheChoice checks the choice of a key in an account with more keys than the limit. The
// choice has the newest keys, a note about older keys, and the name of a chosen older key, but no key
// of another account.
func TestKeysBeyondTheChoice(t *testing.T) {
	t.Parallel()
	consoletest.Each(t, func(t *testing.T, s *consoletest.Scene) {
		foreign := s.Key("bob", "nobody's business")
		var keys []account.Key
		s.Update(func(tx *store.Tx) (err error) {
			for i := range 201 {
				if _, _, err := account.CreateKeyTx(tx, s.Accounts["ada"].ID, account.KeySettings{Name: fmt.Sprintf("key-%d", i)}); err != nil {
					return err
				}
			}
			keys, _, err = account.NewestKeysTx(tx, s.Accounts["ada"].ID, 201)
			return err
		})
		b, newest, oldest := s.SignedIn("ada@example.com"), keys[0], keys[200]
		for _, path := range []string{"/console/requests", "/console/usage", "/console/playground"} {
			got := b.Get(path)
			got.Want(t, http.StatusOK, `value="`+newest.ID+`"`, "the newest 200; older ones")
			got.Without(t, `value="`+oldest.ID+`"`)
			b.Get(path+"?key="+oldest.ID).Want(t, http.StatusOK, `<option value="`+oldest.ID+`" selected>`+oldest.Name)
			b.Get(path+"?key="+foreign.ID).Without(t, "s business")
		}
		b.Get("/console/find?q=key-200").Want(t, http.StatusSeeOther)
	})
}

// TestExamplesUseAllowedModels checks that the examples for a key use its allowed models.
func TestExamplesUseAllowedModels(t *testing.T) {
	t.Parallel()
	consoletest.Each(t, func(t *testing.T, s *consoletest.Scene) {
		b, k := s.SignedIn("ada@example.com"), s.Key("ada", "any")
		path := "/console/keys/" + k.ID
		b.Get(path).Want(t, http.StatusOK, "Claude Code", "&#34;model&#34;: &#34;sandbox-chat&#34;")
		for model, want := range map[string]string{"sandbox-free": "/v1/chat/completions", "sandbox-video": "/v1/videos/generations"} {
			b.Post(path, "name", "any", "allowed_models", model).Want(t, http.StatusSeeOther)
			page := b.Get(path)
			page.Want(t, http.StatusOK, want, "&#34;model&#34;: &#34;"+model+"&#34;")
			if strings.Contains(page.Body.String(), "&#34;model&#34;: &#34;sandbox-chat&#34;") {
				t.Errorf("the examples for a key with the model %s use sandbox-chat", model)
			}
		}
	})
}

// TestNamelessKeysAreNamedOnce checks that a list shows the hint of a key once, with or without a name.
func TestNamelessKeysAreNamedOnce(t *testing.T) {
	t.Parallel()
	consoletest.Each(t, func(t *testing.T, s *consoletest.Scene) {
		for _, name := range []string{"", "backend"} {
			k := s.Key("ada", name)
			for path, b := range map[string]*consoletest.Browser{"/console/keys": s.SignedIn("ada@example.com"),
				"/console/operator/accounts/" + k.Account + "?view=keys": s.Operator()} {
				page := b.Get(path)
				page.Want(t, http.StatusOK, k.ID)
				row := page.Body.String()[strings.Index(page.Body.String(), k.ID):]
				row, _, _ = strings.Cut(row, "</tr>")
				shown := regexp.MustCompile(`>sk-[^<]+<`).FindAllString(row, -1)
				if len(shown) != 1 || name != "" && !strings.Contains(row, ">"+name+"<") {
					t.Errorf("%s: the row of the key %q has %d hints, want 1 beside the name: %s", path, name, len(shown), row)
				}
			}
		}
	})
}

// TestPublicAddress checks that examples have the public URL if one is set. Otherwise they have the
// address of the reader's request, with https for other hosts than the
// loopback host if the browser sends Sec-Fetch-Site.
func TestPublicAddress(t *testing.T) {
	t.Parallel()
	consoletest.Each(t, func(t *testing.T, s *consoletest.Scene) {
		b, k := s.SignedIn("ada@example.com"), s.Key("ada", "any")
		request := s.Request("ada", http.StatusOK, "")
		unset := s.Console(func(o *console.Options) { o.NoPublicURL, o.PublicURL = true, "http://127.0.0.1:8080" })
		for _, c := range []struct {
			handler    http.Handler
			host, site string
			want       string
		}{
			{b.Handler, "10.1.2.3:8080", "", consoletest.PublicURL},
			{unset, "10.1.2.3:8080", "", "http://10.1.2.3:8080"},
			{unset, "ai.example.com", "none", "https://ai.example.com"},
			{unset, "ai.example.com:8443", "same-origin", "https://ai.example.com:8443"},
			{unset, "localhost:8080", "none", "http://localhost:8080"},
			{unset, "127.0.0.1:8080", "none", "http://127.0.0.1:8080"},
			{unset, "[::1]:8080", "none", "http://[::1]:8080"},
			{unset, `a"b$(id)`, "", "http://127.0.0.1:8080"},
			{unset, "", "", "http://127.0.0.1:8080"},
		} {
			for path, suffix := range map[string]string{"/console/keys/" + k.ID: "/v1", "/console/models?id=sandbox-chat": "/v1",
				"/console/playground": `"`, "/console/requests/" + request: "/v1"} {
				r := httptest.NewRequest(http.MethodGet, path, nil)
				r.Host = c.host
				r.AddCookie(b.Cookies["tollgate"])
				if c.site != "" {
					r.Header.Set("Sec-Fetch-Site", c.site)
				}
				w := httptest.NewRecorder()
				c.handler.ServeHTTP(w, r)
				consoletest.Answer{ResponseRecorder: w}.Want(t, http.StatusOK, c.want+suffix)
			}
		}
		b.Handler = s.Console(func(o *console.Options) { o.NoPublicURL, o.PublicURL, o.Mails = true, "http://127.0.0.1:8080", nil })
		b.Post("/console/settings/users", "email", "carl@example.com", "password", "").Want(t, http.StatusOK,
			"https://console.example/console/link#", "Later you sign in at https://console.example/console as carl@example.com")
	})
}
