package admin

import (
	"strings"
	"testing"

	"tollgate/internal/fault"
)

func TestKeys(t *testing.T) {
	t.Parallel()
	eachDB(t, func(t *testing.T, c *caller) {
		account := c.ok("POST", "/accounts", `{"name":"a"}`).text("id")
		k := c.ok("POST", "/accounts/"+account+"/keys", `{"name":"ci","rpm":60,"daily_budget_usd":5,"total_limit_usd":"50.000000001",
			"allowed_models":["swift-1"],"allowed_ips":["192.0.2.7","::ffff:10.1.2.3/104"]}`)
		fields := []string{"id", "account", "name", "hint", "disabled", "rpm", "daily_budget_usd", "total_limit_usd", "allowed_models",
			"allowed_ips", "wait_for_pictures", "spent_today_usd", "spent_usd", "held_usd", "over_hold_usd", "last_used", "created"}
		k.wantNames(append(fields, "key")...)
		k.want(`{"account":"` + account + `","name":"ci","disabled":false,"rpm":60,"daily_budget_usd":5,"total_limit_usd":50.000000001,
			"allowed_models":["swift-1"],"allowed_ips":["192.0.2.7","10.0.0.0/8"],"spent_today_usd":0,"spent_usd":0,"held_usd":0,"last_used":null}`)
		id, secret := k.text("id"), k.text("key")
		if !strings.HasPrefix(id, "key_") || !strings.HasPrefix(secret, "sk-") || !c.accepts(secret) {
			t.Errorf("the new key is %s, want an id key_… and a valid secret sk-…", k.body)
		}
		got := c.ok("GET", "/keys/"+id, "")
		got.wantNames(fields...)
		list := c.ok("GET", "/accounts/"+account+"/keys", "")
		if elements, _ := list.list(); len(elements) != 1 || strings.Contains(list.body+got.body, secret[8:40]) {
			t.Errorf("the list is %s, want one key without its secret", list.body)
		}

		// null clears a limit; missing members stay.
		c.ok("PATCH", "/keys/"+id, `{"rpm":null,"allowed_models":null,"daily_budget_usd":0.5}`).
			want(`{"name":"ci","rpm":null,"allowed_models":null,"daily_budget_usd":0.5,"total_limit_usd":50.000000001,"allowed_ips":["192.0.2.7",` +
				`"10.0.0.0/8"]}`)
		c.ok("PATCH", "/keys/"+id, `{"daily_budget_usd":null,"total_limit_usd":null,"allowed_ips":null,"name":"","disabled":null}`).
			want(`{"name":"","daily_budget_usd":null,"total_limit_usd":null,"allowed_ips":null,"disabled":false}`)
		c.ok("POST", "/accounts/"+account+"/keys", `{}`).want(
			`{"name":"","rpm":null,"daily_budget_usd":null,"total_limit_usd":null,"allowed_models":null,"allowed_ips":null}`)
		waits := c.ok("POST", "/accounts/"+account+"/keys", `{"wait_for_pictures":true}`)
		waits.want(`{"wait_for_pictures":true}`)
		c.ok("PATCH", "/keys/"+waits.text("id"), `{"name":"pictures","wait_for_pictures":null}`).want(`{"wait_for_pictures":true}`)
		c.ok("PATCH", "/keys/"+waits.text("id"), `{"wait_for_pictures":false}`).want(`{"name":"pictures","wait_for_pictures":false}`)
		c.ok("POST", "/accounts/"+account+"/keys", `{"rpm":null,"daily_budget_usd":0}`).want(`{"rpm":null,"daily_budget_usd":0}`)
	})
}

// TestKeysWithUnknownModels checks that a key may list models that are not in the catalog yet, and
// that the answer warns of each such model.
func TestKeysWithUnknownModels(t *testing.T) {
	t.Parallel()
	eachDB(t, func(t *testing.T, c *caller) {
		account := c.ok("POST", "/accounts", `{"name":"a"}`).text("id")
		keys := "/accounts/" + account + "/keys"
		wantNoWarnings := func(r reply) {
			t.Helper()
			if warnings, ok := r.members()["warnings"]; ok {
				t.Errorf("the answer has the warnings %v, want none: %s", warnings, r.body)
			}
		}
		warning := func(model string) string {
			return "allowed_models: the catalog has no model " + model + ", so the key cannot use it until the catalog has it"
		}
		wantNoWarnings(c.ok("POST", keys, `{"allowed_models":["swift-9"]}`)) // there is no catalog yet
		c.ok("PUT", "/catalog", document("0.25"))

		created := c.ok("POST", keys, `{"allowed_models":["swift-1","swift-9","wift-1","swift-9"]}`, "Idempotency-Key", "k")
		created.want(`{"allowed_models":["swift-1","swift-9","wift-1"],"warnings":["` + warning("swift-9") + `","` + warning("wift-1") + `"]}`)
		c.ok("POST", keys, `{"allowed_models":["swift-1","swift-9","wift-1","swift-9"]}`, "Idempotency-Key", "k").
			want(`{"warnings":["` + warning("swift-9") + `","` + warning("wift-1") + `"]}`)
		key := "/keys/" + created.text("id")
		wantNoWarnings(c.ok("GET", key, ""))
		wantNoWarnings(c.ok("PATCH", key, `{"name":"ci","disabled":true}`))
		wantNoWarnings(c.ok("PATCH", key, `{"allowed_models":["swift-1"]}`))
		c.ok("PATCH", key, `{"allowed_models":["swift-2"]}`).want(`{"allowed_models":["swift-2"],"warnings":["` + warning("swift-2") + `"]}`)
		wantNoWarnings(c.ok("PATCH", key, `{"allowed_models":null}`))
		wantNoWarnings(c.ok("POST", keys, `{"allowed_models":["swift-1"]}`))
		wantNoWarnings(c.ok("POST", keys, `{}`))
	})
}

// TestKeyCacheIsUpdated checks that a change of a key or account takes effect at the next request on
// this node.
func TestKeyCacheIsUpdated(t *testing.T) {
	t.Parallel()
	eachDB(t, func(t *testing.T, c *caller) {
		account := c.ok("POST", "/accounts", `{"name":"a"}`).text("id")
		k := c.ok("POST", "/accounts/"+account+"/keys", `{}`)
		id, secret := k.text("id"), k.text("key")
		for i, step := range []struct {
			method, path, body string
			want               bool
		}{
			{"PATCH", "/keys/" + id, `{"disabled":true}`, false},
			{"PATCH", "/keys/" + id, `{"disabled":false}`, true},
			{"PATCH", "/accounts/" + account, `{"disabled":true}`, false},
			{"PATCH", "/accounts/" + account, `{"disabled":false}`, true},
			{"DELETE", "/keys/" + id, ``, false},
		} {
			if c.ok(step.method, step.path, step.body); c.accepts(secret) != step.want {
				t.Errorf("after step %d, %s %s, the key is accepted: %v, want %v", i, step.method, step.body, !step.want, step.want)
			}
		}
		if list, _ := c.ok("GET", "/accounts/"+account+"/keys", "").list(); len(list) != 0 {
			t.Errorf("after the deletion the keys are %v, want none", list)
		}
		for _, method := range []string{"GET", "PATCH", "DELETE"} {
			c.do(method, "/keys/"+id, `{}`).wantFault(fault.NotFound, "")
		}
	})
}

func TestKeyFaults(t *testing.T) {
	t.Parallel()
	eachDB(t, func(t *testing.T, c *caller) {
		account := c.ok("POST", "/accounts", `{"name":"a"}`).text("id")
		id := c.ok("POST", "/accounts/"+account+"/keys", `{"rpm":5}`).text("id")
		for body, param := range map[string]string{
			`{"name":5}`: "name",
			`{"name":"` + strings.Repeat("x", 201) + `"}`: "name",
			`{"rpm":0}`:                                "rpm",
			`{"rpm":-1}`:                               "rpm",
			`{"rpm":1.5}`:                              "rpm",
			`{"rpm":"5"}`:                              "rpm",
			`{"rpm":99999999999999999999}`:             "rpm",
			`{"rpm":1000001}`:                          "rpm",
			`{"daily_budget_usd":-1}`:                  "daily_budget_usd",
			`{"daily_budget_usd":"much"}`:              "daily_budget_usd",
			`{"daily_budget_usd":"1e2"}`:               "daily_budget_usd",
			`{"total_limit_usd":"1E2"}`:                "total_limit_usd",
			`{"daily_budget_usd":[]}`:                  "daily_budget_usd",
			`{"daily_budget_usd":""}`:                  "daily_budget_usd",
			`{"total_limit_usd":-0.000000001}`:         "total_limit_usd",
			`{"total_limit_usd":0.0000000001}`:         "total_limit_usd",
			`{"total_limit_usd":1e10}`:                 "total_limit_usd",
			`{"allowed_models":[]}`:                    "allowed_models",
			`{"allowed_models":"swift-1"}`:             "allowed_models",
			`{"allowed_models":["a",""]}`:              "allowed_models[1]",
			`{"allowed_models":[null]}`:                "allowed_models[0]",
			`{"allowed_models":[5]}`:                   "allowed_models",
			`{"allowed_ips":[]}`:                       "allowed_ips",
			`{"allowed_ips":["192.0.2.1","nonsense"]}`: "allowed_ips[1]",
			`{"allowed_ips":["192.0.2.1/33"]}`:         "allowed_ips[0]",
			`{"allowed_ips":{"a":1}}`:                  "allowed_ips",
			`{"budget":5}`:                             "budget",
			`{"key":"sk-mine"}`:                        "key",
		} {
			c.do("POST", "/accounts/"+account+"/keys", body).wantFault(fault.InvalidRequest, param)
			c.do("PATCH", "/keys/"+id, body).wantFault(fault.InvalidRequest, param)
		}
		c.do("POST", "/accounts/"+account+"/keys", `{"disabled":true}`).wantFault(fault.InvalidRequest, "disabled")
		c.do("PATCH", "/keys/"+id, `{"disabled":"yes"}`).wantFault(fault.InvalidRequest, "disabled")
		list, _ := c.ok("GET", "/accounts/"+account+"/keys", "").list()
		if len(list) != 1 {
			t.Errorf("after the rejected requests the keys are %v, want 1", list)
		}
		c.ok("GET", "/keys/"+id, "").want(`{"rpm":5,"total_limit_usd":null,"allowed_models":null,"disabled":false}`)
	})
}
