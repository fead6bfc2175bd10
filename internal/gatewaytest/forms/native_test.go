package forms

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"tollgate/internal/gatewaytest/fakeprovider"
	"tollgate/internal/gatewaytest/scene"
	"tollgate/internal/money"
)

// nativeLimit is max_body of the process of the native scenarios.
const nativeLimit = 8 << 10

// nativeFault checks the status, the type and the members of an error of /native. It returns the
// message.
func nativeFault(t *testing.T, a scene.FormAnswer, status int, kind string) (message string) {
	t.Helper()
	var body map[string]json.RawMessage
	var object map[string]string
	if err := json.Unmarshal([]byte(a.Raw), &body); err != nil {
		t.Fatalf("%d %q: %v", a.Status, a.Raw, err)
	}
	if err := json.Unmarshal(body["error"], &object); err != nil {
		t.Fatalf("%d %q: %v", a.Status, a.Raw, err)
	}
	outer, inner := slices.Sorted(maps.Keys(body)), slices.Sorted(maps.Keys(object))
	if fmt.Sprint(outer, inner) != "[error type] [message type]" || string(body["type"]) != `"error"` || object["message"] == "" {
		t.Errorf("not an error object of /native: %s", a.Raw)
	}
	if a.Status != status || object["type"] != kind {
		t.Errorf("the client got %d %s; want %d %s", a.Status, a.Raw, status, kind)
	}
	if a.Header.Get("Content-Type") != "application/json" || a.Header.Get("Retry-After") != "" {
		t.Errorf("header %v", a.Header)
	}
	return object["message"]
}

// nativeScenesOfForms returns the scenarios for /native.
func nativeScenesOfForms(t testing.TB) []scene.Scenario {
	return []scene.Scenario{
		nativeOrderScene(t), nativeFieldsScene(t), nativeKeysScene(t), nativeAdmissionScene(t), nativeNoLineScene(t),
		nativeModelsScene(t), countScene(t),
	}
}

// nativeOrderScene sends requests with several errors. Each request corrects the error that the
// gateway reported for the previous request (ARCHITECTURE.md, Order of checks).
func nativeOrderScene(t testing.TB) scene.Scenario {
	p := fakeprovider.New(t)
	state := func(id, state string, forms ...scene.Form) map[string]any {
		return scene.FormModel(id, map[string]any{"state": state}, forms...)
	}
	return scene.Scenario{
		Name: "order of checks",
		Models: []map[string]any{
			scene.FormModel("order-listed", nil, scene.Messages), scene.FormModel("order-other", nil, scene.Messages),
			scene.FormModel("order-chat", nil, scene.Chat, scene.Responses), state("order-chat-old", "retired", scene.Chat),
			state("order-old", "retired", scene.Messages), state("order-soon", "coming_soon", scene.Messages),
			state("order-broken", "maintenance", scene.Messages),
		},
		Lines: []map[string]any{scene.FormLine("order", "messages", p.URL(), nil, "order-listed", "order-other")},
		Play: func(t *testing.T, g *scene.Gateway) {
			account, key := g.Process.Account(0,
				map[string]any{"allowed_models": []string{"order-listed", "order-old", "order-soon", "order-broken"},
					"allowed_ips": []string{"192.0.2.0/24"}})
			tooLong := "\xff" + strings.Repeat("x", nativeLimit)
			const path, far, near, zip = "/native/v1/messages", "203.0.113.7", "192.0.2.1", "gzip"
			bodyFor := func(model string) string { return fmt.Sprintf(`{"model":%q,"messages":[]}`, model) }
			for _, c := range []struct {
				name, method, path, key, from, encoding, body string
				status                                        int
				kind                                          string
			}{
				{"path", "POST", "/native/v1/nope", "", far, zip, tooLong, 404, "not_found_error"},
				{"root", "GET", "/native", "", far, "", "", 404, "not_found_error"},
				{"path with a slash", "POST", path + "/", "", far, zip, tooLong, 404, "not_found_error"},
				{"path of /v1", "POST", "/native/v1/chat/completions", "", far, zip, tooLong, 404, "not_found_error"},
				{"method", "GET", path, "", far, "", "", 405, "invalid_request_error"},
				{"method of the list", "POST", "/native/v1/models", "", far, zip, tooLong, 405, "invalid_request_error"},
				{"no key", "POST", path, "", far, zip, tooLong, 401, "authentication_error"},
				{"unknown key", "POST", path, "sk-unknown", far, zip, tooLong, 401, "authentication_error"},
				{"address", "POST", path, key, far, zip, tooLong, 403, "permission_error"},
				{"size", "POST", path, key, near, zip, tooLong, 413, "invalid_request_error"},
				{"compressed", "POST", path, key, near, zip, "\xff{", 400, "invalid_request_error"},
				{"UTF-8", "POST", path, key, near, "", "\xff{", 400, "invalid_request_error"},
				{"JSON", "POST", path, key, near, "", `{"model":`, 400, "invalid_request_error"},
				{"empty body", "POST", path, key, near, "", ``, 400, "invalid_request_error"},
				{"object", "POST", path, key, near, "", `["model"]`, 400, "invalid_request_error"},
				{"repeated key", "POST", path, key, near, "", `{"model":1,"mod\u0065l":"x"}`, 400, "invalid_request_error"},
				{"no model", "POST", path, key, near, "", `{"messages":[]}`, 400, "invalid_request_error"},
				{"model null", "POST", path, key, near, "", `{"model":null,"messages":[]}`, 400, "invalid_request_error"},
				{"model is not a string", "POST", path, key, near, "", `{"model":7,"messages":[]}`, 400, "invalid_request_error"},
				{"unknown model", "POST", path, key, near, "", bodyFor("nope"), 404, "not_found_error"},
				{"other form", "POST", path, key, near, "", bodyFor("order-chat"), 404, "not_found_error"},
				{"other form, retired", "POST", path, key, near, "", bodyFor("order-chat-old"), 404, "not_found_error"},
				{"retired", "POST", path, key, near, "", bodyFor("order-old"), 400, "invalid_request_error"},
				{"coming soon", "POST", path, key, near, "", bodyFor("order-soon"), 400, "invalid_request_error"},
				{"maintenance", "POST", path, key, near, "", bodyFor("order-broken"), 503, "api_error"},
				{"model allowlist", "POST", path, key, near, "", bodyFor("order-other"), 403, "permission_error"},
				{"fields", "POST", path, key, near, "", bodyFor("order-listed"), 400, "invalid_request_error"},
				{"balance", "POST", path, key, near, "", scene.Request(scene.Messages, "order-listed", false, nil), 402, "billing_error"},
			} {
				headers := []string{"X-Forwarded-For", c.from}
				if c.key != "" {
					headers = append(headers, "x-api-key", c.key)
				}
				if c.encoding != "" {
					headers = append(headers, "Content-Encoding", c.encoding)
				}
				t.Run(c.name, func(t *testing.T) {
					a := scene.Call(t, g, c.method, c.path, c.body, headers...)
					nativeFault(t, a, c.status, c.kind)
					if again := a.Header.Get("x-should-retry"); (again == "false") != (c.status == 402) {
						t.Errorf("x-should-retry %q", again)
					}
					if allow := a.Header.Get("Allow"); (allow != "") != (c.status == 405) {
						t.Errorf("Allow %q", allow)
					}
				})
			}
			if a := scene.Call(t, g, "HEAD", "/native", ""); a.Status != 404 || a.Raw != "" {
				t.Errorf("HEAD /native: %d %s", a.Status, a.Raw)
			}
			if n := len(p.Requests()); n != 0 {
				t.Errorf("the provider got %d requests", n)
			}
			checkFree(t, g, account, 0)
		},
	}
}

// checkFree checks that an account has the given balance and no hold.
func checkFree(t *testing.T, g *scene.Gateway, account string, balance money.Amount) {
	t.Helper()
	var state scene.Funds
	g.Process.Admin("GET", "/accounts/"+account, nil, &state)
	if state.Balance != balance || state.Held != 0 {
		t.Errorf("balance %s and %s on hold; want %s and nothing on hold", state.Balance, state.Held, balance)
	}
}

// nativeFieldsScene sends valid and invalid fields.
func nativeFieldsScene(t testing.TB) scene.Scenario {
	p := fakeprovider.New(t)
	p.Always(func(fakeprovider.Request) fakeprovider.Reply { return fakeprovider.Good("messages", false) })
	return single{name: "fields",
		in: scene.Messages, line: "messages", model: "fields", provider: p,
	}.plays(func(t *testing.T, s scene.FormClient) {
		file := []any{map[string]any{"role": "user",
			"content": []any{map[string]any{"type": "image", "source": map[string]any{"type": "file", "file_id": "file_1"}}}}}
		for name, more := range map[string]map[string]any{
			"no limit": {"max_tokens": nil}, "limit null": {"max_tokens": json.RawMessage("null")}, "limit 0": {"max_tokens": 0},
			"limit negative": {"max_tokens": -1}, "limit text": {"max_tokens": "500"}, "limit fraction": {"max_tokens": 1.5},
			"limit true": {"max_tokens": true}, "no messages": {"messages": nil}, "messages empty": {"messages": []any{}},
			"messages text": {"messages": "hi"}, "a message that is a string": {"messages": []any{"hi"}}, "stream text": {"stream": "yes"},
			"a file of the provider": {"messages": file}, "container": {"container": "c_1"},
			"tool without a price":  {"tools": []any{map[string]any{"type": "web_search_20250305", "name": "web_search"}}},
			"speed without a price": {"speed": "fast"}, "place without a price": {"inference_geo": "us"},
			"tier without a price": {"service_tier": "priority"},
		} {
			a := s.Ask(scene.Request(scene.Messages, "fields", false, more))
			t.Run(name, func(t *testing.T) { nativeFault(t, a, 400, "invalid_request_error") })
		}
		if n := len(p.Requests()); n != 0 {
			t.Fatalf("the provider got %d requests", n)
		}
		for name, more := range map[string]map[string]any{
			"system in the messages": {
				"messages": []any{map[string]any{"role": "system", "content": "be kind"}, map[string]any{"role": "user", "content": "hi"}}},
			"unknown role":              {"messages": []any{map[string]any{"role": "narrator", "content": "hi"}}},
			"unknown fields":            {"nobody_knows": map[string]any{"a": 1}},
			"tiers without a surcharge": {"service_tier": "auto", "speed": "standard"},
			"a built-in tool":           {"tools": []any{map[string]any{"type": "bash_20250124", "name": "bash"}}},
		} {
			if a := s.Ask(scene.Request(scene.Messages, "fields", false, more)); a.Status != 200 {
				t.Errorf("%s: %d %s", name, a.Status, a.Raw)
			}
		}
		if a := s.Post(scene.Messages.Path()+"?beta=true", scene.Request(scene.Messages, "fields", false, nil)); a.Status != 200 {
			t.Errorf("?beta=true: %d %s", a.Status, a.Raw)
		}
	})
}

// nativeKeysScene sends keys in various headers.
func nativeKeysScene(t testing.TB) scene.Scenario {
	p := fakeprovider.New(t)
	p.Always(func(fakeprovider.Request) fakeprovider.Reply { return fakeprovider.Good("messages", false) })
	return scene.Scenario{
		Name:   "keys",
		Models: []map[string]any{scene.FormModel("keys", nil, scene.Messages)},
		Lines:  []map[string]any{scene.FormLine("keys", "messages", p.URL(), nil, "keys")},
		Play: func(t *testing.T, g *scene.Gateway) {
			_, key := g.Process.Account(10, nil)
			for _, c := range []struct {
				name    string
				headers []string
				status  int
			}{
				{"x-api-key", []string{"x-api-key", key}, 200},
				{"bearer", []string{"Authorization", "Bearer " + key}, 200},
				{"both", []string{"x-api-key", key, "Authorization", "Bearer sk-unknown"}, 200},
				{"x-api-key wins", []string{"x-api-key", "sk-unknown", "Authorization", "Bearer " + key}, 401},
				{"an empty x-api-key is ignored", []string{"x-api-key", " ", "Authorization", "Bearer " + key}, 200},
				{"not a bearer", []string{"Authorization", "Basic " + key}, 401},
			} {
				for _, path := range []string{scene.Messages.Path(), scene.Messages.Path() + "/count_tokens", "/native/v1/models"} {
					method, body := "POST", scene.Request(scene.Messages, "keys", false, nil)
					if strings.HasSuffix(path, "models") {
						method, body = "GET", ""
					}
					if strings.HasSuffix(path, "count_tokens") && c.status == 200 {
						p.Expect(fakeprovider.NativeCount(3))
					}
					a := scene.Call(t, g, method, path, body, c.headers...)
					if a.Status != c.status {
						t.Errorf("%s, %s: %d %s", c.name, path, a.Status, a.Raw)
					}
					if c.status == 401 {
						nativeFault(t, a, 401, "authentication_error")
					}
				}
			}
			var keys struct {
				Data []struct {
					ID string `json:"id"`
				} `json:"data"`
			}
			account, other := g.Process.Account(10, nil)
			g.Process.Admin("GET", "/accounts/"+account+"/keys", nil, &keys)
			g.Process.Admin("PATCH", "/keys/"+keys.Data[0].ID, map[string]any{"disabled": true}, nil)
			nativeFault(t, scene.Call(t, g, "POST", scene.Messages.Path(), scene.Request(scene.Messages, "keys", false, nil), "x-api-key", other),
				401, "authentication_error")
		},
	}
}

// nativeAdmissionScene checks the rate limit, the free quota, and busy lines.
func nativeAdmissionScene(t testing.TB) scene.Scenario {
	p, full := fakeprovider.New(t), fakeprovider.New(t)
	p.Always(func(fakeprovider.Request) fakeprovider.Reply { return fakeprovider.Good("messages", false) })
	open := make(chan struct{})
	slow := fakeprovider.Good("messages", false)
	slow.Wait = open
	full.Expect(slow)
	return scene.Scenario{
		Name: "admission",
		Models: []map[string]any{scene.FormModel("rated", nil, scene.Messages), scene.FormModel("full", nil, scene.Messages),
			scene.FormModel("gratis", map[string]any{"free_daily_requests": 1, "price": map[string]any{"input": 0, "output": 0}}, scene.Messages)},
		Lines: []map[string]any{
			scene.FormLine("rated", "messages", p.URL(), nil, "rated", "gratis"),
			scene.FormLine("full", "messages", full.URL(), map[string]any{"max_concurrent": 1}, "full"),
		},
		Play: func(t *testing.T, g *scene.Gateway) {
			_, key := g.Process.Account(10, map[string]any{"rpm": 1})
			ask := func(key, model string) scene.FormAnswer {
				return scene.Call(t, g, "POST", scene.Messages.Path(), scene.Request(scene.Messages, model, false, nil), "x-api-key", key)
			}
			if a := ask(key, "rated"); a.Status != 200 {
				t.Fatalf("%d %s", a.Status, a.Raw)
			}
			nativeFault(t, ask(key, "rated"), 429, "rate_limit_error")

			s := scene.Messages.NewClient(t, g)
			if a := ask(s.Key, "gratis"); a.Status != 200 {
				t.Fatalf("%d %s", a.Status, a.Raw)
			}
			a := ask(s.Key, "gratis")
			nativeFault(t, a, 429, "rate_limit_error")
			if a.Header.Get("x-should-retry") != "false" {
				t.Errorf("header %v", a.Header)
			}

			var running sync.WaitGroup
			running.Go(func() {
				if a := s.Ask(scene.Request(scene.Messages, "full", false, nil)); a.Status != 200 {
					t.Errorf("%d %s", a.Status, a.Raw)
				}
			})
			full.WaitRequest()
			other := scene.Messages.NewClient(t, g)
			busy := other.Ask(scene.Request(scene.Messages, "full", false, nil))
			nativeFault(t, busy, 429, "overloaded_error")
			if r := other.CheckCharge(busy, 0); r.Code != "rate_limit_exceeded" || r.Line != "" {
				t.Errorf("receipt %+v", r)
			}
			close(open)
			running.Wait()
		},
	}
}

// nativeNoLineScene sends requests without a healthy line.
func nativeNoLineScene(t testing.TB) scene.Scenario {
	p := fakeprovider.New(t)
	p.Always(func(fakeprovider.Request) fakeprovider.Reply { // also for a probe
		return fakeprovider.NativeError(401, "authentication_error", "invalid x-api-key")
	})
	return scene.Scenario{
		Name:   "no line",
		Models: []map[string]any{scene.FormModel("gone", nil, scene.Messages), scene.FormModel("lineless", nil, scene.Messages)},
		Lines:  []map[string]any{scene.FormLine("gone", "messages", p.URL(), nil, "gone")},
		Play: func(t *testing.T, g *scene.Gateway) {
			s := scene.Messages.NewClient(t, g)
			first := s.Ask(scene.Request(scene.Messages, "gone", true, nil))
			if message := nativeFault(t, first, 502, "api_error"); strings.Contains(message, "x-api-key") {
				t.Errorf("the client got the error of the line's key: %s", message)
			}
			s.CheckCharge(first, 0)
			for _, model := range []string{"gone", "lineless"} {
				for _, stream := range []bool{false, true} {
					a := s.Ask(scene.Request(scene.Messages, model, stream, nil))
					nativeFault(t, a, 503, "overloaded_error")
					if r := s.CheckCharge(a, 0); r.Code != "service_unavailable" || r.Line != "" {
						t.Errorf("receipt %+v", r)
					}
				}
			}
		},
	}
}

// nativeModelsScene reads the models page by page.
func nativeModelsScene(t testing.TB) scene.Scenario {
	var models []map[string]any
	for i := range 3 {
		models = append(models, scene.FormModel(fmt.Sprintf("listed-%d", i), nil, scene.Messages))
	}
	models = append(models, scene.FormModel("listed-soon", map[string]any{"state": "coming_soon"}, scene.Chat, scene.Messages),
		scene.FormModel("listed-old", map[string]any{"state": "retired"}, scene.Messages), scene.FormModel("listed-chat", nil, scene.Chat))
	return scene.Scenario{Name: "models", Models: models, Play: func(t *testing.T, g *scene.Gateway) {
		s := scene.Messages.NewClient(t, g)
		type list struct {
			Data []struct {
				Type    string `json:"type"`
				ID      string `json:"id"`
				Name    string `json:"display_name"`
				Created string `json:"created_at"`
			} `json:"data"`
			More  bool    `json:"has_more"`
			First *string `json:"first_id"`
			Last  *string `json:"last_id"`
		}
		get := func(query string) (l list) {
			a := scene.Call(t, g, "GET", "/native/v1/models"+query, "", "x-api-key", s.Key)
			if err := json.Unmarshal([]byte(a.Raw), &l); err != nil || a.Status != 200 {
				t.Fatalf("%d %s", a.Status, a.Raw)
			}
			return l
		}
		var all []string
		for _, m := range get("?limit=1000").Data {
			if all = append(all, m.ID); m.Type != "model" || m.Name == "" || !strings.HasSuffix(m.Created, "Z") {
				t.Errorf("%+v", m)
			}
		}
		for id, want := range map[string]bool{"listed-0": true, "listed-soon": true, "listed-old": false, "listed-chat": false} {
			if slices.Contains(all, id) != want {
				t.Errorf("%s is in the list: %v", id, !want)
			}
		}
		for id, status := range map[string]int{"listed-0": 200, "listed-soon": 200, "listed-old": 404, "listed-chat": 404, "none": 404} {
			a := scene.Call(t, g, "GET", "/native/v1/models/"+id, "", "x-api-key", s.Key)
			if a.Status != status || status == 200 && !strings.Contains(a.Raw, `"type":"model","id":"`+id+`"`) {
				t.Errorf("the model %s: %d %s", id, a.Status, a.Raw)
			}
			if status == 404 {
				nativeFault(t, a, 404, "not_found_error")
			}
		}
		first := slices.Index(all, "listed-0")
		if page := get("?limit=2&after_id=listed-0"); len(page.Data) != 2 || *page.First != all[first+1] || *page.Last != all[first+2] ||
			!page.More {
			t.Errorf("page %+v", page)
		}
		if page := get("?before_id=" + all[0]); len(page.Data) != 0 || page.First != nil || page.Last != nil || page.More {
			t.Errorf("page %+v", page)
		}
		for _, query := range []string{"?limit=0", "?limit=1001", "?limit=x", "?after_id=nope", "?after_id=listed-0&before_id=listed-1"} {
			nativeFault(t, scene.Call(t, g, "GET", "/native/v1/models"+query, "", "x-api-key", s.Key), 400, "invalid_request_error")
		}
	}}
}
