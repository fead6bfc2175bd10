package gatewaytest_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"image/png"
	"net/http"
	"strings"
	"sync"
	"testing"

	"tollgate/internal/gatewaytest"
	"tollgate/internal/gatewaytest/fakestudio"
	"tollgate/internal/money"
	"tollgate/internal/store/storetest"
)

// TestJobs tries image and video jobs in all that happens to them, on both
// databases. Most of it is waiting, so all of it goes on at a time, however few
// processors there are.
func TestJobs(t *testing.T) {
	t.Parallel()
	binary := gatewaytest.Binary(t)
	type engine struct {
		name  string
		fresh func(testing.TB) string
	}
	sqlite, postgres := engine{"sqlite", storetest.SQLite}, engine{"postgres", storetest.PostgreSQL}
	var all sync.WaitGroup
	for _, part := range []struct {
		name string
		test func(t *testing.T, binary, database string)
		on   []engine
	}{
		{"lives", livesOfJobs, []engine{sqlite, postgres}},
		{"references", references, []engine{sqlite, postgres}},
		{"strangers", strangersResults, []engine{sqlite}},
		{"kills", killsAtEachStep, []engine{sqlite, postgres}},
		{"stop", stopWithJobs, []engine{sqlite, postgres}},
		{"events", eventsOfJobs, []engine{sqlite, postgres}},
		{"deliveries", killsAroundDeliveries, []engine{sqlite, postgres}},
		{"slots", slotsOverNodes, []engine{postgres}},
	} {
		for _, on := range part.on {
			all.Go(func() {
				t.Run(part.name+"/"+on.name, func(t *testing.T) { part.test(t, binary, on.fresh(t)) })
			})
		}
	}
	all.Wait()
}

// livesOfJobs is the life of jobs as users see it, with every provider, on both
// databases.
func livesOfJobs(t *testing.T, binary, database string) {
	p := newPlant(t, binary, database, nil)
	var models, lines []map[string]any
	var plays []func(t *testing.T)
	add := func(name string, model, line map[string]any, play func(t *testing.T)) {
		models, lines = append(models, model), append(lines, line)
		plays = append(plays, func(t *testing.T) { t.Run(name, play) })
	}
	for _, m := range makers() {
		for _, kind := range []string{"image", "video"} {
			s, id := m.open(t), m.name+"-"+kind
			add(id, modelOf(kind, id, nil), m.jobLine(id, s, kind, nil, id), func(t *testing.T) { liveJob(t, p, m, s, kind, id) })
		}
	}
	for _, m := range makers() {
		s, id := m.open(t), m.name+"-tiers"
		line := m.jobLine(id, s, "image", nil, id)
		if m.name == "openai" { // a compatible vendor's model
			line["models"] = map[string]string{id: "flux"}
		}
		add(id, imageModel(id, nil), line, func(t *testing.T) { paidTier(t, p, m, s, id) })
	}
	fal := makerOf(t, "fal")
	queue := fal.open(t)
	add("queue", imageModel("queue", nil), fal.jobLine("queue", queue, "image", map[string]any{"max_concurrent": 1}, "queue"),
		func(t *testing.T) { queuedJobs(t, p, queue) })
	once := fal.open(t)
	add("once", imageModel("once", nil), fal.jobLine("once", once, "image", nil, "once"), func(t *testing.T) { onceJobs(t, p, once) })
	plain := fal.open(t)
	add("refusals", imageModel("plain", nil), fal.jobLine("plain", plain, "image", nil, "plain"), func(t *testing.T) { refusedJobs(t, p, plain) })
	broken, good := fal.open(t), fal.open(t)
	models = append(models, imageModel("hurt", nil))
	lines = append(lines, fal.jobLine("hurt-2", good, "image", map[string]any{"priority": 2}, "hurt"))
	add("failing over", videoModel("hurt-clip", nil), fal.jobLine("hurt-1", broken, "image", nil, "hurt", "hurt-clip"),
		func(t *testing.T) { hurtJobs(t, p, broken, good) })
	p.catalog(models, lines)

	var all sync.WaitGroup
	for _, play := range plays {
		all.Go(func() { play(t) })
	}
	all.Wait()
	p.audited(t)
}

// modelOf is a model of a kind.
func modelOf(kind, id string, more map[string]any) map[string]any {
	if kind == "video" {
		return videoModel(id, more)
	}
	return imageModel(id, more)
}

// liveJob submits good and bad jobs to a provider and follows them, with their
// money, to the end.
func liveJob(t *testing.T, p *plant, m maker, s studio, kind, model string) {
	c := p.customer()
	more, price, images := map[string]any{"size": "16:9", "n": 2}, money.Amount(2*pricePicture), int64(2)
	if kind == "video" {
		more, price, images = map[string]any{"duration": clipSeconds, "ratio": "16:9"}, priceClip, 0
	}
	ready := make(chan struct{})
	open := sync.OnceFunc(func() { close(ready) })
	defer open()
	refusal, code := m.unsafe(kind)
	s.Always(func(body []byte) fakestudio.Behaviour {
		if bytes.Contains(body, []byte("a bad boat")) {
			return refusal
		}
		return fakestudio.Behaviour{Until: ready}
	})
	id := c.submit(t, kind, order(model, "a boat", more))
	c.becomes(t, kind, id, "processing")
	c.owns(t, 0, price)
	if o := p.operated(t, id); o.Account != c.account || o.Line != model || o.Held != price || o.Cost != 0 || o.Status != "processing" {
		t.Errorf("the operator sees %+v", o)
	}
	open()
	j := c.becomes(t, kind, id, "succeeded")
	c.checkResult(t, kind, model, j)
	if again := c.poll(t, kind, id); again.raw != j.raw {
		t.Errorf("a job that had ended was shown as %s and then as %s", j.raw, again.raw)
	}
	c.owns(t, price, 0)

	lost := c.submit(t, kind, order(model, "a bad boat", more))
	f := c.becomes(t, kind, lost, "failed")
	if f.Error.Code != code || f.Error.Type != "invalid_request_error" || strings.Contains(f.raw, credential) || strings.Contains(f.raw, s.URL()) {
		t.Errorf("failed job %s; want %s", f.raw, code)
	}
	c.owns(t, price, 0)

	if charged := c.charges(t); len(charged) != 1 || charged[id] != price {
		t.Errorf("charged %v; want %s for %s", charged, price, id)
	}
	c.checkUsage(t, model, price, 2, 1, 1, images)
	c.checkOperated(t, model, map[string]string{id: "succeeded", lost: "failed"}, price)
	calls := 2
	if m.single && kind == "image" { // two images a job; the refusal of the first may spare the second
		calls = 3
	}
	if n := len(s.Submissions()); n != calls && (calls == 2 || n != 4) {
		t.Errorf("%d submissions for two jobs", n)
	}
}

// checkResult checks a job that succeeded, and its files.
func (c *customer) checkResult(t testing.TB, kind, model string, j shownJob) {
	t.Helper()
	if kind == "video" {
		if want := fmt.Sprintf(`{"clips":1,"model":%q}`, model); string(j.Usage) != want || len(j.Data) != 1 {
			t.Errorf("usage %s of %s; want %s", j.Usage, j.raw, want)
		}
		c.opens(t, j.Data[0].URL, "video/mp4", fakestudio.Clip())
		return
	}
	if want := fmt.Sprintf(`{"images":%d,"resolution":"1K","model":%q}`, len(j.Data), model); string(j.Usage) != want {
		t.Errorf("usage %s of %s; want %s", j.Usage, j.raw, want)
	}
	for _, d := range j.Data {
		c.opens(t, d.URL, "image/png", pictureLike(c.call(t, "GET", c.here(d.URL), nil).raw))
	}
}

// pictureLike is the picture of the fakes that some bytes are, or a picture that
// they are not: the squares in it are its number.
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

// checkUsage checks the account's own view of one model's use.
func (c *customer) checkUsage(t testing.TB, model string, cost money.Amount, requests, billed, failed, images int64) {
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
	r := c.call(t, "GET", "/v1/usage", nil)
	if err := json.Unmarshal(r.raw, &u); err != nil {
		t.Fatalf("%v in %s", err, r)
	}
	want := totals{cost, requests, billed, failed}
	if u.Object != "usage" || u.Balance.USD != creditOfJobs-cost || u.Total != want || len(u.ByModel) != 1 ||
		u.ByModel[0].Model != model || u.ByModel[0].totals != want || u.ByModel[0].Images != images {
		t.Errorf("usage %s; want %+v and %d images of %s", r.raw, want, images, model)
	}
	var grants struct {
		Available money.Amount `json:"total_available"`
	}
	r = c.call(t, "GET", "/v1/dashboard/billing/credit_grants", nil)
	if err := json.Unmarshal(r.raw, &grants); err != nil || grants.Available != creditOfJobs-cost {
		t.Errorf("credit grants %s, %v", r, err)
	}
}

// checkOperated checks the operator's lists of a customer's jobs, by status.
func (c *customer) checkOperated(t testing.TB, model string, states map[string]string, cost money.Amount) {
	t.Helper()
	all := c.jobsOf(t, c.account)
	if len(all) != len(states) {
		t.Errorf("the operator sees %d jobs, want %d", len(all), len(states))
	}
	var sum money.Amount
	for _, o := range all {
		sum += o.Cost
		if o.Status != states[o.ID] || o.Model != model || o.Account != c.account || len(o.Attempts) != 1 || !o.has("queued") || !o.has("submitted") || !o.has(o.Status) {
			t.Errorf("the operator sees %+v; want it %s", o, states[o.ID])
		}
		var page struct{ Data []operated }
		c.Admin("GET", "/jobs?account="+c.account+"&status="+o.Status+"&model="+model+"&line="+model, nil, &page)
		found := false
		for _, other := range page.Data {
			found = found || other.ID == o.ID
			if other.Status != o.Status {
				t.Errorf("a list of %s jobs has %s", o.Status, other.raw)
			}
		}
		if !found {
			t.Errorf("job %s is in no list of %s jobs", o.ID, o.Status)
		}
	}
	if sum != cost {
		t.Errorf("the jobs cost %s, want %s", sum, cost)
	}
}

// queuedJobs: with a line at its cap jobs wait, know their place, and start in
// turn; nothing is refused.
func queuedJobs(t *testing.T, p *plant, s studio) {
	c, other := p.customer(), p.customer()
	ready := make(chan struct{})
	open := sync.OnceFunc(func() { close(ready) })
	defer open()
	s.Expect(fakestudio.Behaviour{Until: ready})
	first := c.submit(t, "image", order("queue", "1", nil))
	c.becomes(t, "image", first, "processing")
	var ids []string
	for i := range 3 {
		ids = append(ids, c.submit(t, "image", order("queue", fmt.Sprint(i+2), nil)))
	}
	// One job of each account has its turn, so another account's first job
	// comes before the second of the first one.
	fair := other.submit(t, "image", order("queue", "fair", nil))
	wants := func(c *customer, id string, place int64) {
		t.Helper()
		eventually(t, fmt.Sprintf("job %s has %d ahead", id, place), func() bool {
			j := c.poll(t, "image", id)
			return j.Status == "queued" && *j.Position == place
		})
	}
	wants(c, ids[0], 0)
	wants(other, fair, 1)
	wants(c, ids[1], 2)
	wants(c, ids[2], 3)
	c.owns(t, 0, 4*pricePicture)
	if n := len(s.Submissions()); n != 1 {
		t.Errorf("%d submissions to a line of one slot", n)
	}
	open()
	for _, id := range append(ids, first) {
		c.becomes(t, "image", id, "succeeded")
	}
	other.becomes(t, "image", fair, "succeeded")
	c.owns(t, 4*pricePicture, 0)
	prompts := []string{`"1"`, `"2"`, `"fair"`, `"3"`, `"4"`}
	for i, sub := range s.Submissions() {
		if i < len(prompts) && !strings.Contains(string(sub.Body), `"prompt":`+prompts[i]) {
			t.Errorf("submission %d is %s; want prompt %s", i, sub.Body, prompts[i])
		}
	}
}

// onceJobs: the same Idempotency-Key is the same job, also for twins, on
// another request it is refused, and a refused submission does not use it up.
func onceJobs(t *testing.T, p *plant, s studio) {
	c, other := p.customer(), p.customer()
	body := order("once", "a boat", nil)
	if r := c.call(t, "POST", pathGenerate, order("once", "", nil), "Idempotency-Key", "k-1"); r.status != 400 || r.told(t).Code != "missing_prompt" {
		t.Errorf("without prompt: %s", r)
	}
	const twins = 8
	ids := make([]string, twins)
	replayed := make([]bool, twins)
	var all sync.WaitGroup
	for i := range twins {
		all.Go(func() {
			r := c.call(t, "POST", pathGenerate, body, "Idempotency-Key", "k-1")
			ids[i], replayed[i] = c.accepted(t, "image", r), r.header.Get("Idempotent-Replayed") == "true"
		})
	}
	all.Wait()
	fresh := 0
	for i := range twins {
		if ids[i] != ids[0] {
			t.Errorf("twins got the jobs %v", ids)
		}
		if !replayed[i] {
			fresh++
		}
	}
	if fresh != 1 {
		t.Errorf("%d of the twins were told that they are the first", fresh)
	}
	c.becomes(t, "image", ids[0], "succeeded")
	if again := c.submit(t, "image", body, "Idempotency-Key", "k-1"); again != ids[0] {
		t.Errorf("after its end the key made job %s", again)
	}
	for name, r := range map[string]reply{
		"other body": c.call(t, "POST", pathGenerate, order("once", "a ship", nil), "Idempotency-Key", "k-1"),
		"other path": c.call(t, "POST", pathEdit, order("once", "a boat", map[string]any{"image": dataURI(fakestudio.Picture(0))}), "Idempotency-Key", "k-1"),
	} {
		if e := r.told(t); r.status != 400 || e.Code != "invalid_request" || e.Type != "invalid_request_error" {
			t.Errorf("%s: %s", name, r)
		}
	}
	if mine := other.submit(t, "image", body, "Idempotency-Key", "k-1"); mine == ids[0] {
		t.Error("another account got the job of the key")
	} else {
		other.becomes(t, "image", mine, "succeeded")
	}
	c.owns(t, pricePicture, 0)
	other.owns(t, pricePicture, 0)
	if n := len(s.Submissions()); n != 2 {
		t.Errorf("%d submissions for two jobs", n)
	}
}

// refusedJobs: what is no good submission or poll gets the specified error,
// and nothing is held, sent or counted.
func refusedJobs(t *testing.T, p *plant, s studio) {
	c, other := p.customer(), p.customer()
	for name, tt := range map[string]struct {
		path, body, code, param string
	}{
		"no prompt":        {pathGenerate, `{"model":"plain"}`, "missing_prompt", "prompt"},
		"edit, no image":   {pathEdit, `{"model":"plain","n":0}`, "invalid_request", "image"},
		"n not whole":      {pathGenerate, `{"model":"plain","prompt":"x","n":1.5}`, "invalid_request", "n"},
		"n too large":      {pathGenerate, `{"model":"plain","prompt":"x","n":5}`, "invalid_request", "n"},
		"tier":             {pathGenerate, `{"model":"plain","prompt":"x","size":"8K"}`, "unsupported_resolution", "size"},
		"video tier":       {pathVideo, `{"model":"hurt-clip","prompt":"x","resolution":"8K"}`, "invalid_request", "resolution"},
		"ratio":            {pathGenerate, `{"model":"plain","prompt":"x","size":"3:2"}`, "invalid_request", "size"},
		"duration":         {pathVideo, `{"model":"hurt-clip","prompt":"x","duration":7}`, "invalid_request", "duration"},
		"references":       {pathVideo, `{"model":"hurt-clip","prompt":"x","images":["aaaa","aaaa","aaaa"]}`, "invalid_request", "images"},
		"callback":         {pathGenerate, `{"model":"plain","prompt":"x","callback_url":"http://127.0.0.1/x"}`, "invalid_callback_url", "callback_url"},
		"callBackUrl":      {pathGenerate, `{"model":"plain","prompt":"x","callBackUrl":"ftp://example.com/x"}`, "invalid_callback_url", "callBackUrl"},
		"callback, number": {pathGenerate, `{"model":"plain","prompt":"x","callback_url":7}`, "invalid_callback_url", "callback_url"},
		"callback, long":   {pathVideo, `{"model":"hurt-clip","prompt":"x","callback_url":"https://example.com/` + strings.Repeat("x", 2000) + `"}`, "invalid_callback_url", "callback_url"},
		"no such model":    {pathGenerate, `{"model":"nothing","prompt":"x"}`, "model_not_found", "model"},
		"no model":         {pathGenerate, `{"prompt":"x"}`, "model_not_found", "model"},
		"video model":      {pathGenerate, `{"model":"hurt-clip","prompt":"x"}`, "model_not_found", "model"},
		"image model":      {pathVideo, `{"model":"plain","prompt":"x"}`, "model_not_found", "model"},
		"JSON":             {pathGenerate, `{"model":`, "invalid_json", ""},
		"no object":        {pathVideo, `[]`, "invalid_request", ""},
		"UTF-8":            {pathGenerate, "{\"model\":\"plain\",\"prompt\":\"\xff\"}", "invalid_encoding", ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := c.call(t, "POST", tt.path, []byte(tt.body))
			e := r.told(t)
			if r.status != 400 || e.Code != tt.code || e.param() != tt.param || e.Type != "invalid_request_error" || e.Message == "" {
				t.Errorf("%s; want %s at %q", r, tt.code, tt.param)
			}
		})
	}
	poor := *c
	poor.account, poor.key = p.Account(0.03, nil)
	if r := poor.call(t, "POST", pathGenerate, order("plain", "x", nil)); r.status != http.StatusPaymentRequired || r.told(t).Code != "insufficient_quota" {
		t.Errorf("a job for more than the balance: %s", r)
	}
	c.owns(t, 0, 0)
	if n := len(s.Submissions()); n != 0 {
		t.Errorf("%d submissions of refused jobs", n)
	}

	id := c.submit(t, "image", order("plain", "x", nil))
	nobody := customer{plant: p, key: "sk-nothing"}
	for name, tt := range map[string]struct {
		who    *customer
		path   string
		status int
		code   string
	}{
		"wrong kind":      {c, "/v1/videos/jobs/" + id, 404, "job_not_found"},
		"other account":   {other, "/v1/images/jobs/" + id, 404, "job_not_found"},
		"unknown id":      {c, "/v1/images/jobs/job_00000000000000000000000000", 404, "job_not_found"},
		"strange id":      {c, "/v1/images/jobs/%00'\"%F0%9F%9A%A2", 404, "job_not_found"},
		"below a job":     {c, "/v1/images/jobs/" + id + "/x", 404, "not_found"},
		"no key":          {&nobody, "/v1/images/jobs/" + id, 401, "invalid_api_key"},
		"operator, wrong": {c, "/admin/v1/jobs/" + id, 401, "invalid_api_key"},
	} {
		t.Run(name, func(t *testing.T) {
			if r := tt.who.call(t, "GET", tt.path, nil); r.status != tt.status || r.told(t).Code != tt.code {
				t.Errorf("%s; want %d %s", r, tt.status, tt.code)
			}
		})
	}
	c.becomes(t, "image", id, "succeeded")
}

// hurtJobs: a line that fails costs nothing, another one does the work; if
// there is none the job fails and is given back; fewer images than asked for
// cost less.
func hurtJobs(t *testing.T, p *plant, broken, good studio) {
	c := p.customer()
	broken.Always(func([]byte) fakestudio.Behaviour {
		return fakestudio.Behaviour{Status: 500, Body: `{"detail":"internal"}`}
	})
	good.Expect(fakestudio.Behaviour{Images: 1}, fakestudio.Behaviour{CutLinks: 1, BadLinks: 1})
	less := c.submit(t, "image", order("hurt", "less", map[string]any{"n": 2}))
	j := c.becomes(t, "image", less, "succeeded")
	c.checkResult(t, "image", "hurt", j)
	if len(j.Data) != 1 {
		t.Errorf("one image was made: %s", j.raw)
	}
	bad := c.submit(t, "image", order("hurt", "links", map[string]any{"n": 1, "size": "2K"}))
	c.becomes(t, "image", bad, "succeeded")
	clip := c.submit(t, "video", order("hurt-clip", "x", nil))
	f := c.becomes(t, "video", clip, "failed")
	if f.Error.Code != "upstream_error" || f.Error.Type != "upstream_error" || f.Error.param() != "" {
		t.Errorf("failed job %s", f.raw)
	}
	c.owns(t, pricePicture+priceLarge, 0)
	if o := p.operated(t, less); o.Line != "hurt-2" || len(o.Attempts) < 2 || o.Attempts[0].Line != "hurt-1" || o.Attempts[0].Code == "" {
		t.Errorf("the operator sees %+v", o)
	}
	if n := good.Accepted(); n != 2 {
		t.Errorf("the good line was given %d jobs", n)
	}
}

// paidTier is an edit, whose ratio nobody knows, at the dearer tier: that is what
// the provider is asked for, in its own words.
func paidTier(t *testing.T, p *plant, m maker, s studio, model string) {
	words := map[string]string{
		"fal": `"image_size":{"height":2048,"width":2048}`, "openai": "2048x2048", "replicate": `"resolution":"2K"`,
		"gemini": `"imageSize":"2K"`, "ark": `"size":"2K"`, "dashscope": `"size":"2K"`,
	}
	c := p.customer()
	body := order(model, "a tier", map[string]any{"image": dataURI(fakestudio.Picture(3)), "resolution": "2K"})
	id := c.accepted(t, "image", c.call(t, "POST", "/v1/images/edits", body))
	c.becomes(t, "image", id, "succeeded")
	if got := s.Submissions()[0].Body; words[m.name] == "" || !strings.Contains(string(got), words[m.name]) {
		t.Errorf("the provider was asked %s, want %s", got, words[m.name])
	}
	c.owns(t, priceLarge, 0)
}
