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
		db, open := "--database="+url, "--private-networks=127.0.0.0/8"
		var sent atomic.Int64
		receiver := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { sent.Add(1) }))
		t.Cleanup(receiver.Close)
		id, _ := must(t, dir, "account", "create", "--name", "acme", db)["id"].(string)
		secret := must(t, dir, "webhook", "get", id, db)["secret"]
		if got := tollgate(t, dir, "webhook", "set", id, "--url", receiver.URL, "--events", "image.failed", db); got.code != 2 ||
			!strings.Contains(got.errors, "--url") {
			t.Errorf("a private address: %+v", got)
		}
		if got := tollgate(t, dir, "webhook", "set", id, "--url", receiver.URL, "--events", "image.failed", "--balance-low-credits", "few",
			db); got.code != 2 {
			t.Errorf("an invalid threshold: %+v", got)
		}
		got := must(t, dir, "webhook", "set", id, "--url", receiver.URL, "--events", "image.failed,balance.low", "--balance-low-credits",
			"12.5", db, open)
		if got["url"] != receiver.URL || fmt.Sprint(got["events"]) != "[image.failed balance.low]" || got["balance_low_credits"] != 12.5 ||
			got["secret"] != secret {
			t.Errorf("set: %v", got)
		}
		if got := must(t, dir, "webhook", "test", id, db, open); got["status_code"] != 200.0 || sent.Load() != 1 {
			t.Errorf("test: %v", got)
		}
		list, _ := must(t, dir, "webhook", "deliveries", id, db)["data"].([]any)
		if len(list) != 1 {
			t.Fatalf("deliveries: %v", list)
		}
		delivery, _ := list[0].(map[string]any)["id"].(string)
		if got := must(t, dir, "webhook", "resend", delivery, db, open); got["state"] != "delivered" || sent.Load() != 2 {
			t.Errorf("resend: %v", got)
		}
		if got := must(t, dir, "webhook", "roll", id, db); got["secret"] == secret {
			t.Errorf("roll: %v", got)
		}
		if got := must(t, dir, "webhook", "set", id, "--url", "none", db); got["url"] != nil || got["balance_low_credits"] != nil {
			t.Errorf("off: %v", got)
		}
	})
}
