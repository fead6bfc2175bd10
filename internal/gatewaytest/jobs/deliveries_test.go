package jobs

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"tollgate/internal/gatewaytest/scene"
	"tollgate/internal/money"
)

// killsAroundDeliveries kills a node with unsent events, and with sent events whose result is not
// recorded. Each event arrives at least once, always with the same id and bytes, and with a valid
// Standard Webhooks signature.
func killsAroundDeliveries(t *testing.T, binary, database string) {
	p := scene.NewNode(t, binary, database, map[string]string{"private_networks": "127.0.0.0/8", "webhook_retries": "1s,1s"})
	p.SetCatalog([]map[string]any{scene.ImageModel("easel", nil)}, []map[string]any{{"id": "main", "provider": "sandbox",
		"models": map[string]string{"easel": "sandbox-image"}, "options": map[string]any{"fail_on": "bad", "fail": "moderation_blocked"}}})
	r := newReceiver(t)
	c := p.Customer()
	var hook struct{ Secret string }
	p.Admin("PUT", "/accounts/"+c.ID+"/webhook", map[string]any{"url": r.address("events"),
		"events": []string{"image.failed", "balance.low"}, "balance_low_credits": 1000}, &hook)
	end := func(prompt, state, callback string) string {
		more := map[string]any{}
		if callback != "" {
			more["callback_url"] = r.address(callback)
		}
		return c.Becomes(t, "image", c.Submit(t, "image", scene.JobRequest("easel", prompt, more)), state).Raw
	}
	db := scene.OpenDatabase(t, database)

	// Without the record of an attempt, no node claims a delivery.
	accept := refuse(t, db, database, "INSERT", "webhook_attempt", "")
	gate := make(chan struct{})
	r.behave(0, gate)
	sent := end("a boat", "succeeded", "sent")
	sentEvent := end("a bad boat", "failed", "")
	scene.Eventually(t, "the callback and the event arrive", func() bool { return r.got("sent") == 1 && r.got("events") == 1 })
	r.behave(0, nil)
	close(gate)
	scene.Eventually(t, "the database rejects the records", func() bool {
		return strings.Contains(p.Output(), "cannot read or write deliveries")
	})
	written := end("a boat", "succeeded", "written")
	writtenEvent := end("a bad boat", "failed", "")
	p.Admin("POST", "/accounts/"+c.ID+"/credits", map[string]any{"usd": -98}, nil)
	if n := delivered(t, c); n != 0 || r.got("written") != 0 || r.got("events") != 1 || r.got("sent") != 1 {
		t.Errorf("before the kill, %d events are delivered; the receiver got %v", n, r.all)
	}
	p.Kill()
	accept()
	p.Restart()

	scene.Eventually(t, "all five events are delivered", func() bool { return delivered(t, c) == 5 })
	if r.got("sent") != 2 || r.got("written") != 1 || r.got("events") != 4 {
		t.Errorf("the receiver got %v", r.all)
	}
	r.check(t, "sent", sent)
	r.check(t, "written", written)
	verifier, err := standardwebhooks.NewWebhook(hook.Secret)
	if err != nil {
		t.Fatal(err)
	}
	bodies := map[string]string{} // by event
	for _, d := range r.all {
		if err := verifier.Verify([]byte(d.body), http.Header{"Webhook-Id": {d.id}, "Webhook-Timestamp": {d.at},
			"Webhook-Signature": {d.signature}}); err != nil {
			t.Errorf("%v: %+v", err, d)
		}
		if before, again := bodies[d.id]; again && before != d.body {
			t.Errorf("event %s arrived as %s and as %s", d.id, before, d.body)
		}
		bodies[d.id] = d.body
	}
	counts := map[string]int{}
	for _, d := range r.of("events") {
		counts[string(readEvent(t, d).Data)]++
	}
	low := fmt.Sprintf(`{"balance_credits":%s,"threshold_credits":1000}`, (scene.CreditOfJobs - 98*money.USD - 2*scene.PricePicture).Credits())
	if len(bodies) != 5 || counts[sentEvent] != 2 || counts[writtenEvent] != 1 || counts[low] != 1 {
		t.Errorf("%d events; the account's address got %v, want twice %s, once %s and once %s", len(bodies), counts, sentEvent, writtenEvent, low)
	}
	p.Audit(t)
}
