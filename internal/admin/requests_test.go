package admin

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"tollgate/internal/fault"
	"tollgate/internal/ledger"
	"tollgate/internal/ledger/measure"
	"tollgate/internal/money"
	"tollgate/internal/node"
	"tollgate/internal/store"
	"tollgate/internal/store/id"
	"tollgate/internal/store/storetest"
)

// startLedger starts a ledger on the caller's database and closes it at the end of the test.
func (c *caller) startLedger() *ledger.Ledger {
	c.t.Helper()
	self, err := node.Join(c.t.Context(), node.Options{DB: c.db})
	if err != nil {
		c.t.Fatal(err)
	}
	books := ledger.New(ledger.Options{DB: c.db, Node: self})
	if err := books.Start(c.t.Context()); err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() {
		if err := books.Close(context.Background()); err != nil {
			c.t.Error(err)
		}
	})
	return books
}

// runRequest admits one request to the ledger and ends its hold with end.
func runRequest(t *testing.T, l *ledger.Ledger, a ledger.Admission, end func(*ledger.Hold) error) {
	t.Helper()
	h, err := l.Admit(context.Background(), a)
	if err != nil {
		t.Fatal(err)
	}
	if err := end(h); err != nil {
		t.Fatal(err)
	}
}

// TestRequestsShowQuantities checks that a request has the members of its unit, including units that
// no kind of model has yet.
func TestRequestsShowQuantities(t *testing.T) {
	t.Parallel()
	eachDB(t, func(t *testing.T, c *caller) {
		books := c.startLedger()
		account := c.ok("POST", "/accounts", `{"name":"a"}`).text("id")
		c.ok("POST", "/accounts/"+account+"/credits", `{"usd":5}`)
		key := c.ok("POST", "/accounts/"+account+"/keys", `{}`).text("id")
		commonNames := []string{"id", "account", "key", "model", "endpoint", "status", "attempts", "prompt_tokens", "cached_tokens",
			"completion_tokens", "cost_usd", "held_usd", "over_hold_usd", "first_byte_ms", "duration_ms", "created", "ended", "outcome",
			"catalog_revision"}
		for i, test := range []struct {
			quantity measure.Quantity
			want     map[string]string
		}{
			{measure.Quantity{}, nil},
			{measure.Quantity{Unit: measure.Image, N: 2}, map[string]string{"image_count": "2"}},
			{measure.Quantity{Unit: measure.VideoMS, N: 2500}, map[string]string{"clip_count": "1", "video_seconds": "2.5"}},
			{measure.Quantity{Unit: measure.VideoMS}, map[string]string{"clip_count": "1"}},
			{measure.Quantity{Unit: "tile", N: 7}, map[string]string{"tile_count": "7"}},
			{measure.Quantity{Unit: "sound_ms", N: 61_000}, map[string]string{"sound_seconds": "61"}},
		} {
			request := fmt.Sprint("req_", i)
			runRequest(t, books, ledger.Admission{Request: request, Account: account, Key: key, KeyVersion: 1, Model: "m",
				Endpoint: "/v1/tiles", Amount: money.USD, Revision: 1, Received: time.Now()}, func(h *ledger.Hold) error {
				return h.Settle(context.Background(), ledger.End{Outcome: ledger.Billed, Quantity: test.quantity, Status: 200})
			})
			r, names := c.ok("GET", "/requests/"+request, ""), slices.Clone(commonNames)
			for name, value := range test.want {
				r.want(`{"` + name + `":` + value + `}`)
				names = append(names, name)
			}
			r.wantNames(names...)
		}
		c.ok("GET", "/usage", "").want(`{"total":{"requests":6,"billed_requests":6,"failed_requests":0,"prompt_tokens":0,"cached_tokens":0,
			"completion_tokens":0,"image_count":2,"clip_count":2,"video_seconds":2.5,"character_count":0,"audio_seconds":0,"search_count":0,
			"sound_seconds":61,"tile_count":7,"cost_usd":0,
			"line_cost_usd":null,"line_cost_requests":0,"margin_usd":null}}`)
	})
}

func TestRequests(t *testing.T) {
	t.Parallel()
	eachDB(t, func(t *testing.T, c *caller) {
		books := c.startLedger()
		c.ok("PUT", "/catalog", `{"models":[{"id":"swift-1","kind":"chat","context_window":1000,"max_output_tokens":100,
			"price":{"input":5000,"output":10000}}],"lines":[]}`, "Content-Type", "application/json")
		account := c.ok("POST", "/accounts", `{"name":"a"}`).text("id")
		c.ok("POST", "/accounts/"+account+"/credits", `{"usd":5}`)
		key := c.ok("POST", "/accounts/"+account+"/keys", `{}`).text("id")
		lineCost := money.USD / 10
		admission := ledger.Admission{Request: "req_1", Account: account, Key: key, KeyVersion: 1, Model: "swift-1",
			Endpoint: "/v1/chat/completions", Amount: money.USD, Revision: 1, Received: time.Now()}
		runRequest(t, books, admission, func(h *ledger.Hold) error {
			return h.Settle(context.Background(), ledger.End{Outcome: ledger.Billed, Cost: money.USD / 4, Status: 200, Line: "main",
				Tokens:   ledger.Tokens{Prompt: 10, Cached: 4, Completion: 20},
				Attempts: []map[string]any{{"line": "main", "line_cost_usd": 0.1}}, Source: ledger.SourceBoth, LineCost: &lineCost,
				FirstByte: 30 * time.Millisecond, Duration: 90 * time.Millisecond})
		})
		admission.Request, admission.Model = "req_2", "swift-2"
		runRequest(t, books, admission, func(h *ledger.Hold) error {
			h.Release(ledger.End{Outcome: ledger.Failed, Status: 502, Code: "upstream_timeout"})
			return nil
		})

		log, more := c.ok("GET", "/requests", "").list()
		if len(log) != 2 || more {
			t.Fatalf("the log has %v with more %v, want 2 requests", log, more)
		}
		show := func(e map[string]any) reply {
			raw, _ := json.Marshal(e)
			return reply{t: t, body: string(raw)}
		}
		show(log[0]).want(`{"id":"req_2","model":"swift-2","status":502,"code":"upstream_timeout","cost_usd":0,"attempts":[]}`)
		show(log[1]).want(`{"id":"req_1","account":"` + account + `","key":"` + key +
			`","model":"swift-1","endpoint":"/v1/chat/completions","status":200,
			"line":"main","attempts":[{"line":"main","line_cost_usd":0.1}],"prompt_tokens":10,"cached_tokens":4,"completion_tokens":20,
			"cost_usd":0.25,"held_usd":1,
			"first_byte_ms":30,"duration_ms":90}`)
		show(log[1]).wantNames("id", "account", "key", "model", "endpoint", "status", "line", "attempts", "prompt_tokens", "cached_tokens",
			"completion_tokens", "cost_usd", "held_usd", "over_hold_usd", "line_cost_usd", "first_byte_ms", "duration_ms", "created", "ended",
			"outcome", "usage_source", "catalog_revision", "price", "price_unit")
		show(log[1]).want(`{"outcome":"billed","usage_source":"both","catalog_revision":1,"price":{"input":5000,"output":10000},
			"price_unit":"million_tokens","line_cost_usd":0.1}`)
		detail := c.ok("GET", "/requests/req_1", "")
		detail.want(string(show(log[1]).body))
		detail.wantNames(slices.Collect(maps.Keys(log[1]))...)
		c.ok("GET", "/requests/req_2", "").want(`{"outcome":"failed","code":"upstream_timeout","cost_usd":0}`)
		c.do("GET", "/requests/req_none", "").wantFault(fault.NotFound, "")
		c.do("GET", "/requests/req_1?x=1", "").wantFault(fault.InvalidRequest, "x")

		for query, want := range map[string]string{
			"status=200": "req_1", "status=502": "req_2", "model=swift-1": "req_1", "line=main": "req_1", "after=req_2": "req_1",
			"account=" + account + "&limit=1": "req_2", "account=acct_none": "", "line=other": "", "after=req_1": "", "status=404": "",
			"key=" + key + "&code=upstream_timeout": "req_2", "code=upstream_timeout": "req_2", "code=x": "", "key=x": "",
			"key=" + key + "&account=acct_none": "", "min_duration_ms=90": "req_1", "min_duration_ms=91": "", "min_duration_ms=10000": "",
			"since=2020-01-01&model=swift-1": "req_1",
		} {
			list, more := c.ok("GET", "/requests?"+query, "").list()
			if want == "" && len(list) == 0 {
				continue
			}
			if len(list) != 1 || list[0]["id"] != want || more != (query == "account="+account+"&limit=1") {
				t.Errorf("GET /requests?%s returned %v with more %v, want %s", query, list, more, want)
			}
		}
		for query, param := range map[string]string{"status=x": "status", "status=0": "status", "status=600": "status", "status=": "status",
			"keys=x": "keys", "limit=0": "limit", "min_duration_ms=-1": "min_duration_ms", "since=yesterday": "since",
			"until=2026-13-01": "until"} {
			c.do("GET", "/requests?"+query, "").wantFault(fault.InvalidRequest, param)
		}

		// The account, the key and the entries have the request's cost.
		c.ok("GET", "/accounts/"+account, "").want(`{"balance_usd":4.75,"held_usd":0}`)
		k := c.ok("GET", "/keys/"+key, "")
		k.want(`{"spent_usd":0.25,"spent_today_usd":0.25,"held_usd":0}`)
		if lastUsed, err := k.members()["last_used"].(json.Number).Int64(); err != nil || time.Since(time.Unix(lastUsed, 0)).Abs() > time.Minute {
			t.Errorf("last_used is %v, %v, want the current time", lastUsed, err)
		}
		entries, _ := c.ok("GET", "/accounts/"+account+"/entries", "").list()
		if len(entries) != 2 {
			t.Fatalf("the entries are %v, want 2", entries)
		}
		show(entries[0]).want(`{"kind":"charge","usd":-0.25,"balance_usd":4.75,"request_id":"req_1"}`)
		show(entries[0]).want(`{"model":"swift-1"}`)

		// Usage reports.
		usage := func(query, want string) {
			t.Helper()
			c.ok("GET", "/usage?"+query, "").want(want)
		}
		const spent = `"requests":1,"billed_requests":1,"failed_requests":0,"prompt_tokens":10,"cached_tokens":4,"completion_tokens":20,
			"image_count":0,"clip_count":0,"video_seconds":0,"character_count":0,"audio_seconds":0,"search_count":0,
			"cost_usd":0.25,"line_cost_usd":0.1,"line_cost_requests":1,"margin_usd":0.15`
		const failed = `"requests":1,"billed_requests":0,"failed_requests":1,"prompt_tokens":0,"cached_tokens":0,"completion_tokens":0,
			"image_count":0,"clip_count":0,"video_seconds":0,"character_count":0,"audio_seconds":0,"search_count":0,
			"cost_usd":0,"line_cost_usd":null,"line_cost_requests":0,"margin_usd":null`
		usage("group_by=account,model", `{"object":"usage.report","group_by":["account","model"],"data":[
			{"account":"`+account+`","account_name":"a","model":"swift-1",`+spent+`},
			{"account":"`+account+`","account_name":"a","model":"swift-2",`+failed+`}]}`)
		usage("group_by=key&model=swift-1", `{"data":[{"key":"`+key+`","key_name":"`+c.ok("GET", "/keys/"+key, "").text("hint")+`",`+spent+`}]}`)
		usage("model=swift-1&line=main&key="+key+"&endpoint=/v1/chat/completions&account="+account, `{"group_by":[],"total":{`+spent+`}}`)
		usage("since=2020-01-01&until=2020-12-31T23:00:00Z&group_by=day", `{"since":"2020-01-01","until":"2020-12-31","data":[]}`)
		usage("group_by=line&account=acct_none", `{"data":[]}`)
		table := "model,requests,billed_requests,failed_requests,prompt_tokens,cached_tokens,completion_tokens,image_count,clip_count," +
			"video_seconds,character_count,audio_seconds,search_count,cost_usd,line_cost_usd,line_cost_requests,margin_usd\n" +
			"swift-1,1,1,0,10,4,20,0,0,0,0,0,0,0.25,0.1,1,0.15\nswift-2,1,0,1,0,0,0,0,0,0,0,0,0,0,,0,\n"
		if got := c.do("GET", "/usage?group_by=model&format=csv", "").body; got != table {
			t.Errorf("the CSV is %s, want %s", got, table)
		}
		if got := c.do("GET", "/usage?group_by=model", "", "Accept", "text/csv").body; got != table {
			t.Errorf("the CSV by Accept is %s, want %s", got, table)
		}
		for query, param := range map[string]string{"group_by=x": "group_by", "since=x": "since", "until=1-2-3": "until", "day=1": "day",
			"since=2026-05-02&until=2026-05-01": "until", "format=xml": "format"} {
			c.do("GET", "/usage?"+query, "").wantFault(fault.InvalidRequest, param)
		}

		c.ok("GET", "/audit", "").want(`{"ok":true,"differences":[]}`)
	})
}

// TestDeletedRequests checks that the charge of a request stays in the account's entries after its
// row of the request log is deleted.
func TestDeletedRequests(t *testing.T) {
	t.Parallel()
	storetest.EachClock(t, func(t *testing.T, db *store.DB, clock *storetest.Clock) {
		c := newCaller(t, db)
		books := c.startLedger()
		account := c.ok("POST", "/accounts", `{"name":"a"}`).text("id")
		c.ok("POST", "/accounts/"+account+"/credits", `{"usd":5}`)
		key := c.ok("POST", "/accounts/"+account+"/keys", `{}`).text("id")
		request := id.At("req_", clock.Now())
		admission := ledger.Admission{Request: request, Account: account, Key: key, KeyVersion: 1, Model: "swift-1",
			Endpoint: "/v1/chat/completions", Amount: money.USD, Revision: 1, Received: clock.Now()}
		runRequest(t, books, admission, func(h *ledger.Hold) error {
			return h.Settle(context.Background(), ledger.End{Outcome: ledger.Billed, Cost: money.USD / 4, Status: 200, Line: "main"})
		})
		before := c.ok("GET", "/accounts/"+account+"/entries", "").body
		clock.Advance(200 * 24 * time.Hour)
		if err := books.Fold(t.Context()); err != nil {
			t.Fatal(err)
		}
		c.ok("GET", "/requests/"+request, "").want(`{"id":"` + request + `","account":"` + account +
			`","model":"swift-1","cost_usd":0.25,"balance_usd":4.75,"ended":1795262400,"log_deleted":true}`)
		if after := c.ok("GET", "/accounts/"+account+"/entries", "").body; after != before {
			t.Errorf("after the deletion the entries are %s, want %s", after, before)
		}
		c.ok("GET", "/usage?since=2026-11-01&until=2026-11-30&group_by=account,day", "").want(`{"since":"2026-11-01","until":"2026-11-30"}`)
		c.ok("GET", "/audit", "").want(`{"ok":true,"differences":[]}`)
	})
}
