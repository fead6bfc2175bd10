package admin

import (
	"net/url"
	"testing"

	"tollgate/internal/fault"
)

// TestFindAccounts finds accounts by a part of the name, by an email of a user, and
// by the id.
func TestFindAccounts(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, c *caller) {
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
				t.Errorf("%q finds %v", q, results)
			}
			for _, id := range want {
				if !ids[id] {
					t.Errorf("%q does not find %s", q, id)
				}
			}
		}
		first, more := c.ok("GET", "/accounts?q=b&limit=1", "").list()
		if len(first) != 1 || first[0]["id"] != bob || more {
			t.Errorf("a page of one account is %v, more %v", first, more)
		}
	})
}

// TestFindKeys finds keys by the hint that their owners see.
func TestFindKeys(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, c *caller) {
		owner := c.ok("POST", "/accounts", `{"name":"a"}`).text("id")
		k := c.ok("POST", "/accounts/"+owner+"/keys", `{"name":"one"}`)
		c.ok("POST", "/accounts/"+owner+"/keys", `{"name":"other"}`)
		hint := k.text("hint")
		for _, q := range []string{hint, hint[:7] + "…" + hint[10:], k.text("key")} {
			results, _ := c.ok("GET", "/keys?hint="+url.QueryEscape(q), "").list()
			if len(results) != 1 || results[0]["id"] != k.text("id") || results[0]["account"] != owner {
				t.Errorf("%q finds %v", q, results)
			}
		}
		if results, _ := c.ok("GET", "/keys?hint=sk-0000...0000", "").list(); len(results) != 0 {
			t.Errorf("found %v", results)
		}
		c.do("GET", "/keys", "").wantFault(fault.InvalidRequest, "hint")
		c.ok("DELETE", "/keys/"+k.text("id"), "")
		if results, _ := c.ok("GET", "/keys?hint="+hint, "").list(); len(results) != 0 {
			t.Errorf("a deleted key is found: %v", results)
		}
	})
}
