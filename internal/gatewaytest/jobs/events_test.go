package jobs

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"tollgate/internal/gatewaytest/fakestudio"
	"tollgate/internal/gatewaytest/scene"
)

// eventsOfJobs checks the signed events of finished jobs. An event goes to the job's callback, if
// any, otherwise to the account's address for the chosen types. No event is lost if the node is
// killed between the end of a job and the delivery.
func eventsOfJobs(t *testing.T, binary, database string) {
	p := scene.NewNode(t, binary, database, map[string]string{"private_networks": "127.0.0.0/8", "webhook_retries": "2s,2s,2s,2s"})
	fal := fakestudio.ProviderOf(t, "fal")
	s := fal.Open(t)
	s.Always(func(body []byte) fakestudio.Behaviour {
		if strings.Contains(string(body), "bad boat") {
			return fal.UnsafeImage
		}
		return fakestudio.Behaviour{}
	})
	p.SetCatalog([]map[string]any{scene.ImageModel("easel", nil), scene.VideoModel("reel", nil)}, []map[string]any{
		fal.JobLine("pictures", s, "image", nil, "easel"), fal.JobLine("clips", s, "video", nil, "reel")})
	r := newReceiver(t)
	c := p.Customer()
	var hook struct{ Secret string }
	p.Admin("PUT", "/accounts/"+c.ID+"/webhook", map[string]any{"url": r.address("events"),
		"events": []string{"image.completed", "image.failed", "video.failed"}}, &hook)

	// by event type
	jobs := map[string]string{}
	end := func(kind, prompt, state string, more map[string]any) scene.Job {
		model := map[string]string{"image": "easel", "video": "reel"}[kind]
		return c.Becomes(t, kind, c.Submit(t, kind, scene.JobRequest(model, prompt, more)), state)
	}
	jobs["image.completed"] = end("image", "a boat", "succeeded", nil).Raw
	jobs["image.failed"] = end("image", "a bad boat", "failed", nil).Raw
	jobs["video.failed"] = end("video", "a bad boat", "failed", nil).Raw
	end("video", "a boat", "succeeded", nil) // video.completed is not a chosen type
	calledBack := end("video", "a bad boat", "failed", map[string]any{"callback_url": r.address("one")}).Raw
	otherSpelling := end("image", "a boat", "succeeded", map[string]any{"callBackUrl": r.address("two")}).Raw
	for tag, want := range map[string]int{"events": 3, "one": 1, "two": 1} {
		scene.Eventually(t, tag+" arrives", func() bool { return r.got(tag) >= want })
	}
	r.check(t, "one", calledBack)
	r.check(t, "two", otherSpelling)
	for _, d := range slices.Concat(r.of("events"), r.of("one"), r.of("two")) {
		sent, err := strconv.ParseInt(d.at, 10, 64)
		if err != nil || time.Since(time.Unix(sent, 0)).Abs() > time.Minute || !d.signedBy(t, hook.Secret) ||
			d.contentType != "application/json" {
			t.Errorf("delivery %+v, %v", d, err)
		}
	}
	for _, d := range r.of("events") {
		e := readEvent(t, d)
		if e.ID != d.id || e.Object != "event" || string(e.Data) != jobs[e.Type] || jobs[e.Type] == "" {
			t.Errorf("event %s; want the data %s", d.body, jobs[e.Type])
		}
		delete(jobs, e.Type)
	}
	if len(jobs) != 0 {
		t.Errorf("no events for %v", jobs)
	}

	// The receiver gets the delivery, but the node is killed before the receiver answers.
	gate := make(chan struct{})
	r.behave(0, gate)
	heldBack := end("image", "a boat", "succeeded", map[string]any{"callback_url": r.address("held")}).Raw
	heldEvent := end("image", "a bad boat", "failed", nil).Raw
	scene.Eventually(t, "the callback arrives", func() bool { return r.got("held") == 1 && r.got("events") == 4 })
	// The receiver rejects the delivery, so the gateway will retry.
	r.behave(500, nil)
	later := end("image", "a boat", "succeeded", map[string]any{"callback_url": r.address("later")}).Raw
	scene.Eventually(t, "the rejected callback arrives", func() bool { return r.got("later") >= 1 })
	replace(p, database)
	r.behave(0, nil)
	close(gate)
	for tag, want := range map[string]int{"held": 2, "later": 2, "events": 5} {
		scene.Eventually(t, tag+" arrives again", func() bool { return r.got(tag) >= want })
	}
	r.check(t, "held", heldBack)
	r.check(t, "later", later)
	again := r.of("events")[3:]
	for _, d := range again {
		if d.id != again[0].id || string(readEvent(t, d).Data) != heldEvent || !d.signedBy(t, hook.Secret) {
			t.Errorf("event %+v; want the data %s", d, heldEvent)
		}
	}
	scene.Eventually(t, "every delivery succeeds", func() bool { return delivered(t, c) == 8 })
	p.Audit(t)
}

// delivered returns the number of the account's successful deliveries. A failed delivery fails the
// test.
func delivered(t testing.TB, c *scene.Customer) (n int) {
	t.Helper()
	var page struct {
		Data []struct{ State, Type, URL string }
	}
	c.Admin("GET", "/accounts/"+c.ID+"/deliveries?limit=100", nil, &page)
	for _, d := range page.Data {
		if d.State == "delivered" {
			n++
		}
		if d.State == "failed" {
			t.Errorf("a delivery failed: %s", fmt.Sprint(d))
		}
	}
	return n
}

// event is the body of an event.
type event struct {
	ID, Object, Type string
	Created          int64 `json:"created_at"`
	Data             json.RawMessage
}

func readEvent(t testing.TB, d delivery) event {
	t.Helper()
	var e event
	if err := json.Unmarshal([]byte(d.body), &e); err != nil || e.Created == 0 {
		t.Errorf("%v in %s", err, d.body)
	}
	return e
}
