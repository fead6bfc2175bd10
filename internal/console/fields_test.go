package console_test

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"

	"tollgate/internal/account"
	"tollgate/internal/console"
	"tollgate/internal/console/consoletest"
)

// takesJSON reports whether a route takes an API request instead of a form.
func takesJSON(route string) bool { return strings.Contains(route, "/playground/") }

// TestFormsRejectUnknownFields checks that a form with a field unknown to its page is rejected, so a
// form cannot name another object. A body of another content type is rejected too.
func TestFormsRejectUnknownFields(t *testing.T) {
	t.Parallel()
	consoletest.Each(t, func(t *testing.T, s *consoletest.Scene) {
		s.AddProvider()
		c := browsers{}
		for _, route := range console.Routes() {
			method, path, _ := strings.Cut(route, " ")
			if method != http.MethodPost || takesJSON(route) || strings.HasPrefix(path, "/console/operator") {
				continue
			}
			body := url.Values{"account": {s.Accounts["bob"].ID}}.Encode()
			if sent := form(route); sent != "" {
				body = sent + "&" + body
			}
			c.signIn(s, "owner")
			b := c.newBrowser(s, "owner")
			got := b.Do(method, objectPath(s, path, "fields"), body)
			// Without a session from the password step, the page redirects before it reads the
			// form.
			if path == "/console/sign-in/code" {
				continue
			}
			got.Want(t, http.StatusBadRequest, "an unknown field")
			b.Headers["Content-Type"] = "text/plain"
			b.Do(method, objectPath(s, path, "text"), form(route)).Want(t, http.StatusBadRequest, "not a form of the console")
		}
	})
}

// TestPagesHideOtherAccounts checks that an address with the id of another account's object, in the
// path or the query, shows nothing of the other account. For an id in a path, the answer equals the
// answer to an unknown id.
func TestPagesHideOtherAccounts(t *testing.T) {
	t.Parallel()
	consoletest.Each(t, func(t *testing.T, s *consoletest.Scene) {
		s.AddProvider()
		key, request, job, delivery := s.Key("ada", "xylophone"), s.Request("ada", 200, ""), s.Job("ada", "a xylophone"), s.Delivery("ada")
		s.Invoice("bob") // so that both have the same pages
		paper := s.Invoice("ada")
		ids := []string{key.ID, key.Hint, request, job, delivery, s.Accounts["ada"].ID, s.Users["ada@example.com"].ID, paper.ID, paper.Topup,
			paper.Name, paper.Payment}
		queries := map[string][]string{"q": ids, "id": ids, "after": ids, "key": {key.ID}, "again": {job}, "account": {s.Accounts["ada"].ID}}
		b := s.Session(account.UserSession, "bob@example.com")
		check := func(path, sent string) (page string) {
			t.Helper()
			got := b.Get(path)
			body := got.Body.String()
			for _, foreign := range append(ids, "xylophone", "ada@example.com") {
				if foreign != sent && strings.Contains(body, foreign) {
					t.Errorf("%s shows %s of another account", path, foreign)
				}
			}
			if got.Code >= http.StatusInternalServerError {
				t.Errorf("%s: status %d, want no server error", path, got.Code)
			}
			body = strings.NewReplacer(url.PathEscape(sent), "ID", sent, "ID", got.Header().Get("X-Request-Id"), "REQUEST").Replace(body)
			return strconv.Itoa(got.Code) + " " + body
		}
		for _, path := range pagePaths() {
			if strings.HasPrefix(path, "/console/operator") {
				continue
			}
			if strings.Contains(path, "{id}") {
				for _, id := range ids {
					pathOf := func(id string) string { return strings.Replace(path, "{id}", url.PathEscape(id), 1) }
					unknownID := id[:len(id)-2] + strings.Map(func(r rune) rune { return r ^ 1 }, id[len(id)-2:])
					if foreign, unknown := check(pathOf(id), id), check(pathOf(unknownID), unknownID); foreign != unknown {
						t.Errorf("%s: the answer for another account's id is %s, for an unknown id %s", pathOf(id), foreign, unknown)
					}
				}
				continue
			}
			for name, sent := range queries {
				for _, id := range sent {
					check(path+"?"+url.Values{name: {id}}.Encode(), id)
				}
			}
		}
	})
}
