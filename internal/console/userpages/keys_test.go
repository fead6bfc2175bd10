package userpages_test

import (
	"net/http"
	"regexp"
	"strings"
	"testing"

	"tollgate/internal/account"
	"tollgate/internal/console/consoletest"
	"tollgate/internal/money"
	"tollgate/internal/store"
)

func TestKeyLife(t *testing.T) {
	t.Parallel()
	consoletest.Each(t, func(t *testing.T, s *consoletest.Scene) {
		b := s.SignedIn("ada@example.com")
		b.Get("/console/keys").Want(t, http.StatusOK, "No keys yet", "/console/keys/new")
		once := b.Get("/console/keys/new").Once(t)
		fields := []string{"name", "back<b>end", "rpm", "60", "daily_budget_usd", "$0.5", "total_limit_usd", "", "allowed_models", "sandbox-chat",
			"allowed_ips", "192.0.2.0/24\r\n2001:db8::1", "once", once}

		wrong := append([]string{}, fields...)
		wrong[3], wrong[5] = "sixty", "five"
		b.Post("/console/keys/new", wrong...).Want(t, http.StatusUnprocessableEntity, "is a whole number from 1", `value="sixty"`,
			`value="back&lt;b&gt;end"`, `value="sandbox-chat" checked`, "192.0.2.0/24")

		got := b.Post("/console/keys/new", fields...)
		got.Want(t, http.StatusOK, "Copy this key now.", "curl ", "Claude Code", "Codex", "Cline", consoletest.PublicURL+"/v1")
		shown := got.Secrets()
		if len(shown) < 7 {
			t.Errorf("the value is shown %d times", len(shown))
		}
		again := b.Post("/console/keys/new", fields...)
		again.Want(t, http.StatusOK, "sent already")
		if len(again.Secrets()) > 0 {
			t.Error("a reload shows a value")
		}
		var keys []account.Key
		s.Update(func(tx *store.Tx) (err error) {
			keys, _, err = account.ListKeysTx(tx, s.Accounts["ada"].ID, "", 10)
			return err
		})
		if len(keys) != 1 {
			t.Fatalf("%d keys", len(keys))
		}
		k := keys[0]
		l := k.Ledger.Limits
		if k.Name != "back<b>end" || *l.RPM != 60 || *l.DailyBudget != money.USD/2 || l.TotalLimit != nil || len(k.AllowedIPs) != 2 ||
			len(k.AllowedModels) != 1 || !strings.HasPrefix(shown[0], k.Hint[:7]) {
			t.Errorf("made %+v", k)
		}
		for _, page := range []string{"/console/keys", "/console/keys/" + k.ID, "/console"} {
			if len(b.Get(page).Secrets()) > 0 {
				t.Errorf("%s shows the value", page)
			}
		}
		b.Get("/console/keys").Want(t, http.StatusOK, "back&lt;b&gt;end", "60/min, $0.50/day, 1 model, 2 addresses", "never")
		b.Get("/console/keys/"+k.ID).Want(t, http.StatusOK, `value="0.5"`, `value="sandbox-chat" checked`, "2001:db8::1")

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

// TestAnothersKeyIsNotThere: an unknown id and another account's are the same
// answer.
func TestAnothersKeyIsNotThere(t *testing.T) {
	t.Parallel()
	consoletest.Each(t, func(t *testing.T, s *consoletest.Scene) {
		b, id := s.SignedIn("bob@example.com"), s.Key("ada", "ada's").ID
		unknown := id[:len(id)-1] + "0"
		if id == unknown {
			unknown = id[:len(id)-1] + "1"
		}
		request := regexp.MustCompile(`req_[0-9a-z]+`)
		same := func(got, not string) bool {
			got, not = strings.ReplaceAll(got, id, "ID"), strings.ReplaceAll(not, unknown, "ID")
			return request.ReplaceAllString(got, "") == request.ReplaceAllString(not, "")
		}
		for _, path := range []string{"", "/arrival"} {
			got, not := b.Get("/console/keys/"+id+path), b.Get("/console/keys/"+unknown+path)
			if got.Code != http.StatusNotFound || not.Code != http.StatusNotFound || !same(got.Body.String(), not.Body.String()) {
				t.Errorf("%s: %d %s, unknown: %d %s", path, got.Code, got.Body, not.Code, not.Body)
			}
		}
	})
}

func TestLongListsHavePages(t *testing.T) {
	t.Parallel()
	consoletest.Each(t, func(t *testing.T, s *consoletest.Scene) {
		for range 51 {
			s.Key("ada", "many")
		}
		b := s.SignedIn("ada@example.com")
		next := regexp.MustCompile(`href="(/console/keys\?after=key_[^"]+)"`).FindStringSubmatch(b.Get("/console/keys").Body.String())
		if next == nil {
			t.Fatal("no next page")
		}
		got := b.Get(next[1])
		got.Want(t, http.StatusOK, "First page")
		if n := strings.Count(got.Body.String(), "rowlink"); n != 1 {
			t.Errorf("the next page has %d keys", n)
		}
	})
}

// TestNamelessKeysAreNamedOnce: a key without a name stands in the list by its hint, once.
func TestNamelessKeysAreNamedOnce(t *testing.T) {
	t.Parallel()
	consoletest.Each(t, func(t *testing.T, s *consoletest.Scene) {
		for name, times := range map[string]int{"": 1, "backend": 1} {
			k := s.Key("ada", name)
			for path, b := range map[string]*consoletest.Browser{"/console/keys": s.SignedIn("ada@example.com"),
				"/console/operator/accounts/" + k.Account + "?view=keys": s.Operator()} {
				page := b.Get(path)
				page.Want(t, http.StatusOK, k.ID)
				row := page.Body.String()[strings.Index(page.Body.String(), k.ID):]
				row, _, _ = strings.Cut(row, "</tr>")
				shown := regexp.MustCompile(`>sk-[^<]+<`).FindAllString(row, -1)
				if len(shown) != times || name != "" && !strings.Contains(row, ">"+name+"<") {
					t.Errorf("%s has the key %q as %s", path, name, row)
				}
			}
		}
	})
}
