package app

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"tollgate/internal/gatewaytest/scene"
	"tollgate/internal/store/storetest"
)

// operatorToken is the admin_token of these tests.
const operatorToken = "an-operator-of-these-tests"

// ask sends a request to the server's handler and returns the answer.
func (a *runningApp) ask(t *testing.T, method, path, key, body string, headers ...string) (int, http.Header, map[string]any) {
	t.Helper()
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	r.Header.Set("Authorization", "Bearer "+key)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	a.handler.ServeHTTP(w, r)
	var members map[string]any
	if err := json.Unmarshal(w.Body.Bytes(), &members); err != nil {
		t.Fatalf("%s %s: %d %s", method, path, w.Code, w.Body)
	}
	return w.Code, w.Header(), members
}

// customer creates an account with 5 USD and a key. It returns the account's path and the key.
func (a *runningApp) customer(t *testing.T) (account, key string) {
	t.Helper()
	_, _, owner := a.ask(t, "POST", "/admin/v1/accounts", operatorToken, `{"name":"a"}`)
	account = "/admin/v1/accounts/" + owner["id"].(string)
	a.ask(t, "POST", account+"/credits", operatorToken, `{"usd":5}`)
	_, _, created := a.ask(t, "POST", account+"/keys", operatorToken, `{}`)
	return account, created["key"].(string)
}

// TestQueuedJobsShowTheirPlace reads waiting jobs without a line as the operator.
func TestQueuedJobsShowTheirPlace(t *testing.T) {
	t.Parallel()
	file := file(t, "catalog.yaml", `
models: [{id: easel-1, kind: image, price: {1K: 0.03}}]
lines: [{id: main, provider: sandbox, models: {easel-1: sandbox-image}, enabled: false}]
`)
	storetest.EachEmpty(t, func(t *testing.T, url string) {
		p := serve(t, testSettings(t, url, "{admin_token: "+operatorToken+", media: 'file:"+t.TempDir()+"', catalog: '"+file+"'}"))
		defer p.stop(t)
		_, key := p.customer(t)
		for range 2 {
			p.ask(t, "POST", "/v1/images/generations", key, `{"model":"easel-1","prompt":"a boat"}`)
		}
		_, _, list := p.ask(t, "GET", "/admin/v1/jobs?status=queued", operatorToken, "")
		jobs := list["data"].([]any)
		if len(jobs) != 2 {
			t.Fatalf("%v", list)
		}
		for i, v := range jobs { // newest first
			j := v.(map[string]any)
			_, _, single := p.ask(t, "GET", "/admin/v1/jobs/"+j["id"].(string), operatorToken, "")
			for _, view := range []map[string]any{j, single} {
				if eta, ok := view["eta_seconds"].(float64); view["queue_position"] != float64(1-i) || !ok || eta < 1 || view["held_usd"] != 0.03 {
					t.Errorf("job %d: %v", i, view)
				}
				if line, present := view["line"]; !present || line != nil {
					t.Errorf("the line of job %d: %v, present: %v", i, line, present)
				}
			}
		}
	})
}

// TestRequeueIsDoneOnce repeats a requeue with its Idempotency-Key: the user is charged once, and
// requeuing a succeeded job needs force.
func TestRequeueIsDoneOnce(t *testing.T) {
	t.Parallel()
	storetest.EachEmpty(t, func(t *testing.T, url string) {
		p := serve(t, testSettings(t, url, "{admin_token: "+operatorToken+", media: 'file:"+t.TempDir()+"'}"))
		defer p.stop(t)
		account, key := p.customer(t)
		_, _, job := p.ask(t, "POST", "/v1/images/generations", key, `{"model":"sandbox-image","prompt":"a boat"}`)
		path := "/admin/v1/jobs/" + job["id"].(string)
		scene.Eventually(t, "the end of the job", func() bool {
			_, _, v := p.ask(t, "GET", path, operatorToken, "")
			return v["cost_usd"] != 0.0
		})

		if status, _, v := p.ask(t, "POST", path+"/requeue", operatorToken, "", "Idempotency-Key", "k"); status != 400 ||
			v["error"].(map[string]any)["param"] != "force" {
			t.Errorf("a job that has succeeded: %d %v", status, v)
		}
		var ids []any
		for i, body := range []string{`{"force":true}`, `{"force":true}`, `{"force":true}`} {
			status, header, v := p.ask(t, "POST", path+"/requeue", operatorToken, body, "Idempotency-Key", "k")
			if status != 200 || (header.Get("Idempotent-Replayed") == "true") != (i > 0) {
				t.Errorf("time %d: %d %v %v", i+1, status, header, v)
			}
			ids = append(ids, v["id"])
		}
		if ids[0] == job["id"] || ids[1] != ids[0] || ids[2] != ids[0] {
			t.Errorf("the jobs are %v", ids)
		}
		_, _, list := p.ask(t, "GET", "/admin/v1/jobs", operatorToken, "")
		if jobs := list["data"].([]any); len(jobs) != 2 {
			t.Errorf("%d jobs, want 1", len(jobs))
		}
		p.ask(t, "PATCH", account, operatorToken, `{"disabled":true}`)
		if status, _, v := p.ask(t, "POST", path+"/requeue", operatorToken, `{"force":true}`); status != 400 {
			t.Errorf("on behalf of a disabled account: %d %v", status, v)
		}

		_, _, first := p.ask(t, "POST", account+"/webhook/roll", operatorToken, "", "Idempotency-Key", "roll")
		_, _, again := p.ask(t, "POST", account+"/webhook/roll", operatorToken, "", "Idempotency-Key", "roll")
		_, _, now := p.ask(t, "GET", account+"/webhook", operatorToken, "")
		if first["secret"] != again["secret"] || first["secret"] != now["secret"] {
			t.Errorf("the secret was rolled to %v and, repeated, to %v; it is %v", first["secret"], again["secret"], now["secret"])
		}
	})
}

// TestAnyRequestCountsAsKeyUse checks that keys with only read requests or refused requests count
// as used in the operator API.
func TestAnyRequestCountsAsKeyUse(t *testing.T) {
	t.Parallel()
	s := testSettings(t, storetest.SQLite(t), "admin_token: "+operatorToken)
	p := serve(t, s)
	_, _, owner := p.ask(t, "POST", "/admin/v1/accounts", operatorToken, `{"name":"a"}`)
	keys := "/admin/v1/accounts/" + owner["id"].(string) + "/keys"
	uses := map[string]string{
		"models": "GET /v1/models 200", "usage": "GET /v1/usage 200", "job": "GET /v1/images/jobs/job_none 404",
		"no balance": `POST /v1/chat/completions 402 {"model":"sandbox-chat","messages":[{"role":"user","content":"a"}]}`,
		"wrong body": "POST /v1/chat/completions 400 {", "none": "",
	}
	for name, use := range uses {
		_, _, created := p.ask(t, "POST", keys, operatorToken, `{"name":"`+name+`"}`)
		if parts := strings.SplitN(use+" ", " ", 4); use != "" {
			if status, _, answer := p.ask(t, parts[0], parts[1], created["key"].(string), parts[3]); strconv.Itoa(status) != parts[2] {
				t.Errorf("%s: %d %v", name, status, answer)
			}
		}
	}
	p.stop(t)
	again := serve(t, s)
	defer again.stop(t)
	_, _, list := again.ask(t, "GET", keys, operatorToken, "")
	for _, element := range list["data"].([]any) {
		k := element.(map[string]any)
		if name := k["name"].(string); (k["last_used"] != nil) != (name != "none") {
			t.Errorf("%s: last used %v", name, k["last_used"])
		}
	}
}
