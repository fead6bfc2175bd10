package admin

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"tollgate/internal/fault"
	"tollgate/internal/ledger"
	"tollgate/internal/money"
	"tollgate/internal/node"
)

// admitted runs one request through the ledger.
func admitted(t *testing.T, l *ledger.Ledger, a ledger.Admission, end func(*ledger.Hold) error) {
	t.Helper()
	h, err := l.Admit(context.Background(), a)
	if err != nil {
		t.Fatal(err)
	}
	if err := end(h); err != nil {
		t.Fatal(err)
	}
}

func TestRequests(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, o *caller) {
		self, err := node.Join(t.Context(), node.Options{DB: o.db})
		if err != nil {
			t.Fatal(err)
		}
		books := ledger.New(ledger.Options{DB: o.db, Node: self})
		if err := books.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := books.Close(context.Background()); err != nil {
				t.Error(err)
			}
		}()
		account := o.ok("POST", "/accounts", `{"name":"a"}`).text("id")
		o.ok("POST", "/accounts/"+account+"/credits", `{"usd":5}`)
		key := o.ok("POST", "/accounts/"+account+"/keys", `{}`).text("id")
		admission := ledger.Admission{Request: "req_1", Account: account, Key: key, KeyVersion: 1, Model: "swift-1",
			Endpoint: "/v1/chat/completions", Amount: money.USD, Revision: 1, Received: time.Now()}
		admitted(t, books, admission, func(h *ledger.Hold) error {
			return h.Settle(context.Background(), ledger.End{Outcome: ledger.Billed, Cost: money.USD / 4, Status: 200, Line: "main",
				Tokens: ledger.Tokens{Prompt: 10, Cached: 4, Completion: 20}, Attempts: []map[string]string{{"line": "main"}},
				FirstByte: 30 * time.Millisecond, Duration: 90 * time.Millisecond})
		})
		admission.Request, admission.Model = "req_2", "swift-2"
		admitted(t, books, admission, func(h *ledger.Hold) error {
			h.Release(ledger.End{Outcome: ledger.Failed, Status: 502, Code: "upstream_timeout"})
			return nil
		})

		log, more := o.ok("GET", "/requests", "").list()
		if len(log) != 2 || more {
			t.Fatalf("log %v", log)
		}
		show := func(e map[string]any) reply {
			raw, _ := json.Marshal(e)
			return reply{t: t, body: string(raw)}
		}
		show(log[0]).want(`{"id":"req_2","model":"swift-2","status":502,"code":"upstream_timeout","cost_usd":0,"attempts":[]}`)
		show(log[1]).want(`{"id":"req_1","account":"` + account + `","key":"` + key +
			`","model":"swift-1","endpoint":"/v1/chat/completions","status":200,
			"line":"main","attempts":[{"line":"main"}],"prompt_tokens":10,"cached_tokens":4,"completion_tokens":20,"cost_usd":0.25,"held_usd":1,
			"first_byte_ms":30,"duration_ms":90}`)
		show(log[1]).wantNames("id", "account", "key", "model", "endpoint", "status", "line", "attempts", "prompt_tokens", "cached_tokens",
			"completion_tokens", "cost_usd", "held_usd", "over_hold_usd", "first_byte_ms", "duration_ms", "created")

		for query, want := range map[string]string{
			"status=200": "req_1", "status=502": "req_2", "model=swift-1": "req_1", "line=main": "req_1", "after=req_2": "req_1",
			"account=" + account + "&limit=1": "req_2", "account=acct_none": "", "line=other": "", "after=req_1": "", "status=404": "",
		} {
			list, more := o.ok("GET", "/requests?"+query, "").list()
			if want == "" && len(list) == 0 {
				continue
			}
			if len(list) != 1 || list[0]["id"] != want || more != (query == "account="+account+"&limit=1") {
				t.Errorf("%s shows %v, more %v, want %s", query, list, more, want)
			}
		}
		for query, param := range map[string]string{"status=x": "status", "status=0": "status", "status=600": "status", "status=": "status",
			"key=x": "key", "limit=0": "limit"} {
			o.do("GET", "/requests?"+query, "").wantFault(fault.InvalidRequest, param)
		}

		// What the request cost shows everywhere.
		o.ok("GET", "/accounts/"+account, "").want(`{"balance_usd":4.75,"held_usd":0}`)
		k := o.ok("GET", "/keys/"+key, "")
		k.want(`{"spent_usd":0.25,"spent_today_usd":0.25,"held_usd":0}`)
		if used, err := k.members()["last_used"].(json.Number).Int64(); err != nil || time.Since(time.Unix(used, 0)).Abs() > time.Minute {
			t.Errorf("last_used %v, %v", used, err)
		}
		entries, _ := o.ok("GET", "/accounts/"+account+"/entries", "").list()
		if len(entries) != 2 {
			t.Fatalf("entries %v", entries)
		}
		show(entries[0]).want(`{"kind":"charge","usd":-0.25,"balance_usd":4.75,"request_id":"req_1"}`)
		o.ok("GET", "/audit", "").want(`{"ok":true,"differences":[]}`)
	})
}
