package userpages_test

import (
	"encoding/json"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"tollgate/internal/account"
	"tollgate/internal/console/consoletest"
	gateway "tollgate/internal/gatewaytest/scene"
	"tollgate/internal/money"
)

// TestRequests checks the list and the page of requests, without those of other accounts.
func TestRequests(t *testing.T) {
	t.Parallel()
	consoletest.Each(t, func(t *testing.T, s *consoletest.Scene) {
		b := s.SignedIn("ada@example.com")
		b.Get("/console/requests").Want(t, http.StatusOK, "No requests yet", "/console/keys/new")
		b.Get("/console/requests?status=429").Want(t, http.StatusOK, "Nothing matches these filters", "Clear filters")
		success, refused := s.Request("ada", 200, ""), s.Request("ada", 402, "insufficient_quota")
		other := s.Request("bob", 200, "")
		list := b.Get("/console/requests")
		list.Want(t, http.StatusOK, success, refused, `title="insufficient_quota">402 not enough money`, "1,000 → 310", "$0.000875")
		filtered := b.Get("/console/requests?status=402&model=swift-1")
		filtered.Want(t, http.StatusOK, refused, `value="402" selected`, `value="swift-1" selected`)
		if strings.Contains(filtered.Body.String(), success) || strings.Contains(list.Body.String(), other) {
			t.Error("the list has a request outside the filter or of another account")
		}
		page := b.Get("/console/requests/" + success)
		page.Want(t, http.StatusOK, "Held before it ran", "$0.0041", "Given back", "$0.003225", "$0.000875", "a provider failed",
			`title="upstream_timeout">provider too slow, after 1 min`, "a provider answered", "/v1/chat/completions",
			"Until the first byte", "420 ms", "980 ms")
		page.Without(t, "secret")
		b.Get("/console/requests/"+refused).Want(t, http.StatusOK, "You were charged for the part you received.", "Add credit",
			"/console/billing")
		b.Get("/console/requests/"+other).Want(t, http.StatusNotFound)
		b.Get("/console/requests/..%2Fkeys").Want(t, http.StatusNotFound)
	})
}

// TestRequestFilters checks the filters for time, key, code, status and duration, on the page and as a
// file.
func TestRequestFilters(t *testing.T) {
	t.Parallel()
	consoletest.Each(t, func(t *testing.T, s *consoletest.Scene) {
		b := s.SignedIn("ada@example.com")
		k, idle := s.Key("ada", "backend"), s.Key("ada", "idle")
		call(b, k.ID, "chat", chatBody).Want(t, http.StatusOK)
		call(b, k.ID, "chat", `{"model":"sandbox-chat","messages":[]}`).Want(t, http.StatusBadRequest)
		gateway.Eventually(t, "the refusal is in the log", func() bool {
			return strings.Contains(b.Get("/console/requests").Body.String(), "400 wrong messages")
		})
		today, before := time.Now().UTC().Format(time.DateOnly), time.Now().UTC().AddDate(0, 0, -3).Format(time.DateOnly)
		id := regexp.MustCompile(`req_[0-9a-z]{26}`)
		for query, want := range map[string]int{"": 2, "?span=1": 2, "?span=" + today: 2, "?span=" + before: 0, "?span=soon": 2, "?key=" +
			k.ID: 2,
			"?key=" + idle.ID: 0, "?key=" + s.Key("bob", "bob's").ID: 0, "?code=invalid_messages": 1, "?slow=60000": 0, "?slow=x": 2,
			"?status=200": 1,
			"?status=9":   2} {
			for _, path := range []string{"/console/requests", "/console/requests/table"} {
				got := b.Get(path + query)
				got.Want(t, http.StatusOK)
				ids := id.FindAllString(got.Body.String(), -1)
				slices.Sort(ids)
				if n := len(slices.Compact(ids)); n != want {
					t.Errorf("%s%s has %d requests, want %d", path, query, n, want)
				}
			}
		}
		b.Get("/console/requests?key="+k.ID).Want(t, http.StatusOK, `value="`+k.ID+`" selected>backend`,
			"/console/requests/table?key="+k.ID)
		b.Get("/console/requests/table?status=400").Want(t, http.StatusOK, "id,created,endpoint,model,key,job_id,status,code,",
			",/v1/chat/completions,sandbox-chat,"+k.ID+",,400,invalid_messages,0,0,0,0,0,0,0,")
		s.Exec(`UPDATE ledger_receipt SET unit = 'tile', quantity = 7 WHERE key = $1 AND status = 200`, k.ID)
		b.Get("/console/requests/table?status=200").Want(t, http.StatusOK, ",stands_for,unit,quantity\n", ",1,tile,7\n")
	})
}

// TestReceiptAddsUp checks that each line of a charge has a count, a price with the account's
// factor and an amount, and that the amounts add up to the charge.
func TestReceiptAddsUp(t *testing.T) {
	t.Parallel()
	consoletest.Each(t, func(t *testing.T, s *consoletest.Scene) {
		b, k := s.SignedIn("ada@example.com"), s.Key("ada", "backend")
		amounts := regexp.MustCompile(`>\$([0-9.]+)<`)
		for _, factor := range []money.Factor{money.One, 1_300_000} {
			s.ChangeAccount("ada", account.Patch{Factor: &factor})
			s.Options.Keys.Forget(k.ID)
			answer := call(b, k.ID, "chat", `{"model":"sandbox-chat","messages":[{"role":"user","content":"Hello there!"}]}`)
			answer.Want(t, http.StatusOK)
			page := b.Get("/console/requests/" + answer.Header().Get("X-Request-Id"))
			price := map[bool]string{true: "$0.25 per million", false: "$0.325 per million"}[factor == money.One]
			page.Want(t, http.StatusOK, "Prompt", "Answer", price, "by the provider", `href="/console/keys/`+k.ID)
			table, _, _ := strings.Cut(page.Body.String(), "</table>")
			var sum, last money.Amount
			for _, m := range amounts.FindAllStringSubmatch(table, -1) {
				amount, err := money.Parse(m[1])
				if err != nil {
					t.Fatal(err)
				}
				sum, last = sum+last, amount
			}
			if sum != last || sum == 0 {
				t.Errorf("the lines add up to %s, want the charge %s", sum, last)
			}
		}
	})
}

// TestReceiptAsCode checks that a receipt shows the request as code for its endpoint, with a note
// that the prompt is not stored, and no code for a request without a model.
func TestReceiptAsCode(t *testing.T) {
	t.Parallel()
	consoletest.Each(t, func(t *testing.T, s *consoletest.Scene) {
		b := s.SignedIn("ada@example.com")
		id := s.Request("ada", 200, "")
		for endpoint, want := range map[string][]string{
			"/v1/chat/completions": {"client.chat.completions.create", consoletest.PublicURL + "/v1", "your prompt, which is not stored"},
			"/v1/responses":        {"client.responses.create"}, "/native/v1/messages": {"client.messages.create", consoletest.PublicURL +
				"/native"},
			"/v1/images/generations": {consoletest.PublicURL + "/v1/images", "/jobs/"}, "/v1/videos/generations": {consoletest.PublicURL +
				"/v1/videos"},
			"/v1/models": nil,
		} {
			s.Exec(`UPDATE ledger_receipt SET endpoint = $1 WHERE id = $2`, endpoint, id)
			page := b.Get("/console/requests/" + id)
			if page.Want(t, http.StatusOK, want...); want == nil && strings.Contains(page.Body.String(), "As code") {
				t.Errorf("the receipt of %s has code, want none", endpoint)
			}
			if want != nil {
				page.Want(t, http.StatusOK, "As code", "is not stored", "swift-1", ">curl<", ">Python<", ">Node<", ">Go<")
			}
		}
	})
}

// TestReceiptsOfJobs checks that a failed job is not shown as a success, although its request was
// accepted with 202, and that a request closed by the client is shown as such.
func TestReceiptsOfJobs(t *testing.T) {
	t.Parallel()
	consoletest.Each(t, func(t *testing.T, s *consoletest.Scene) {
		b := s.SignedIn("ada@example.com")
		id := s.Request("ada", 202, "content_policy")
		b.Get("/console/requests").Want(t, http.StatusOK, `class="badge bad" title="content_policy">202 stopped by policy`)
		closed := s.Request("ada", 499, "client_closed")
		b.Get("/console/requests/"+closed).Want(t, http.StatusOK, "499 client left", "Your program closed the connection",
			"your program disconnected")
		s.Exec(`UPDATE ledger_receipt SET job = 'job_1', cost_nano = 0 WHERE id = $1`, id)
		page := b.Get("/console/requests/" + id)
		page.Want(t, http.StatusOK, "You were not charged.", "The job failed", `href="/console/jobs/job_1"`, "<strong>the job failed")
		page.Without(t, "a provider answered")
	})
}

// TestFind checks that the search box leads from an id, a name or a hint to its page, and finds
// nothing of other accounts.
func TestFind(t *testing.T) {
	t.Parallel()
	consoletest.Each(t, func(t *testing.T, s *consoletest.Scene) {
		b, bob := s.SignedIn("ada@example.com"), s.SignedIn("bob@example.com")
		k, twin := s.Key("ada", "Backend"), s.Key("ada", "backend of the shop")
		b.Get("/console").Want(t, http.StatusOK, `action="/console/find"`, "data-find")
		b.Get("/console/find").Want(t, http.StatusOK, "The id of a request")
		for q, path := range map[string]string{"req_x": "/requests/req_x", "job_x": "/jobs/job_x", k.ID: "/keys/" + k.ID,
			"dlv_x":      "/webhooks/deliveries/dlv_x",
			"+the+shop+": "/keys/" + twin.ID, k.Hint: "/keys/" + k.ID, strings.ReplaceAll(k.Hint, "...", "%E2%80%A6"): "/keys/" + k.ID,
			"sandbox-reas": "/models?id=sandbox-reasoner", "req_..%2Fkeys": "/requests/req_..%2Fkeys"} {
			b.Get("/console/find?q="+q).Want(t, http.StatusSeeOther, "/console"+path)
		}
		b.Get("/console/find?q=back").Want(t, http.StatusOK, "/console/keys/"+k.ID, "/console/keys/"+twin.ID)
		b.Get("/console/find?q=sandbox").Want(t, http.StatusOK, "/console/models?id=sandbox-video")
		b.Get("/console/find?q=%3Cb%3E").Want(t, http.StatusOK, "Nothing in your account", "&lt;b&gt;")
		for _, q := range []string{"back", k.Hint, "evt_x"} {
			bob.Get("/console/find?q="+q).Want(t, http.StatusOK, "Nothing in your account")
		}
	})
}

// TestOverview checks that the first page has a list of failures, and shows why requests are rejected.
func TestOverview(t *testing.T) {
	t.Parallel()
	consoletest.Each(t, func(t *testing.T, s *consoletest.Scene) {
		b, k := s.SignedIn("ada@example.com"), s.Key("ada", "backend")
		b.Get("/console").Want(t, http.StatusOK, "Three steps", "To the keys", `id="play"`, "$0.25 in, $2.00 out per million tokens")
		answer := call(b, k.ID, "chat", chatBody)
		answer.Want(t, http.StatusOK)
		page := b.Get("/console")
		page.Want(t, http.StatusOK, `href="/console/usage"`, answer.Header().Get("X-Request-Id"),
			"0 of 1 request that ran")
		page.Without(t, "Last failures", `id="play"`)
		failed := s.Request("ada", 402, "insufficient_quota")
		b.Get("/console").Want(t, http.StatusOK, "Last failures", "among the last 2 requests", failed)
		s.Exec(`UPDATE ledger_account SET balance_nano = 0 WHERE id = $1`, s.Accounts["ada"].ID)
		b.Get("/console").Want(t, http.StatusOK, "The balance is used up.", "edeem a code")
	})
}

// TestArrival checks that the page of a new key follows its first request to its end and links to
// the request.
func TestArrival(t *testing.T) {
	t.Parallel()
	consoletest.Each(t, func(t *testing.T, s *consoletest.Scene) {
		b, k := s.SignedIn("ada@example.com"), s.Key("ada", "backend")
		b.Get("/console/keys/"+k.ID).Want(t, http.StatusOK, "/console/requests?key="+k.ID, "/console/usage?key="+k.ID)
		b.Get("/console/keys/"+k.ID+"/arrival").Want(t, http.StatusOK, "Waiting for the first request")
		answer := call(b, k.ID, "chat", `{"model":"sandbox-chat","messages":[]}`)
		gateway.Eventually(t, "the request is in the log", func() bool {
			return strings.Contains(b.Get("/console/keys/"+k.ID+"/arrival").Body.String(), "data-final")
		})
		b.Get("/console/keys/"+k.ID+"/arrival").Want(t, http.StatusOK, "It arrived: 400 wrong messages, $0",
			`href="/console/requests/`+answer.Header().Get("X-Request-Id"))
	})
}

// TestParametersAreWords checks that a job's page shows parameters as words, and the name of the key.
func TestParametersAreWords(t *testing.T) {
	t.Parallel()
	consoletest.Each(t, func(t *testing.T, s *consoletest.Scene) {
		b, k := s.SignedIn("ada@example.com"), s.Key("ada", "backend")
		answer := call(b, k.ID, "images", `{"model":"sandbox-image","prompt":"a boat","style":"vivid","seed":7}`)
		var job struct{ ID string }
		if err := json.Unmarshal(answer.Body.Bytes(), &job); err != nil {
			t.Fatalf("parsing the submitted job: %v: %s", err, answer.Body)
		}
		b.Get("/console/jobs/"+job.ID).Want(t, http.StatusOK, ">vivid<", "<dt>seed</dt><dd><span class=\"break\">7<",
			`href="/console/keys/`+k.ID+`">backend<`)
	})
}
