package admin

import (
	"net/url"
	"testing"

	"tollgate/internal/fault"
)

// TestFindAccounts checks that a search finds accounts by a part of the name, of the contact address
// or of a user's email, and by the whole id.
func TestFindAccounts(t *testing.T) {
	t.Parallel()
	eachDB(t, func(t *testing.T, c *caller) {
		ada := c.ok("POST", "/accounts", `{"name":"Ada & Söhne 100%"}`).text("id")
		bob := c.ok("POST", "/accounts", `{"name":"bob","email":"Bob@example.com"}`).text("id")
		c.ok("POST", "/accounts/"+ada+"/users", `{"email":"purchasing@ada.example","password":"correct horse"}`)
		for q, want := range map[string][]string{
			"ADA & s": {ada}, "0%": {ada}, "Purchasing@": {ada}, "bob": {bob}, "BOB@EXAMPLE": {bob}, ada: {ada}, " " + bob + " ": {bob},
			"example": {ada, bob}, "nobody": nil, "_": nil, ada[:len(ada)-1]: nil, "": {ada, bob},
		} {
			results, more := c.ok("GET", "/accounts?q="+url.QueryEscape(q), "").list()
			ids := map[any]bool{}
			for _, a := range results {
				ids[a["id"]] = true
			}
			if len(results) != len(want) || more {
				t.Errorf("the search for %q found %v with more %v, want %v", q, results, more, want)
			}
			for _, id := range want {
				if !ids[id] {
					t.Errorf("the search for %q did not find %s", q, id)
				}
			}
		}
		first, more := c.ok("GET", "/accounts?q=b&limit=1", "").list()
		if len(first) != 1 || first[0]["id"] != bob || more {
			t.Errorf("the page of one account is %v with more %v, want only %s", first, more, bob)
		}
	})
}

// TestFindKeys checks that a search finds a key by its hint or secret, and finds no deleted key.
func TestFindKeys(t *testing.T) {
	t.Parallel()
	eachDB(t, func(t *testing.T, c *caller) {
		owner := c.ok("POST", "/accounts", `{"name":"a"}`).text("id")
		k := c.ok("POST", "/accounts/"+owner+"/keys", `{"name":"one"}`)
		c.ok("POST", "/accounts/"+owner+"/keys", `{"name":"other"}`)
		hint := k.text("hint")
		for _, q := range []string{hint, hint[:7] + "…" + hint[10:], k.text("key")} {
			results, _ := c.ok("GET", "/keys?hint="+url.QueryEscape(q), "").list()
			if len(results) != 1 || results[0]["id"] != k.text("id") || results[0]["account"] != owner {
				t.Errorf("the search for %q found %v, want key %s", q, results, k.text("id"))
			}
		}
		if results, _ := c.ok("GET", "/keys?hint=sk-0000...0000", "").list(); len(results) != 0 {
			t.Errorf("the search for an unknown hint found %v", results)
		}
		c.do("GET", "/keys", "").wantFault(fault.InvalidRequest, "hint")
		c.ok("DELETE", "/keys/"+k.text("id"), "")
		if results, _ := c.ok("GET", "/keys?hint="+hint, "").list(); len(results) != 0 {
			t.Errorf("the search for the hint of a deleted key found %v", results)
		}
	})
}
