package admin

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"tollgate/internal/fault"
)

func TestWebhookSettings(t *testing.T) {
	t.Parallel()
	eachDB(t, func(t *testing.T, c *caller) {
		path := "/accounts/" + c.ok("POST", "/accounts", `{"name":"a"}`).text("id") + "/webhook"
		r := c.ok("GET", path, "")
		r.wantNames("url", "events", "balance_low_credits", "secret")
		r.want(`{"url":null,"events":[],"balance_low_credits":null}`)
		secret := r.text("secret")
		if !strings.HasPrefix(secret, "whsec_") {
			t.Errorf("the secret is %q, want whsec_…", secret)
		}
		r = c.ok("PUT", path, `{"url":"https://example.com/hook","events":["image.completed","balance.low"],"balance_low_credits":12.5}`)
		r.want(`{"url":"https://example.com/hook","events":["image.completed","balance.low"],"balance_low_credits":12.5}`)
		c.ok("GET", path, "").want(
			`{"url":"https://example.com/hook","events":["image.completed","balance.low"],"balance_low_credits":12.5,"secret":"` + secret + `"}`)
		c.ok("PUT", path, `{"url":null}`).want(
			`{"url":null,"events":["image.completed","balance.low"],"balance_low_credits":null,"secret":"` + secret + `"}`)
		c.ok("PUT", path, `{"url":null,"events":[],"balance_low_credits":0}`).want(`{"events":[],"balance_low_credits":0}`)
		set := c.ok("PUT", path, `{"url":"https://example.com/hook","events":["image.completed"],"balance_low_credits":12.5}`)
		c.ok("PUT", path, c.ok("GET", path, "").body).want(set.body) // the body of the GET
		rolled := c.ok("POST", path+"/roll", "")
		rolled.wantNames("url", "events", "balance_low_credits", "secret")
		if rolled.text("secret") == secret || c.ok("GET", path, "").text("secret") != rolled.text("secret") {
			t.Error("the secret did not change")
		}
	})
}

func TestWebhookFaults(t *testing.T) {
	t.Parallel()
	eachDB(t, func(t *testing.T, c *caller) {
		path := "/accounts/" + c.ok("POST", "/accounts", `{"name":"a"}`).text("id") + "/webhook"
		for body, param := range map[string]string{
			`{}`: "url", `{"events":[]}`: "url", `{"url":""}`: "url", `{"url":5}`: "url", `{"url":"http://10.0.0.1/","events":[]}`: "url",
			`{"url":"http://metadata.google.internal/","events":[]}`: "url", `{"url":"ftp://example.com","events":[]}`: "url",
			`{"url":"https://example.com/` + strings.Repeat("x", 2000) + `","events":[]}`: "url",
			`{"url":"https://u:p@example.com/","events":[]}`:                              "url",
			`{"url":"https://example.com/"}`:                                              "events",
			`{"url":"https://example.com/","events":null}`:                                "events",
			`{"url":"https://example.com/","events":"all"}`:                               "events",
			`{"url":null,"events":["job.done"]}`:                                          "events[0]",
			`{"url":null,"events":["image.failed",null]}`:                                 "events[1]",
			`{"url":null,"balance_low_credits":-1}`:                                       "balance_low_credits",
			`{"url":null,"balance_low_credits":"5"}`:                                      "balance_low_credits",
			`{"url":null,"balance_low_credits":0.00000001}`:                               "balance_low_credits",
			`{"url":null,"balance_low_credits":1e40}`:                                     "balance_low_credits",
			`{"url":null,"balance_low_credits":true}`:                                     "balance_low_credits",
			`{"url":null,"secret":"whsec_mine"}`:                                          "secret",
			`{"url":null,"balance_low_credits":200000000001}`:                             "balance_low_credits",
		} {
			c.do("PUT", path, body).wantFault(fault.InvalidRequest, param)
		}
		c.ok("GET", path, "").want(`{"url":null,"events":[],"balance_low_credits":null}`)
		for _, call := range []string{"GET webhook", "POST webhook/roll", "POST webhook/test", "GET deliveries"} {
			method, rest, _ := strings.Cut(call, " ")
			c.do(method, "/accounts/nobody/"+rest, "").wantFault(fault.NotFound, "")
		}
		c.do("PUT", "/accounts/nobody/webhook", `{"url":null}`).wantFault(fault.NotFound, "")
		c.do("POST", "/deliveries/nothing/resend", "").wantFault(fault.NotFound, "")
		c.do("POST", path+"/test", "").wantFault(fault.InvalidRequest, "")
		c.do("POST", path+"/test", `{"url":"x"}`).wantFault(fault.InvalidRequest, "url")
	})
}

func TestWebhookDeliveries(t *testing.T) {
	t.Parallel()
	eachDB(t, func(t *testing.T, c *caller) {
		var status atomic.Int64
		status.Store(200)
		type post struct {
			body   []byte
			header http.Header
		}
		posts := make(chan post, 10)
		receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			posts <- post{body, r.Header}
			w.WriteHeader(int(status.Load()))
		}))
		defer receiver.Close()
		account := "/accounts/" + c.ok("POST", "/accounts", `{"name":"a"}`).text("id")
		secret := c.ok("PUT", account+"/webhook", `{"url":"`+receiver.URL+`","events":[]}`).text("secret")
		r := c.ok("POST", account+"/webhook/test", "")
		r.wantNames("status_code", "response_ms")
		r.want(`{"status_code":200}`)
		hook, err := standardwebhooks.NewWebhook(secret)
		if err != nil {
			t.Fatal(err)
		}
		first := <-posts
		if err := hook.Verify(first.body, first.header); err != nil {
			t.Error(err)
		}
		status.Store(503)
		r = c.ok("POST", account+"/webhook/test", "{}")
		r.wantNames("status_code", "response_ms", "error")
		r.want(`{"status_code":503}`)
		second := <-posts
		list, more := c.ok("GET", account+"/deliveries", "").list()
		if len(list) != 2 || more {
			t.Fatalf("the deliveries are %v with more %v, want 2", list, more)
		}
		index := 0
		if list[0]["event_id"] != second.header.Get("webhook-id") {
			index = 1 // both were created within one millisecond
		}
		d := list[index]
		for _, name := range []string{"id", "event_id", "type", "url", "state", "attempts", "created"} {
			if _, ok := d[name]; !ok {
				t.Errorf("%v lacks %s", d, name)
			}
		}
		attempts := d["attempts"].([]any)
		if d["state"] != "failed" || d["type"] != "webhook.test" || len(attempts) != 1 || d["next_attempt_at"] != nil {
			t.Errorf("the second delivery is %v, want a failed test with one attempt", d)
		}
		status.Store(204)
		resent := c.ok("POST", "/deliveries/"+d["id"].(string)+"/resend", "")
		resent.want(`{"state":"delivered"}`)
		resentPost := <-posts
		if string(resentPost.body) != string(second.body) || resentPost.header.Get("webhook-id") != second.header.Get("webhook-id") ||
			hook.Verify(resentPost.body, resentPost.header) != nil {
			t.Errorf("resent %s with %v, want the body and id of the second delivery", resentPost.body, resentPost.header)
		}
		if attempts := resent.members()["attempts"].([]any); len(attempts) != 2 {
			t.Errorf("after the resend the attempts are %v, want 2", attempts)
		}
		receiver.Close()
		c.ok("POST", account+"/webhook/test", "").want(`{"status_code":null}`)
	})
}

// TestTakeBackSendsBalanceLow checks that a take-back creates a balance.low event each time the
// balance falls below the limit.
func TestTakeBackSendsBalanceLow(t *testing.T) {
	t.Parallel()
	eachDB(t, func(t *testing.T, c *caller) {
		account := "/accounts/" + c.ok("POST", "/accounts", `{"name":"a"}`).text("id")
		c.ok("POST", account+"/credits", `{"usd":5}`)
		c.ok("PUT", account+"/webhook", `{"url":"https://example.com/","events":["balance.low"],"balance_low_credits":600}`)
		for i, want := range []int{0, 1, 1, 1, 2} {
			c.ok("POST", account+"/credits", []string{`{"usd":-1}`, `{"usd":-2}`, `{"usd":-1}`, `{"usd":3}`, `{"usd":-2}`}[i])
			if list, _ := c.ok("GET", account+"/deliveries", "").list(); len(list) != want {
				t.Errorf("after %d movements there are %d deliveries, want %d", i+1, len(list), want)
			}
		}
	})
}
