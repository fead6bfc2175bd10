package api_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"tollgate/internal/account"
	"tollgate/internal/ledger"
	"tollgate/internal/ledger/measure"
	"tollgate/internal/money"
	"tollgate/internal/store"
	"tollgate/internal/store/storetest"
)

// TestUsage checks usage and credit grants to the last digit, for an account
// with a billed, a failed and a closed request.
func TestUsage(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		d := newServer(t, db, nil)
		key, secret := d.key(account.KeySettings{})
		for i, end := range []ledger.End{
			{Outcome: ledger.Billed, Cost: 1_234_567_891, Tokens: ledger.Tokens{Prompt: 100, Cached: 40, Completion: 20}, Status: 200},
			{Outcome: ledger.Failed, Status: 502, Code: "upstream_error"},
			{Outcome: ledger.Closed, Status: 0, Code: "client_closed"},
		} {
			hold, err := d.books.Admit(t.Context(), ledger.Admission{
				Request: "req_" + string(rune('a'+i)), Account: d.account, Key: key, KeyVersion: 1, Model: "swift-1",
				Endpoint: "/v1/chat/completions", Amount: 2 * money.USD, Revision: 1, Received: time.Now()})
			if err != nil {
				t.Fatal(err)
			}
			if end.Outcome != ledger.Billed {
				hold.Release(end)
			} else if err := hold.Settle(t.Context(), end); err != nil {
				t.Fatal(err)
			}
		}
		d.closeBooks()
		const sums = `"cost_usd":1.234567891,"requests":3,"billed_requests":1,"failed_requests":1`
		for path, want := range map[string]string{
			"/v1/usage": `{"object":"usage","balance":{"usd":8.765432109,"credits":1753.0864218},` +
				`"total":{` + sums + `},"today":{` + sums + `},` +
				`"by_model":[{"model":"swift-1",` + sums + `,"prompt_tokens":100,"completion_tokens":20,"image_count":0,` +
				`"character_count":0,"audio_seconds":0,"search_count":0}]}`,
			"/v1/dashboard/billing/credit_grants": `{"object":"credit_summary","total_granted":10,"total_used":1.234567891,` +
				`"total_available":8.765432109}`,
		} {
			got := d.send("GET", path, "", as(secret)...)
			if got.status != 200 || strings.TrimSpace(string(got.body)) != want {
				t.Errorf("%s: %d\n got %s\nwant %s", path, got.status, got.body, want)
			}
		}
		// The report covers only the account's own data.
		day := time.Now().UTC().Format(time.DateOnly)
		const parts = `"requests":3,"billed_requests":1,"failed_requests":1,"prompt_tokens":100,"cached_tokens":40,"completion_tokens":20,` +
			`"image_count":0,"clip_count":0,"video_seconds":0,"character_count":0,"audio_seconds":0,"search_count":0,"cost_usd":1.234567891`
		got := d.send("GET", "/v1/usage?group_by=day,key,model,endpoint&since="+day+"&until="+day, "", as(secret)...)
		want := `,"report":{"object":"usage.report","since":"` + day + `","until":"` + day + `","group_by":["day","key","model","endpoint"],` +
			`"total":{` + parts + `},"data":[{"day":"` + day + `","key":"` + key + `","model":"swift-1","endpoint":"/v1/chat/completions",` +
			parts + `}]}}`
		if got.status != 200 || !strings.HasSuffix(strings.TrimSpace(string(got.body)), want) || !strings.Contains(string(got.body), sums) {
			t.Errorf("report: %d\n got %s\nwant %s", got.status, got.body, want)
		}
		got = d.send("GET", "/v1/usage?group_by=model&format=csv", "", as(secret)...)
		if want := "\nswift-1,3,1,1,100,40,20,0,0,0,0,0,0,1.234567891\n"; !strings.HasSuffix(string(got.body), want) ||
			got.header.Get("Content-Type") != "text/csv; charset=utf-8" {
			t.Errorf("CSV: %d %s", got.status, got.body)
		}
		for query, param := range map[string]string{"group_by=line": "group_by", "group_by=account": "group_by", "since=x": "since"} {
			refused := d.send("GET", "/v1/usage?"+query, "", as(secret)...)
			refused.refused(t, 400, "invalid_request")
			if !strings.Contains(string(refused.body), `"param":"`+param+`"`) {
				t.Errorf("%s: %s", query, refused.body)
			}
		}
	})
}

// TestUsageShowsUnits checks that usage shows the quantities of units that no kind of model has yet, and
// that it has no field for the seconds of videos.
func TestUsageShowsUnits(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		d := newServer(t, db, nil)
		key, secret := d.key(account.KeySettings{})
		for i, q := range []measure.Quantity{{Unit: "tile", N: 3}, {Unit: measure.Image, N: 2}, {Unit: measure.VideoMS, N: 5000},
			{Unit: "sound_ms", N: 2500}} {
			hold, err := d.books.Admit(t.Context(), ledger.Admission{
				Request: fmt.Sprint("req_", i), Account: d.account, Key: key, KeyVersion: 1, Model: fmt.Sprint("m", i),
				Endpoint: "/v1/tiles", Amount: money.USD, Revision: 1, Received: time.Now()})
			if err != nil {
				t.Fatal(err)
			}
			if err := hold.Settle(t.Context(), ledger.End{Outcome: ledger.Billed, Quantity: q, Status: 200}); err != nil {
				t.Fatal(err)
			}
		}
		d.closeBooks()
		got := d.send("GET", "/v1/usage?group_by=model", "", as(secret)...)
		const none = `,"character_count":0,"audio_seconds":0,"search_count":0`
		for _, want := range []string{
			`"completion_tokens":0,"image_count":0` + none + `,"tile_count":3}`, `"completion_tokens":0,"image_count":2` + none + "}",
			`"completion_tokens":0,"image_count":0` + none + "}", `"completion_tokens":0,"image_count":0` + none + `,"sound_seconds":2.5}`,
			`"image_count":2,"clip_count":1,"video_seconds":5` + none + `,"sound_seconds":2.5,"tile_count":3,"cost_usd":0}`,
		} {
			if !strings.Contains(string(got.body), want) {
				t.Errorf("got  %s\nwant %s", got.body, want)
			}
		}
	})
}

// TestEmptyUsage checks the empty lists of an account without requests.
func TestEmptyUsage(t *testing.T) {
	t.Parallel()
	d := newServer(t, onSQLite(t), nil)
	_, secret := d.key(account.KeySettings{})
	got := d.send("GET", "/v1/usage", "", as(secret)...)
	if got.status != 200 || !strings.Contains(string(got.body), `"by_model":[]`) {
		t.Errorf("%d %s", got.status, got.body)
	}
	head := d.send(http.MethodHead, "/v1/usage", "", as(secret)...)
	if head.status != 200 || len(head.body) != 0 || head.header.Get("Content-Length") != got.header.Get("Content-Length") {
		t.Errorf("HEAD: %d %v %q", head.status, head.header, head.body)
	}
}

// TestQueriesSeeChangesAtOnce checks that queries reject a key as soon as it is disabled, even by
// another process.
func TestQueriesSeeChangesAtOnce(t *testing.T) {
	t.Parallel()
	d := newServer(t, onSQLite(t), nil)
	key, secret := d.key(account.KeySettings{})
	paths := []string{"/v1/models", "/v1/usage", "/v1/dashboard/billing/credit_grants"}
	for _, path := range paths {
		if got := d.send("GET", path, "", as(secret)...); got.status != 200 {
			t.Fatalf("%s: %d %s", path, got.status, got.body)
		}
	}
	d.changeKey(key, func(s *account.KeySettings) { s.Disabled = true })
	for _, path := range paths {
		got := d.send("GET", path, "", as(secret)...)
		got.refused(t, 401, "invalid_api_key")
		if got.header.Get("WWW-Authenticate") != "Bearer" {
			t.Errorf("%s: no WWW-Authenticate", path)
		}
	}
}

// changeKey changes a key without the knowledge of the key cache, like another process.
func (s *server) changeKey(key string, edit func(*account.KeySettings)) {
	s.t.Helper()
	err := s.db.Update(s.t.Context(), func(tx *store.Tx) error {
		_, err := account.ChangeKeyTx(tx, key, func(settings *account.KeySettings) error { edit(settings); return nil })
		return err
	})
	if err != nil {
		s.t.Fatal(err)
	}
}
