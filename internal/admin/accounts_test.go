package admin

import (
	"slices"
	"strings"
	"testing"

	"tollgate/internal/fault"
)

func TestAccounts(t *testing.T) {
	t.Parallel()
	eachDB(t, func(t *testing.T, c *caller) {
		a := c.ok("POST", "/accounts", `{"name":"Ada","email":"ADA@example.com","password":"correct horse","overdraft_floor_usd":"-2.5"}`)
		a.wantNames("id", "name", "email", "disabled", "balance_usd", "held_usd", "over_hold_usd", "overdraft_floor_usd", "price_factor",
			"prices", "test", "created")
		a.want(`{"name":"Ada","email":"ada@example.com","disabled":false,"balance_usd":0,"held_usd":0,"overdraft_floor_usd":-2.5}`)
		id := a.text("id")
		if !strings.HasPrefix(id, "acct_") {
			t.Errorf("the id is %q, want acct_…", id)
		}
		c.ok("GET", "/accounts/"+id, "").want(a.body)

		c.ok("PATCH", "/accounts/"+id, `{"name":"Grace","overdraft_floor_usd":0}`).want(
			`{"name":"Grace","overdraft_floor_usd":0,"disabled":false}`)
		c.ok("PATCH", "/accounts/"+id, `{"disabled":true,"name":null}`).want(`{"name":"Grace","disabled":true}`)
		c.ok("POST", "/accounts", `{"name":"no mail"}`).want(`{"email":null}`)

		users, _ := c.ok("GET", "/accounts/"+id+"/users", "").list()
		if len(users) != 1 || users[0]["email"] != "ada@example.com" || users[0]["operator"] != false {
			t.Errorf("the users are %v, want ada@example.com, no operator", users)
		}
	})
}

// TestAccountEmail checks changes of the contact address, their log rows, and searches. The account's
// user must keep the old address.
func TestAccountEmail(t *testing.T) {
	t.Parallel()
	eachDB(t, func(t *testing.T, c *caller) {
		id := c.ok("POST", "/accounts", `{"name":"Acme","email":"old@example.com","password":"correct horse"}`).text("id")
		otherID := c.ok("POST", "/accounts", `{"name":"b","email":"b@example.com"}`).text("id")
		path := "/accounts/" + id
		c.ok("PATCH", path, `{"email":" New@Example.com "}`).want(`{"name":"Acme","email":"new@example.com"}`)
		c.ok("PATCH", path, `{"email":null,"name":"Acme Ltd"}`).want(`{"name":"Acme Ltd","email":"new@example.com"}`)
		checkSearch := func(q string, want ...string) {
			t.Helper()
			list, _ := c.ok("GET", "/accounts?q="+q, "").list()
			var got []string
			for _, a := range list {
				got = append(got, a["id"].(string))
			}
			slices.Sort(got)
			slices.Sort(want)
			if !slices.Equal(got, want) {
				t.Errorf("the search for %s found %v, want %v", q, got, want)
			}
		}
		checkSearch("NEW@example", id)
		checkSearch("old@example", id)                                                                         // matches the email of a user
		c.ok("PATCH", "/accounts/"+otherID, `{"email":"new@example.com"}`).want(`{"email":"new@example.com"}`) // may be the same
		checkSearch("new@example", id, otherID)
		users, _ := c.ok("GET", path+"/users", "").list()
		if len(users) != 1 || users[0]["email"] != "old@example.com" {
			t.Errorf("the users are %v, want old@example.com", users)
		}
		c.ok("PATCH", path, `{"email":""}`).want(`{"email":null}`)
		c.ok("GET", path, "").want(`{"email":null}`)
		checkSearch("new@example", otherID)
		log, _ := c.ok("GET", "/log?act=account.change&account="+id, "").list()
		if len(log) != 3 {
			t.Fatalf("the log has %v, want 3 changes", log)
		}
		for i, want := range [][2]string{{"new@example.com", ""}, {"", ""}, {"old@example.com", "new@example.com"}} {
			before, after := log[i]["before"].(map[string]any), log[i]["after"].(map[string]any)
			oldEmail, _ := before["email"].(string)
			newEmail, _ := after["email"].(string)
			if oldEmail != want[0] || newEmail != want[1] {
				t.Errorf("row %d of the log is %v, %v, want the emails %q", i, before, after, want)
			}
		}
	})
}

// TestAccountPrices checks that valid prices replace the old prices and are logged, and that null and
// invalid prices change nothing. It also checks the member test.
func TestAccountPrices(t *testing.T) {
	t.Parallel()
	eachDB(t, func(t *testing.T, c *caller) {
		a := c.ok("POST", "/accounts", `{"name":"a","price_factor":"0.9","prices":{"swift":1.333333}}`)
		a.want(`{"price_factor":0.9,"prices":{"swift":1.333333}}`)
		id := a.text("id")
		c.ok("PATCH", "/accounts/"+id, `{"price_factor":1.3}`).want(`{"price_factor":1.3,"prices":{"swift":1.333333}}`)
		c.ok("PATCH", "/accounts/"+id, `{"price_factor":null,"prices":null}`).want(`{"price_factor":1.3,"prices":{"swift":1.333333}}`)
		c.ok("PATCH", "/accounts/"+id, `{"prices":{"easel":"0.5"}}`).want(`{"price_factor":1.3,"prices":{"easel":0.5}}`)
		c.ok("PATCH", "/accounts/"+id, `{"prices":{}}`).want(`{"price_factor":1.3,"prices":{}}`)
		log := c.ok("GET", "/log?account="+id, "").body
		if !strings.Contains(log, `"price_factor":1.3`) || !strings.Contains(log, `"easel":0.5`) {
			t.Errorf("the log is %s, want the changes of both prices", log)
		}
		for field, values := range map[string][]string{
			"price_factor": {`0`, `-1`, `1000.000001`, `0.0000001`, `"x"`, `true`, `{}`, `1e400`},
			"prices": {`1`, `[]`, `{"m":0}`, `{"m":null}`, `{"m":"x"}`, `{"m":-1}`, `{"m":1001}`, `{"":1}`, `{"a b":1}`,
				`{"m":1,"m":2}`, `{"m":{"input":1}}`},
		} {
			for _, value := range values {
				c.do("PATCH", "/accounts/"+id, `{"`+field+`":`+value+`}`).wantFault(fault.InvalidRequest, field)
				c.do("POST", "/accounts", `{"name":"b","`+field+`":`+value+`}`).wantFault(fault.InvalidRequest, field)
			}
		}
		c.ok("GET", "/accounts/"+id, "").want(`{"price_factor":1.3,"prices":{}}`)
		c.ok("POST", "/accounts", `{"name":"t","test":true}`).want(`{"test":true}`)
		c.ok("PATCH", "/accounts/"+id, `{"test":true}`).want(`{"test":true}`)
		c.ok("PATCH", "/accounts/"+id, `{"test":null,"name":"still a test"}`).want(`{"test":true}`)
		c.ok("PATCH", "/accounts/"+id, `{"test":false}`).want(`{"test":false}`)
	})
}

func TestAccountFaults(t *testing.T) {
	t.Parallel()
	eachDB(t, func(t *testing.T, c *caller) {
		id := c.ok("POST", "/accounts", `{"name":"a"}`).text("id")
		c.ok("POST", "/accounts/"+id+"/users", `{"email":"taken@example.com","password":"12345678"}`)
		for body, param := range map[string]string{
			`{}`:                                 "name",
			`{"name":""}`:                        "name",
			`{"name":null}`:                      "name",
			`{"name":5}`:                         "name",
			`{"name":["a"]}`:                     "name",
			`{"name":"a","email":"x"}`:           "email",
			`{"name":"a","email":5}`:             "email",
			`{"name":"a","password":"12345678"}`: "email",
			`{"name":"a","email":"a@example.com","password":"short"}`:                           "password",
			`{"name":"a","email":"a@example.com","password":""}`:                                "password",
			`{"name":"a","email":"Taken@example.com","password":"12345678"}`:                    "email",
			`{"name":"a","overdraft_floor_usd":1}`:                                              "overdraft_floor_usd",
			`{"name":"a","overdraft_floor_usd":"x"}`:                                            "overdraft_floor_usd",
			`{"name":"a","overdraft_floor_usd":true}`:                                           "overdraft_floor_usd",
			`{"name":"a","overdraft_floor_usd":-0.0000000001}`:                                  "overdraft_floor_usd",
			`{"name":"a","overdraft_floor_usd":-1e30}`:                                          "overdraft_floor_usd",
			`{"name":"a","floor":1}`:                                                            "floor",
			`{"name":"a","Name":"b"}`:                                                           "Name",
			`{"name":"a","disabled":true}`:                                                      "disabled",
			`{"name":"` + strings.Repeat("x", 201) + `"}`:                                       "name",
			`{"name":"a\u0000b"}`:                                                               "name",
			`{"name":"a","email":"` + strings.Repeat("x", 300) + `@e.x","password":"12345678"}`: "email",
		} {
			c.do("POST", "/accounts", body).wantFault(fault.InvalidRequest, param)
		}
		for body, param := range map[string]string{
			`{"name":""}`: "name", `{"name":1}`: "name", `{"disabled":"true"}`: "disabled", `{"disabled":1}`: "disabled",
			`{"overdraft_floor_usd":0.5}`: "overdraft_floor_usd", `{"balance_usd":5}`: "balance_usd",
			`{"email":"a"}`: "email", `{"email":5}`: "email", `{"email":"a\u200b@example.com"}`: "email", `{"password":"12345678"}`: "password",
		} {
			c.do("PATCH", "/accounts/"+id, body).wantFault(fault.InvalidRequest, param)
		}
		if list, _ := c.ok("GET", "/accounts", "").list(); len(list) != 1 {
			t.Errorf("after the rejected requests there are %d accounts, want 1", len(list))
		}
		c.ok("POST", "/accounts", `{"name":"a"}`, "Content-Encoding", "Identity")
	})
}

func TestInvalidBodies(t *testing.T) {
	t.Parallel()
	eachDB(t, func(t *testing.T, c *caller) {
		for body, code := range map[string]fault.Code{
			"":                      fault.InvalidJSON,
			"   ":                   fault.InvalidJSON,
			"{":                     fault.InvalidJSON,
			`{"name":"a"} x`:        fault.InvalidJSON,
			`{"name":'a'}`:          fault.InvalidJSON,
			`{"name":"a",}`:         fault.InvalidJSON,
			"{\"name\":\"\xff\"}":   fault.InvalidEncoding,
			`[]`:                    fault.InvalidRequest,
			`"a"`:                   fault.InvalidRequest,
			`null`:                  fault.InvalidRequest,
			`5`:                     fault.InvalidRequest,
			"\xef\xbb\xbf{}":        fault.InvalidJSON,
			`{"name":"a"}{"a":"b"}`: fault.InvalidJSON,
		} {
			c.do("POST", "/accounts", body).wantFault(code, "")
		}
		c.do("POST", "/accounts", `{"name":"a","name":"b"}`).wantFault(fault.InvalidJSON, "name")
		c.do("POST", "/accounts", `{"name":"a","n\u0061me":"b"}`).wantFault(fault.InvalidJSON, "name")
		c.do("POST", "/accounts", `{"name":"`+strings.Repeat("x", maxBody)+`"}`).wantFault(fault.RequestTooLarge, "")
		c.do("POST", "/accounts", `{"name":"a"}`, "Content-Encoding", "gzip").wantFault(fault.InvalidEncoding, "")
		if list, _ := c.ok("GET", "/accounts", "").list(); len(list) != 0 {
			t.Errorf("after the rejected requests there are %d accounts, want 0", len(list))
		}
	})
}

func TestPages(t *testing.T) {
	t.Parallel()
	eachDB(t, func(t *testing.T, c *caller) {
		var ids []string
		for range 3 {
			ids = append(ids, c.ok("POST", "/accounts", `{"name":"a"}`).text("id"))
		}
		slices.Sort(ids)
		first, more := c.ok("GET", "/accounts?limit=2", "").list()
		if len(first) != 2 || !more || first[0]["id"] != ids[0] || first[1]["id"] != ids[1] {
			t.Errorf("the first page is %v with more %v, want the first 2 of %v", first, more, ids)
		}
		rest, more := c.ok("GET", "/accounts?limit=2&after="+ids[1], "").list()
		if len(rest) != 1 || more || rest[0]["id"] != ids[2] {
			t.Errorf("the second page is %v with more %v, want only %s", rest, more, ids[2])
		}
		if r := c.ok("GET", "/accounts?after=zzz", ""); !strings.Contains(r.body, `"data":[]`) {
			t.Errorf(`an empty page is %s, want "data":[]`, r.body)
		}
		for query, param := range map[string]string{
			"limit=0": "limit", "limit=201": "limit", "limit=x": "limit", "limit=": "limit", "limit=-1": "limit", "limit=1.5": "limit",
			"limit=1&limit=2": "limit", "after=%00": "after", "after=%ff": "after", "lmit=2": "lmit", "account=x": "account",
		} {
			c.do("GET", "/accounts?"+query, "").wantFault(fault.InvalidRequest, param)
		}
		c.do("GET", "/accounts?limit=%zz", "").wantFault(fault.InvalidRequest, "")
		c.ok("GET", "/accounts?limit=200", "")
	})
}

func TestUsers(t *testing.T) {
	t.Parallel()
	eachDB(t, func(t *testing.T, c *caller) {
		account := c.ok("POST", "/accounts", `{"name":"a"}`).text("id")
		u := c.ok("POST", "/accounts/"+account+"/users", `{"email":"Ada@Example.com","password":"correct horse","operator":true}`)
		u.wantNames("id", "account", "email", "disabled", "operator", "role", "has_password", "second_factor", "created")
		u.want(`{"account":"` + account + `","email":"ada@example.com","disabled":false,"operator":true,"has_password":true,` +
			`"second_factor":false}`)
		c.ok("POST", "/accounts/"+account+"/users", `{"email":"boss@example.com","role":"owner"}`) // one owner must stay
		id := u.text("id")
		if !strings.HasPrefix(id, "user_") || strings.Contains(u.body, "argon2") {
			t.Errorf("the new user is %s, want an id user_… and no password hash", u.body)
		}
		c.ok("PATCH", "/users/"+id, `{"email":"new@example.com","password":"another horse","disabled":true,"operator":false}`).
			want(`{"email":"new@example.com","disabled":true,"operator":false}`)
		c.ok("PATCH", "/users/"+id, `{}`).want(`{"email":"new@example.com","disabled":true}`)
		c.ok("GET", "/users/"+id, "").want(`{"email":"new@example.com"}`)
		for body, param := range map[string]string{
			`{"password":"12345678"}`:                                      "email",
			`{"email":"b@example.com","password":""}`:                      "password",
			`{"email":"NEW@example.com","password":"12345678"}`:            "email",
			`{"email":"b@example.com","password":"1234567"}`:               "password",
			`{"email":"b@example.com","password":12345678}`:                "password",
			`{"email":"b@example.com","password":"12345678","operator":1}`: "operator",
			`{"email":"b@example.com","password":"12345678","admin":true}`: "admin",
			`{"email":"b@example.com","role":"root"}`:                      "role",
			`{"email":"b@example.com","role":1}`:                           "role",
			`{"email":"b@example.com","role":"support","operator":true}`:   "role",
			`{"email":"b","password":"12345678"}`:                          "email",
		} {
			c.do("POST", "/accounts/"+account+"/users", body).wantFault(fault.InvalidRequest, param)
		}
		c.do("PATCH", "/users/"+id, `{"email":"b"}`).wantFault(fault.InvalidRequest, "email")
		c.do("PATCH", "/users/"+id, `{"password":"b"}`).wantFault(fault.InvalidRequest, "password")
		c.ok("DELETE", "/users/"+id, "").want(`{"id":"` + id + `","deleted":true}`)
		c.do("DELETE", "/users/"+id, "").wantFault(fault.NotFound, "")
		if list, _ := c.ok("GET", "/accounts/"+account+"/users", "").list(); len(list) != 1 {
			t.Errorf("after the deletion the users are %v, want the other owner", list)
		}
	})
}
