package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"tollgate/internal/store/storetest"
)

func TestWebhookCommands(t *testing.T) {
	t.Parallel()
	storetest.EachURL(t, func(t *testing.T, url string) {
		dir := t.TempDir()
		db, allowLocal := "--database="+url, "--private-networks=127.0.0.0/8"
		var requests atomic.Int64
		receiver := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { requests.Add(1) }))
		t.Cleanup(receiver.Close)
		id, _ := must(t, dir, "account", "create", "--name", "acme", db)["id"].(string)
		secret := must(t, dir, "webhook", "get", id, db)["secret"]
		if got := tollgate(t, dir, "webhook", "set", id, "--url", receiver.URL, "--events", "image.failed", db); got.code != 2 ||
			!strings.Contains(got.errors, "--url") {
			t.Errorf("setting a private address ended with %+v, want exit 2 and --url", got)
		}
		if got := tollgate(t, dir, "webhook", "set", id, "--url", receiver.URL, "--events", "image.failed", "--balance-low-credits", "few",
			db); got.code != 2 {
			t.Errorf("setting an invalid threshold ended with %+v, want exit 2", got)
		}
		got := must(t, dir, "webhook", "set", id, "--url", receiver.URL, "--events", "image.failed,balance.low", "--balance-low-credits",
			"12.5", db, allowLocal)
		if got["url"] != receiver.URL || fmt.Sprint(got["events"]) != "[image.failed balance.low]" || got["balance_low_credits"] != 12.5 ||
			got["secret"] != secret {
			t.Errorf("webhook set printed %v, want the settings and the old secret", got)
		}
		if got := must(t, dir, "webhook", "test", id, db, allowLocal); got["status_code"] != 200.0 || requests.Load() != 1 {
			t.Errorf("webhook test printed %v, want status 200 of one request", got)
		}
		list, _ := must(t, dir, "webhook", "deliveries", id, db)["data"].([]any)
		if len(list) != 1 {
			t.Fatalf("the deliveries are %v, want 1", list)
		}
		delivery, _ := list[0].(map[string]any)["id"].(string)
		if got := must(t, dir, "webhook", "resend", delivery, db, allowLocal); got["state"] != "delivered" || requests.Load() != 2 {
			t.Errorf("webhook resend printed %v, want delivered after a second request", got)
		}
		if got := must(t, dir, "webhook", "roll", id, db); got["secret"] == secret {
			t.Errorf("webhook roll printed %v, want a new secret", got)
		}
		if got := must(t, dir, "webhook", "set", id, "--url", "none", db); got["url"] != nil || got["balance_low_credits"] != nil {
			t.Errorf("webhook set --url none printed %v, want no url and threshold", got)
		}
	})
}
