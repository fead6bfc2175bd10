package console_test

import (
	"net/http"
	"regexp"
	"strings"
	"testing"

	"tollgate/internal/account"
	"tollgate/internal/money"
	"tollgate/internal/store"
)

var (
	keyValue  = regexp.MustCompile(`sk-[0-9A-Za-z]{43}`)
	onceValue = regexp.MustCompile(`name="once" value="([^"]+)"`)
)

func TestKeyLife(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *scene) {
		b := s.signedIn("ada@example.com")
		want(t, b.get("/console/keys"), http.StatusOK, "No keys yet", "/console/keys/new")
		once := onceValue.FindStringSubmatch(b.get("/console/keys/new").Body.String())[1]
		fields := []string{"name", "back<b>end", "rpm", "60", "daily_budget_usd", "$0.5", "total_limit_usd", "", "allowed_models", "sandbox-chat",
			"allowed_ips", "192.0.2.0/24\r\n2001:db8::1", "once", once}

		wrong := append([]string{}, fields...)
		wrong[3], wrong[5] = "sixty", "five"
		want(t, b.post("/console/keys/new", wrong...), http.StatusUnprocessableEntity, "is a whole number from 1", `value="sixty"`,
			`value="back&lt;b&gt;end"`, `value="sandbox-chat" checked`, "192.0.2.0/24")

		got := b.post("/console/keys/new", fields...)
		want(t, got, http.StatusOK, "Copy this key now.", "curl ", "Claude Code", "Codex", "Cline", publicURL+"/v1")
		shown := keyValue.FindAllString(got.Body.String(), -1)
		if len(shown) < 7 {
			t.Errorf("the value is shown %d times", len(shown))
		}
		again := b.post("/console/keys/new", fields...)
		want(t, again, http.StatusOK, "sent already")
		if keyValue.MatchString(again.Body.String()) {
			t.Error("a reload shows a value")
		}
		var keys []account.Key
		s.update(func(tx *store.Tx) (err error) {
			keys, _, err = account.ListKeysTx(tx, s.accounts["ada"].ID, "", 10)
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
			if keyValue.MatchString(b.get(page).Body.String()) {
				t.Errorf("%s shows the value", page)
			}
		}
		want(t, b.get("/console/keys"), http.StatusOK, "back&lt;b&gt;end", "60/min, $0.50/day, 1 model, 2 addresses", "never")
		want(t, b.get("/console/keys/"+k.ID), http.StatusOK, `value="0.5"`, `value="sandbox-chat" checked`, "2001:db8::1")

		want(t, b.post("/console/keys/"+k.ID, "name", "backend", "rpm", "0"), http.StatusUnprocessableEntity, "whole number")
		want(t, b.post("/console/keys/"+k.ID, "name", "backend", "account", "acct_x"), http.StatusBadRequest)
		want(t, b.post("/console/keys/"+k.ID, "name", "backend"), http.StatusSeeOther, "done=saved")
		want(t, b.post("/console/keys/"+k.ID+"/disable"), http.StatusSeeOther)
		want(t, b.get("/console/keys/"+k.ID+"?done=disabled"), http.StatusOK, "it answers 401", "/enable")
		want(t, b.post("/console/keys/"+k.ID+"/enable"), http.StatusSeeOther)

		arrival := b.get("/console/keys/" + k.ID + "/arrival")
		want(t, arrival, http.StatusOK, "Waiting for the first request")
		b.headers["If-None-Match"] = arrival.Header().Get("ETag")
		want(t, b.get("/console/keys/"+k.ID+"/arrival"), http.StatusNotModified)
		delete(b.headers, "If-None-Match")

		want(t, b.get("/console/keys/"+k.ID+"?confirm=delete"), http.StatusOK, `<dialog id="delete" open`)
		want(t, b.post("/console/keys/"+k.ID+"/delete", "typed", "back"), http.StatusUnprocessableEntity, "was not deleted")
		want(t, b.post("/console/keys/"+k.ID+"/delete", "typed", "backend"), http.StatusSeeOther, "done=deleted")
		want(t, b.get("/console/keys/"+k.ID), http.StatusNotFound, "Not found")
	})
}

// TestAnothersKeyIsNotThere: an unknown id and another account's are the same
// answer.
func TestAnothersKeyIsNotThere(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *scene) {
		b, id := s.signedIn("bob@example.com"), s.key("ada", "ada's").ID
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
			got, not := b.get("/console/keys/"+id+path), b.get("/console/keys/"+unknown+path)
			if got.Code != http.StatusNotFound || not.Code != http.StatusNotFound || !same(got.Body.String(), not.Body.String()) {
				t.Errorf("%s: %d %s, unknown: %d %s", path, got.Code, got.Body, not.Code, not.Body)
			}
		}
	})
}

func TestLongListsHavePages(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *scene) {
		for range 51 {
			s.key("ada", "many")
		}
		b := s.signedIn("ada@example.com")
		next := regexp.MustCompile(`href="(/console/keys\?after=key_[^"]+)"`).FindStringSubmatch(b.get("/console/keys").Body.String())
		if next == nil {
			t.Fatal("no next page")
		}
		got := b.get(next[1])
		want(t, got, http.StatusOK, "First page")
		if n := strings.Count(got.Body.String(), "rowlink"); n != 1 {
			t.Errorf("the next page has %d keys", n)
		}
	})
}
