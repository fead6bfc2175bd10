// Package jobs owns the tests of image and video jobs. The tests run the real process with fake media
// providers, and kill the process at every step.
package jobs

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"net/http"
	"strings"
	"sync"
	"testing"

	"tollgate/internal/gatewaytest/fakestudio"
	"tollgate/internal/gatewaytest/scene"
	"tollgate/internal/money"
	"tollgate/internal/store/storetest"
)

// TestJobs plays image and video jobs on both databases. All parts run concurrently, because they
// mostly wait.
func TestJobs(t *testing.T) {
	t.Parallel()
	binary := scene.Binary(t)
	type engine struct {
		name        string
		newDatabase func(testing.TB) string
	}
	sqlite, postgres := engine{"sqlite", storetest.SQLite}, engine{"postgres", storetest.PostgreSQL}
	var all sync.WaitGroup
	for _, part := range []struct {
		name string
		test func(t *testing.T, binary, database string)
		on   []engine
	}{
		{"every provider", jobsOfAllProviders, []engine{sqlite, postgres}},
		{"references", references, []engine{sqlite, postgres}},
		{"result addresses", strangersResults, []engine{sqlite}},
		{"kills", killsAtEachStep, []engine{sqlite, postgres}},
		{"outage", outageOfTheMediaStore, []engine{sqlite, postgres}},
		{"stop", stopWithJobs, []engine{sqlite, postgres}},
		{"waiting clients", waitingClients, []engine{sqlite, postgres}},
		{"kill of a waiting client's node", killsWhileClientsWait, []engine{sqlite, postgres}},
		{"stop of a waiting client's node", stopWhileClientsWait, []engine{sqlite}},
		{"events", eventsOfJobs, []engine{sqlite, postgres}},
		{"deliveries", killsAroundDeliveries, []engine{sqlite, postgres}},
		{"slots", slotsOverNodes, []engine{postgres}},
	} {
		for _, on := range part.on {
			all.Go(func() {
				t.Run(part.name+"/"+on.name, func(t *testing.T) { part.test(t, binary, on.newDatabase(t)) })
			})
		}
	}
	all.Wait()
}

// jobsOfAllProviders plays jobs of every provider, as a client sees them.
func jobsOfAllProviders(t *testing.T, binary, database string) {
	p := scene.NewNode(t, binary, database, nil)
	var models, lines []map[string]any
	var plays []func(t *testing.T)
	add := func(name string, model, line map[string]any, play func(t *testing.T)) {
		models, lines = append(models, model), append(lines, line)
		plays = append(plays, func(t *testing.T) { t.Run(name, play) })
	}
	for _, m := range fakestudio.All() {
		for _, kind := range m.Kinds() {
			s, id := m.Open(t), m.Name+"-"+kind
			add(id, modelAt(m, kind, id), m.JobLine(id, s, kind, nil, id), func(t *testing.T) { goodAndBadJob(t, p, m, s, kind, id) })
		}
	}
	for _, m := range fakestudio.Providers() {
		s, id := m.Open(t), m.Name+"-tiers"
		line := m.JobLine(id, s, "image", nil, id)
		if m.Name == "openai" { // the model of a compatible vendor
			line["models"] = map[string]string{id: "flux"}
		}
		add(id, scene.ImageModel(id, nil), line, func(t *testing.T) { paidTier(t, p, m, s, id) })
	}
	fal := fakestudio.ProviderOf(t, "fal")
	queue := fal.Open(t)
	add("queue", scene.ImageModel("queue", nil), fal.JobLine("queue", queue, "image", map[string]any{"max_concurrent": 1}, "queue"),
		func(t *testing.T) { queuedJobs(t, p, queue) })
	once := fal.Open(t)
	add("once", scene.ImageModel("once", nil), fal.JobLine("once", once, "image", nil, "once"), func(t *testing.T) { onceJobs(t, p, once) })
	bfl := fakestudio.ProviderOf(t, "bfl")
	fill := bfl.Open(t)
	add("mask", scene.ImageModel("masked", nil),
		bfl.JobLine("masked", fill, "image", map[string]any{"models": map[string]string{"masked": "flux-pro-1.0-fill"}}, "masked"),
		func(t *testing.T) { maskedJob(t, p, fill) })
	plain := fal.Open(t)
	add("refusals", scene.ImageModel("plain", nil), fal.JobLine("plain", plain, "image", nil, "plain"),
		func(t *testing.T) { refusedJobs(t, p, plain) })
	broken, good := fal.Open(t), fal.Open(t)
	models = append(models, scene.ImageModel("hurt", nil))
	lines = append(lines, fal.JobLine("hurt-2", good, "image", map[string]any{"priority": 2}, "hurt"))
	add("failing over", scene.VideoModel("hurt-clip", nil), fal.JobLine("hurt-1", broken, "image", nil, "hurt", "hurt-clip"),
		func(t *testing.T) { failoverJobs(t, p, broken, good) })
	p.SetCatalog(models, lines)

	var all sync.WaitGroup
	for _, play := range plays {
		all.Go(func() { play(t) })
	}
	all.Wait()
	p.Audit(t)
}

// modelOf returns a model of a kind.
func modelOf(kind, id string, more map[string]any) map[string]any {
	if kind == "video" {
		return scene.VideoModel(id, more)
	}
	return scene.ImageModel(id, more)
}

// modelAt returns a model of a kind with the features of a provider.
func modelAt(m fakestudio.Provider, kind, id string) map[string]any {
	if kind == "video" && m.Seconds > 0 {
		return scene.ClipModel(id, cmp.Or(m.Tier, "720p"), m.Seconds)
	}
	return modelOf(kind, id, nil)
}

// goodAndBadJob runs a good and a bad job at a provider, and checks the jobs and the charges.
func goodAndBadJob(t *testing.T, p *scene.Node, m fakestudio.Provider, s fakestudio.Fake, kind, model string) {
	c := p.Customer()
	more, price, images := map[string]any{"size": "16:9", "n": 2}, money.Amount(2*scene.PricePicture), int64(2)
	switch {
	case kind == "video":
		more, price, images = map[string]any{"duration": cmp.Or(m.Seconds, scene.ClipSeconds), "ratio": "16:9"}, scene.PriceClip, 0
	case m.Lone:
		more, price, images = map[string]any{"size": "16:9"}, scene.PricePicture, 1
	}
	ready := make(chan struct{})
	open := sync.OnceFunc(func() { close(ready) })
	defer open()
	refusal, code := m.Unsafe(kind)
	s.Always(func(body []byte) fakestudio.Behaviour {
		if bytes.Contains(body, []byte("a bad boat")) {
			return refusal
		}
		return fakestudio.Behaviour{Until: ready}
	})
	id := c.Submit(t, kind, scene.JobRequest(model, "a boat", more))
	c.Becomes(t, kind, id, "processing")
	c.CheckFunds(t, 0, price)
	if o := p.OperatorJob(t, id); o.Account != c.ID || o.Line != model || o.Held != price || o.Cost != 0 || o.Status != "processing" {
		t.Errorf("the operator sees %+v", o)
	}
	open()
	j := c.Becomes(t, kind, id, "succeeded")
	checkResult(t, c, kind, model, j)
	if again := c.Poll(t, kind, id); again.Raw != j.Raw {
		t.Errorf("a finished job changed from %s to %s", j.Raw, again.Raw)
	}
	c.CheckFunds(t, price, 0)

	lost := c.Submit(t, kind, scene.JobRequest(model, "a bad boat", more))
	f := c.Becomes(t, kind, lost, "failed")
	if f.Error.Code != code || f.Error.Type != "invalid_request_error" || strings.Contains(f.Raw, scene.Credential) ||
		strings.Contains(f.Raw, s.URL()) {
		t.Errorf("failed job %s; want %s", f.Raw, code)
	}
	c.CheckFunds(t, price, 0)

	if charged := c.Charges(t); len(charged) != 1 || charged[id] != price {
		t.Errorf("charged %v; want %s for %s", charged, price, id)
	}
	checkUsage(t, c, model, price, 2, 1, 1, images)
	checkOperatorJobs(t, c, model, map[string]string{id: "succeeded", lost: "failed"}, price)
	calls := 2
	if m.Single && kind == "image" { // one call per image: a rejection of the first image may prevent the second call
		calls = 3
	}
	if n := len(s.Submissions()); n != calls && (calls == 2 || n != 4) {
		t.Errorf("%d submissions for two jobs", n)
	}
}

// checkResult checks a successful job and its files.
func checkResult(t testing.TB, c *scene.Customer, kind, model string, j scene.Job) {
	t.Helper()
	if kind == "video" {
		if want := fmt.Sprintf(`{"clips":1,"model":%q}`, model); string(j.Usage) != want || len(j.Data) != 1 {
			t.Errorf("usage %s of %s; want %s", j.Usage, j.Raw, want)
		}
		c.CheckLink(t, j.Data[0].URL, "video/mp4", fakestudio.Clip())
		return
	}
	if want := fmt.Sprintf(`{"images":%d,"resolution":"1K","model":%q}`, len(j.Data), model); string(j.Usage) != want {
		t.Errorf("usage %s of %s; want %s", j.Usage, j.Raw, want)
	}
	for _, d := range j.Data {
		c.CheckLink(t, d.URL, "image/png", pictureLike(c.Call(t, "GET", c.LinkHere(d.URL), nil).Raw))
	}
}

// pictureLike returns the fake's picture with the same number as raw, or with another number if raw
// is no such picture. The squares in a picture encode the number.
func pictureLike(raw []byte) []byte {
	n := 0
	if img, err := png.Decode(bytes.NewReader(raw)); err == nil {
		for bit := range 16 {
			if r, g, b, _ := img.At(4+bit%8*7, 12+bit/8*12).RGBA(); r+g+b == 3*0xFFFF {
				n |= 1 << bit
			}
		}
	}
	return fakestudio.Picture(n)
}

// checkUsage checks the account's usage of one model.
func checkUsage(t testing.TB, c *scene.Customer, model string, cost money.Amount, requests, billed, failed, images int64) {
	t.Helper()
	type totals struct {
		Cost     money.Amount `json:"cost_usd"`
		Requests int64        `json:"requests"`
		Billed   int64        `json:"billed_requests"`
		Failed   int64        `json:"failed_requests"`
	}
	var u struct {
		Object  string
		Balance struct{ USD money.Amount }
		Total   totals
		Today   totals
		ByModel []struct {
			Model string
			totals
			Images int64 `json:"image_count"`
		} `json:"by_model"`
	}
	r := c.Call(t, "GET", "/v1/usage", nil)
	if err := json.Unmarshal(r.Raw, &u); err != nil {
		t.Fatalf("%v in %s", err, r)
	}
	want := totals{cost, requests, billed, failed}
	if u.Object != "usage" || u.Balance.USD != scene.CreditOfJobs-cost || u.Total != want || len(u.ByModel) != 1 ||
		u.ByModel[0].Model != model || u.ByModel[0].totals != want || u.ByModel[0].Images != images {
		t.Errorf("usage %s; want %+v and %d images of %s", r.Raw, want, images, model)
	}
	var grants struct {
		Available money.Amount `json:"total_available"`
	}
	r = c.Call(t, "GET", "/v1/dashboard/billing/credit_grants", nil)
	if err := json.Unmarshal(r.Raw, &grants); err != nil || grants.Available != scene.CreditOfJobs-cost {
		t.Errorf("credit grants %s, %v", r, err)
	}
}

// checkOperatorJobs checks the operator's lists of a customer's jobs by status.
func checkOperatorJobs(t testing.TB, c *scene.Customer, model string, states map[string]string, cost money.Amount) {
	t.Helper()
	all := c.JobsOf(t, c.ID)
	if len(all) != len(states) {
		t.Errorf("the operator sees %d jobs, want %d", len(all), len(states))
	}
	var sum money.Amount
	for _, o := range all {
		sum += o.Cost
		if o.Status != states[o.ID] || o.Model != model || o.Account != c.ID || len(o.Attempts) != 1 || !o.Has("queued") || !o.Has("submitted") ||
			!o.Has(o.Status) {
			t.Errorf("the operator sees %+v; want the status %s", o, states[o.ID])
		}
		var page struct{ Data []scene.OperatorJob }
		c.Admin("GET", "/jobs?account="+c.ID+"&status="+o.Status+"&model="+model+"&line="+model, nil, &page)
		listed := false
		for _, other := range page.Data {
			listed = listed || other.ID == o.ID
			if other.Status != o.Status {
				t.Errorf("a list of %s jobs has %s", o.Status, other.Raw)
			}
		}
		if !listed {
			t.Errorf("job %s is in no list of %s jobs", o.ID, o.Status)
		}
	}
	if sum != cost {
		t.Errorf("the jobs cost %s, want %s", sum, cost)
	}
}

// queuedJobs checks that jobs wait while a line is at max_concurrent, show their position, start in
// order, and are never rejected.
func queuedJobs(t *testing.T, p *scene.Node, s fakestudio.Fake) {
	c, other := p.Customer(), p.Customer()
	ready := make(chan struct{})
	open := sync.OnceFunc(func() { close(ready) })
	defer open()
	s.Expect(fakestudio.Behaviour{Until: ready})
	first := c.Submit(t, "image", scene.JobRequest("queue", "1", nil))
	c.Becomes(t, "image", first, "processing")
	var ids []string
	for i := range 3 {
		ids = append(ids, c.Submit(t, "image", scene.JobRequest("queue", fmt.Sprint(i+2), nil)))
	}
	// Accounts take turns, so the first job of another account comes before the second job of the
	// first account.
	otherFirst := other.Submit(t, "image", scene.JobRequest("queue", "fair", nil))
	wantPosition := func(c *scene.Customer, id string, place int64) {
		t.Helper()
		scene.Eventually(t, fmt.Sprintf("job %s has %d ahead", id, place), func() bool {
			j := c.Poll(t, "image", id)
			return j.Status == "queued" && *j.Position == place
		})
	}
	wantPosition(c, ids[0], 0)
	wantPosition(other, otherFirst, 1)
	wantPosition(c, ids[1], 2)
	wantPosition(c, ids[2], 3)
	c.CheckFunds(t, 0, 4*scene.PricePicture)
	if n := len(s.Submissions()); n != 1 {
		t.Errorf("%d submissions to a line with one slot", n)
	}
	open()
	for _, id := range append(ids, first) {
		c.Becomes(t, "image", id, "succeeded")
	}
	other.Becomes(t, "image", otherFirst, "succeeded")
	c.CheckFunds(t, 4*scene.PricePicture, 0)
	prompts := []string{`"1"`, `"2"`, `"fair"`, `"3"`, `"4"`}
	for i, sub := range s.Submissions() {
		if i < len(prompts) && !strings.Contains(string(sub.Body), `"prompt":`+prompts[i]) {
			t.Errorf("submission %d is %s; want prompt %s", i, sub.Body, prompts[i])
		}
	}
}

// onceJobs checks Idempotency-Key. Repeated requests get the same job, even if they run concurrently.
// A different request with the key is rejected. A rejected submission does not use up the key.
func onceJobs(t *testing.T, p *scene.Node, s fakestudio.Fake) {
	c, other := p.Customer(), p.Customer()
	body := scene.JobRequest("once", "a boat", nil)
	if r := c.Call(t, "POST", scene.PathGenerate, scene.JobRequest("once", "", nil), "Idempotency-Key", "k-1"); r.Status != 400 ||
		r.Err(t).Code != "missing_prompt" {
		t.Errorf("without prompt: %s", r)
	}
	const copies = 8
	ids := make([]string, copies)
	replayed := make([]bool, copies)
	var all sync.WaitGroup
	for i := range copies {
		all.Go(func() {
			r := c.Call(t, "POST", scene.PathGenerate, body, "Idempotency-Key", "k-1")
			ids[i], replayed[i] = c.CheckAccepted(t, "image", r), r.Header.Get("Idempotent-Replayed") == "true"
		})
	}
	all.Wait()
	created := 0
	for i := range copies {
		if ids[i] != ids[0] {
			t.Errorf("copies of one request got the jobs %v", ids)
		}
		if !replayed[i] {
			created++
		}
	}
	if created != 1 {
		t.Errorf("%d of the copies created a job; want 1", created)
	}
	c.Becomes(t, "image", ids[0], "succeeded")
	if again := c.Submit(t, "image", body, "Idempotency-Key", "k-1"); again != ids[0] {
		t.Errorf("after the end of the job, the key created job %s", again)
	}
	for name, r := range map[string]scene.Reply{
		"other body": c.Call(t, "POST", scene.PathGenerate, scene.JobRequest("once", "a ship", nil), "Idempotency-Key", "k-1"),
		"other path": c.Call(t, "POST", scene.PathEdit,
			scene.JobRequest("once", "a boat", map[string]any{"image": dataURI(fakestudio.Picture(0))}),
			"Idempotency-Key", "k-1"),
	} {
		if e := r.Err(t); r.Status != 400 || e.Code != "invalid_request" || e.Type != "invalid_request_error" {
			t.Errorf("%s: %s", name, r)
		}
	}
	if mine := other.Submit(t, "image", body, "Idempotency-Key", "k-1"); mine == ids[0] {
		t.Error("another account with the same key got the job")
	} else {
		other.Becomes(t, "image", mine, "succeeded")
	}
	c.CheckFunds(t, scene.PricePicture, 0)
	other.CheckFunds(t, scene.PricePicture, 0)
	if n := len(s.Submissions()); n != 2 {
		t.Errorf("%d submissions for two jobs", n)
	}
}

// refusedJobs sends invalid submissions and polls. Each gets the documented error. No money is held,
// and the provider gets no request.
func refusedJobs(t *testing.T, p *scene.Node, s fakestudio.Fake) {
	c, other := p.Customer(), p.Customer()
	for name, tt := range map[string]struct {
		path, body, code, param string
	}{
		"no prompt":      {scene.PathGenerate, `{"model":"plain"}`, "missing_prompt", "prompt"},
		"edit, no image": {scene.PathEdit, `{"model":"plain","n":0}`, "invalid_request", "image"},
		"n not whole":    {scene.PathGenerate, `{"model":"plain","prompt":"x","n":1.5}`, "invalid_request", "n"},
		"n too large":    {scene.PathGenerate, `{"model":"plain","prompt":"x","n":5}`, "invalid_request", "n"},
		"tier":           {scene.PathGenerate, `{"model":"plain","prompt":"x","size":"8K"}`, "unsupported_resolution", "size"},
		"video tier":     {scene.PathVideo, `{"model":"hurt-clip","prompt":"x","resolution":"8K"}`, "invalid_request", "resolution"},
		"ratio":          {scene.PathGenerate, `{"model":"plain","prompt":"x","size":"3:2"}`, "invalid_request", "size"},
		"duration":       {scene.PathVideo, `{"model":"hurt-clip","prompt":"x","duration":7}`, "invalid_request", "duration"},
		"references":     {scene.PathVideo, `{"model":"hurt-clip","prompt":"x","images":["aaaa","aaaa","aaaa"]}`, "invalid_request", "images"},
		"callback": {scene.PathGenerate, `{"model":"plain","prompt":"x","callback_url":"http://127.0.0.1/x"}`, "invalid_callback_url",
			"callback_url"},
		"callBackUrl": {scene.PathGenerate, `{"model":"plain","prompt":"x","callBackUrl":"ftp://example.com/x"}`, "invalid_callback_url",
			"callBackUrl"},
		"callback, number": {scene.PathGenerate, `{"model":"plain","prompt":"x","callback_url":7}`, "invalid_callback_url", "callback_url"},
		"callback, long": {scene.PathVideo, `{"model":"hurt-clip","prompt":"x","callback_url":"https://example.com/` +
			strings.Repeat("x", 2000) + `"}`, "invalid_callback_url", "callback_url"},
		"no such model": {scene.PathGenerate, `{"model":"nothing","prompt":"x"}`, "model_not_found", "model"},
		"no model":      {scene.PathGenerate, `{"prompt":"x"}`, "model_not_found", "model"},
		"video model":   {scene.PathGenerate, `{"model":"hurt-clip","prompt":"x"}`, "model_not_found", "model"},
		"image model":   {scene.PathVideo, `{"model":"plain","prompt":"x"}`, "model_not_found", "model"},
		"JSON":          {scene.PathGenerate, `{"model":`, "invalid_json", ""},
		"no object":     {scene.PathVideo, `[]`, "invalid_request", ""},
		"UTF-8":         {scene.PathGenerate, "{\"model\":\"plain\",\"prompt\":\"\xff\"}", "invalid_encoding", ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := c.Call(t, "POST", tt.path, []byte(tt.body))
			e := r.Err(t)
			if r.Status != 400 || e.Code != tt.code || e.Param() != tt.param || e.Type != "invalid_request_error" || e.Message == "" {
				t.Errorf("%s; want the code %s and the param %q", r, tt.code, tt.param)
			}
		})
	}
	poor := *c
	poor.ID, poor.Key = p.Account(0.03, nil)
	if r := poor.Call(t, "POST", scene.PathGenerate, scene.JobRequest("plain", "x", nil)); r.Status != http.StatusPaymentRequired ||
		r.Err(t).Code != "insufficient_quota" {
		t.Errorf("a job that costs more than the balance: %s", r)
	}
	c.CheckFunds(t, 0, 0)
	if n := len(s.Submissions()); n != 0 {
		t.Errorf("%d submissions from rejected jobs", n)
	}

	id := c.Submit(t, "image", scene.JobRequest("plain", "x", nil))
	unknownKey := scene.Customer{Node: p, Key: "sk-nothing"}
	for name, tt := range map[string]struct {
		caller *scene.Customer
		path   string
		status int
		code   string
	}{
		"wrong kind":      {c, "/v1/videos/jobs/" + id, 404, "job_not_found"},
		"other account":   {other, "/v1/images/jobs/" + id, 404, "job_not_found"},
		"unknown id":      {c, "/v1/images/jobs/job_00000000000000000000000000", 404, "job_not_found"},
		"strange id":      {c, "/v1/images/jobs/%00'\"%F0%9F%9A%A2", 404, "job_not_found"},
		"below a job":     {c, "/v1/images/jobs/" + id + "/x", 404, "not_found"},
		"no key":          {&unknownKey, "/v1/images/jobs/" + id, 401, "invalid_api_key"},
		"operator, wrong": {c, "/admin/v1/jobs/" + id, 401, "invalid_api_key"},
	} {
		t.Run(name, func(t *testing.T) {
			if r := tt.caller.Call(t, "GET", tt.path, nil); r.Status != tt.status || r.Err(t).Code != tt.code {
				t.Errorf("%s; want %d %s", r, tt.status, tt.code)
			}
		})
	}
	c.Becomes(t, "image", id, "succeeded")
}

// failoverJobs plays a failing line. Its attempts cost nothing, and another line runs the job.
// Without another line, the job fails and its hold is released. Fewer images than requested cost
// less.
func failoverJobs(t *testing.T, p *scene.Node, broken, good fakestudio.Fake) {
	c := p.Customer()
	broken.Always(func([]byte) fakestudio.Behaviour {
		return fakestudio.Refusal(500, `{"detail":"internal"}`)
	})
	good.Expect(fakestudio.Behaviour{Images: 1}, fakestudio.Behaviour{CutLinks: 1, BadLinks: 1})
	less := c.Submit(t, "image", scene.JobRequest("hurt", "less", map[string]any{"n": 2}))
	j := c.Becomes(t, "image", less, "succeeded")
	checkResult(t, c, "image", "hurt", j)
	if len(j.Data) != 1 {
		t.Errorf("want a result with one image: %s", j.Raw)
	}
	bad := c.Submit(t, "image", scene.JobRequest("hurt", "links", map[string]any{"n": 1, "size": "2K"}))
	c.Becomes(t, "image", bad, "succeeded")
	clip := c.Submit(t, "video", scene.JobRequest("hurt-clip", "x", nil))
	f := c.Becomes(t, "video", clip, "failed")
	if f.Error.Code != "upstream_error" || f.Error.Type != "upstream_error" || f.Error.Param() != "" {
		t.Errorf("failed job %s", f.Raw)
	}
	c.CheckFunds(t, scene.PricePicture+scene.PriceLarge, 0)
	if o := p.OperatorJob(t, less); o.Line != "hurt-2" || len(o.Attempts) < 2 || o.Attempts[0].Line != "hurt-1" || o.Attempts[0].Code == "" {
		t.Errorf("the operator sees %+v", o)
	}
	if n := good.AcceptedCount(); n != 2 {
		t.Errorf("the good line got %d jobs; want 2", n)
	}
}

// maskedJob plays an edit with a mask in the format of OpenAI's clients, at a provider that needs
// black and white masks.
func maskedJob(t *testing.T, p *scene.Node, s fakestudio.Fake) {
	c := p.Customer()
	mask := image.NewNRGBA(image.Rect(0, 0, 64, 48))
	for x := range 32 {
		mask.Set(x, 0, color.Black)
	}
	var file bytes.Buffer
	if err := png.Encode(&file, mask); err != nil {
		t.Fatal(err)
	}
	more := map[string]any{"image": dataURI(fakestudio.Picture(3)), "mask": dataURI(file.Bytes())}
	id := c.CheckAccepted(t, "image", c.Call(t, "POST", scene.PathEdit, scene.JobRequest("masked", "a hat", more)))
	checkResult(t, c, "image", "masked", c.Becomes(t, "image", id, "succeeded"))
	c.CheckFunds(t, scene.PricePicture, 0)
	if sent := s.Submissions(); len(sent) != 1 || sent[0].Path != "/v1/flux-pro-1.0-fill" {
		t.Errorf("sent %+v", sent)
	}
}

// paidTier plays an edit of a picture with an unknown ratio, at the more expensive tier. The provider
// must get this tier.
func paidTier(t *testing.T, p *scene.Node, m fakestudio.Provider, s fakestudio.Fake, model string) {
	words := map[string]string{
		"fal": `"image_size":{"height":2048,"width":2048}`, "openai": "2048x2048", "replicate": `"resolution":"2K"`,
		"gemini": `"imageSize":"2K"`, "ark": `"size":"2K"`, "dashscope": `"size":"2K"`, "xai": `"resolution":"2k"`,
	}
	c := p.Customer()
	body := scene.JobRequest(model, "a tier", map[string]any{"image": dataURI(fakestudio.Picture(3)), "resolution": "2K"})
	id := c.CheckAccepted(t, "image", c.Call(t, "POST", "/v1/images/edits", body))
	c.Becomes(t, "image", id, "succeeded")
	if got := s.Submissions()[0].Body; words[m.Name] == "" || !strings.Contains(string(got), words[m.Name]) {
		t.Errorf("the request is %s, want %s", got, words[m.Name])
	}
	c.CheckFunds(t, scene.PriceLarge, 0)
}
