package api_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	"tollgate/internal/account"
	"tollgate/internal/catalog"
	"tollgate/internal/ledger/requestlog"
	"tollgate/internal/store"
	"tollgate/internal/store/storetest"
)

// The endpoints of images and videos.
const (
	generations = "/v1/images/generations"
	edits       = "/v1/images/edits"
	videos      = "/v1/videos/generations"
)

// hat is a valid submission.
const hat = `{"model":"easel-1","prompt":"a hat"}`

// jobAnswer holds the members of job responses.
type jobAnswer struct {
	ID       string
	Object   string
	Status   string
	Model    string
	Created  int64
	Position *int64 `json:"queue_position"`
	ETA      *int64 `json:"eta_seconds"`
}

// accepted checks a 202 and returns the job.
func (r response) accepted(t *testing.T) jobAnswer {
	t.Helper()
	var seen jobAnswer
	if err := json.Unmarshal(r.body, &seen); err != nil || r.status != 202 || r.header.Get("Content-Type") != "application/json" {
		t.Fatalf("%d, %v: %s", r.status, err, r.body)
	}
	return seen
}

// as returns the headers with a key.
func as(secret string) []string { return []string{"Authorization", "Bearer " + secret} }

func TestSubmitAndPoll(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		d := newServer(t, db, nil)
		_, secret := d.key(account.KeySettings{})
		got := d.send("POST", generations, `{"model":"easel-1","prompt":"a hat","size":"2048x2048","n":3,"seed":7}`, as(secret)...)
		image := got.accepted(t)
		message := "The job is queued. Poll GET /v1/images/jobs/" + image.ID + " until `status` is `succeeded` or `failed`; " +
			"`data` then has the links. " +
			"To get the images in the response instead, send the header `Prefer: wait=60`, or use a key that waits for pictures."
		if want := fmt.Sprintf(`{"id":%q,"object":"image.generation.job","status":"queued","model":"easel-1","message":%q}`,
			image.ID, message); string(got.body) != want {
			t.Errorf("got %s, want %s", got.body, want)
		}
		if location, after := got.header.Get("Location"), got.header.Get("Retry-After"); location != "/v1/images/jobs/"+image.ID || after != "2" {
			t.Errorf("Location %q and Retry-After %q of an image", location, after)
		}
		video := d.send("POST", videos, `{"model":"reel-1","prompt":"a hat falls","duration":10,"resolution":"1080p"}`, as(secret)...).accepted(t)
		if video.Object != "video.generation.job" || video.Model != "reel-1" || !strings.HasPrefix(video.ID, "job_") {
			t.Errorf("%+v", video)
		}
		if ignored := got.header.Get("X-Tollgate-Ignored"); ignored != "" {
			t.Errorf("%s is reported as ignored", ignored)
		}
		if held := accountState(t, d).Held.String(); held != "1.05" { // 3 x 0.05 + 10 x 0.09
			t.Errorf("held %s USD", held)
		}
		got = d.send("POST", videos, `{"model":"reel-1","prompt":"x","user":"u","quality":"high"}`, as(secret)...)
		if ignored := got.header.Get("X-Tollgate-Ignored"); got.status != 202 || ignored != "user, quality" {
			t.Errorf("%d, %q is reported as ignored", got.status, ignored)
		}
		poll := d.send("GET", "/v1/images/jobs/"+image.ID, "", as(secret)...)
		var seen jobAnswer
		if err := json.Unmarshal(poll.body,
			&seen); err != nil || poll.status != 200 || seen.Status != "queued" || seen.Position == nil || seen.ETA == nil ||
			seen.Created == 0 || seen.ID != image.ID || strings.HasSuffix(string(poll.body), "\n") {
			t.Errorf("%d %s, %v", poll.status, poll.body, err)
		}
		if head := d.send("HEAD", "/v1/videos/jobs/"+video.ID, "", as(secret)...); head.status != 200 || len(head.body) != 0 {
			t.Errorf("HEAD: %d %s", head.status, head.body)
		}
	})
}

func TestPollsOfNoJob(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		d := newServer(t, db, nil)
		one := int64(1)
		_, secret := d.key(account.KeySettings{RPM: &one})
		image := d.send("POST", generations, hat, as(secret)...).accepted(t).ID
		stranger := d.poorKey()
		if got := d.send("GET", "/v1/images/jobs/"+image, "", as(secret)...); got.status != 200 {
			t.Errorf("a poll counts against the rate: %d %s", got.status, got.body)
		}
		for _, c := range []struct{ name, path, key string }{
			{"other kind", "/v1/videos/jobs/" + image, secret},
			{"other account", "/v1/images/jobs/" + image, stranger},
			{"unknown", "/v1/images/jobs/job_0", secret},
			{"of another shape", "/v1/images/jobs/a%20b", secret},
			{"with NUL", "/v1/images/jobs/job_%00", secret},
			{"not UTF-8", "/v1/videos/jobs/%ff", secret},
			{"long", "/v1/videos/jobs/" + strings.Repeat("x", 5000), secret},
			{"the pattern itself", "/v1/videos/jobs/{id}", secret},
		} {
			got := d.send("GET", c.path, "", as(c.key)...)
			if param := got.refused(t, 404, "job_not_found"); param != "" {
				t.Errorf("%s: param %q", c.name, param)
			}
		}
		for _, path := range []string{"/v1/images/jobs", "/v1/images/jobs/", "/v1/images/jobs/" + image + "/", "/v1/images/jobs/" + image + "/x",
			"/v1/images", "/v1/videos/edits", "/v1/jobs/" + image} {
			d.send("GET", path, "").refused(t, 404, "not_found")
		}
		d.send("GET", "/v1/images/jobs/"+image, "").refused(t, 401, "missing_api_key")
		if got := d.send("POST", "/v1/images/jobs/"+image, ""); got.status != 405 || got.header.Get("Allow") != "GET, HEAD" {
			t.Errorf("POST: %d, Allow %q", got.status, got.header.Get("Allow"))
		}
		if got := d.send("GET", edits, ""); got.status != 405 || got.header.Get("Allow") != "POST" {
			t.Errorf("GET: %d, Allow %q", got.status, got.header.Get("Allow"))
		}
	})
}

// poorKey returns a key of another account, without money.
func (s *server) poorKey() (secret string) {
	s.t.Helper()
	err := s.db.Update(s.t.Context(), func(tx *store.Tx) error {
		owner, err := account.CreateTx(tx, account.NewAccount{Name: "other"})
		if err != nil {
			return err
		}
		_, secret, err = account.CreateKeyTx(tx, owner.ID, account.KeySettings{})
		return err
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return secret
}

// TestOrderOfSubmissionChecks is TestOrderOfChecks for submissions.
func TestOrderOfSubmissionChecks(t *testing.T) {
	t.Parallel()
	d := newServer(t, onSQLite(t), nil)
	free := int64(1)
	_, secret := d.key(account.KeySettings{AllowedModels: []string{"gift-1", "reel-1", "old-2", "soon-2", "broken-2"},
		AllowedIPs: []string{"192.0.2.0/24"}, RPM: &free})
	tooLong := "\xff" + strings.Repeat("x", maxBody)
	key, from, packed := "Bearer "+secret, "192.0.2.1", "gzip"
	const rest = `"n":"many","size":9,"callback_url":7,"prompt":5`
	d.checkOrder([]faultyRequest{
		{"path", "POST", "/v1/images/generation", "", "203.0.113.7", packed, tooLong, 404, "not_found", ""},
		{"no key", "POST", edits, "", "203.0.113.7", packed, tooLong, 401, "missing_api_key", ""},
		{"unknown key", "POST", edits, "Bearer sk-x", "203.0.113.7", packed, tooLong, 401, "invalid_api_key", ""},
		{"address", "POST", edits, key, "203.0.113.7", packed, tooLong, 403, "permission_denied", ""},
		{"size", "POST", edits, key, from, packed, tooLong, 413, "request_too_large", ""},
		{"compressed", "POST", edits, key, from, packed, "\xff{", 400, "invalid_encoding", ""},
		{"UTF-8", "POST", edits, key, from, "", "\xff{", 400, "invalid_encoding", ""},
		{"JSON", "POST", edits, key, from, "", `{"model":`, 400, "invalid_json", ""},
		{"object", "POST", edits, key, from, "", `[]`, 400, "invalid_request", ""},
		{"repeated key", "POST", edits, key, from, "", `{"model":1,"mod\u0065l":2}`, 400, "invalid_json", ""},
		{"no model", "POST", edits, key, from, "", `{` + rest + `}`, 400, "model_not_found", "model"},
		{"unknown model", "POST", edits, key, from, "", `{"model":"nope",` + rest + `}`, 400, "model_not_found", "model"},
		{"chat model, retired", "POST", edits, key, from, "", `{"model":"old-1",` + rest + `}`, 400, "model_not_found", "model"},
		{"video model", "POST", edits, key, from, "", `{"model":"reel-1",` + rest + `}`, 400, "model_not_found", "model"},
		{"image model for video", "POST", videos, key, from, "", `{"model":"gift-1",` + rest + `}`, 400, "model_not_found", "model"},
		{"image model for chat", "POST", "/v1/chat/completions", key, from, "", `{"model":"gift-1",` + rest + `}`, 400, "model_not_found",
			"model"},
		{"image model for responses", "POST", "/v1/responses", key, from, "", `{"model":"gift-1",` + rest + `}`, 400, "model_not_found",
			"model"},
		{"retired", "POST", edits, key, from, "", `{"model":"old-2",` + rest + `}`, 400, "model_disabled", "model"},
		{"coming soon", "POST", edits, key, from, "", `{"model":"soon-2",` + rest + `}`, 400, "model_coming_soon", "model"},
		{"maintenance", "POST", edits, key, from, "", `{"model":"broken-2",` + rest + `}`, 503, "model_maintenance", "model"},
		{"model allowlist", "POST", edits, key, from, "", `{"model":"easel-1",` + rest + `}`, 403, "permission_denied", "model"},
		{"an edit without reference", "POST", edits, key, from, "", `{"model":"gift-1",` + rest + `}`, 400, "invalid_request", "image"},
		{"fields", "POST", generations, key, from, "", `{"model":"gift-1","prompt":"x","n":7}`, 400, "invalid_request", "n"},
		{"callback after the catalog's rules", "POST", generations, key, from, "",
			`{"model":"gift-1","prompt":"x","callBackUrl":"http://10.0.0.1/x","size":"4K"}`, 400, "unsupported_resolution", "size"},
		{"callback", "POST", generations, key, from, "", `{"model":"gift-1","prompt":"x","callBackUrl":"http://10.0.0.1/x"}`, 400,
			"invalid_callback_url", "callBackUrl"},
		{"nothing", "POST", generations, key, from, "", `{"model":"gift-1","prompt":"x"}`, 202, "", ""},
		{"rate", "POST", generations, key, from, "", `{"model":"gift-1","prompt":"x"}`, 429, "rate_limit_exceeded", ""},
	}, "Content-Type", "text/plain")
	if u := d.usage(); u.Total.Failed != 0 {
		t.Errorf("rejections count in usage: %+v", u.Total)
	}
}

// TestRefusedSubmissions covers one fault of each package that checks submissions; the packages
// test their rules.
func TestRefusedSubmissions(t *testing.T) {
	t.Parallel()
	d := newServer(t, onSQLite(t), nil)
	_, secret := d.key(account.KeySettings{})
	long := "https://example.com/" + strings.Repeat("x", 2000)
	for _, c := range []struct{ path, body, code, param string }{
		{generations, `{"model":"easel-1"}`, "missing_prompt", "prompt"},
		{generations, `{"model":"easel-1","prompt":"x","n":5}`, "invalid_request", "n"},
		{generations, `{"model":"easel-1","prompt":"x","n":2.5}`, "invalid_request", "n"},
		{generations, `{"model":"easel-1","prompt":"x","size":"4096x4096"}`, "unsupported_resolution", "size"},
		{generations, `{"model":"easel-1","prompt":"x","resolution":"8K"}`, "unsupported_resolution", "resolution"},
		{generations, `{"model":"easel-1","prompt":"x","size":"3:2"}`, "invalid_request", "size"},
		{generations, `{"model":"easel-1","prompt":"x","image":["aGk=","aGk=","aGk=","aGk="]}`, "invalid_request", "image"},
		{generations, `{"model":"easel-1","prompt":"x","image":"not base64!"}`, "invalid_request", "image"},
		{generations, `{"model":"easel-1","prompt":"x","style":{"file_id":"f"}}`, "invalid_request", "style.file_id"},
		{generations, `{"model":"easel-1","prompt":"x","style":{"url":"gs://bucket/x"}}`, "invalid_request", "style.url"},
		{generations, `{"model":"easel-1","prompt":"x","style":{"image_url":"http://10.0.0.1/x"}}`, "invalid_request", "style.image_url"},
		{generations, `{"model":"easel-1","prompt":"x","style":{"a":1,"A":2}}`, "invalid_request", "style.A"},
		{generations, `{"model":"easel-1","prompt":"x","seed":"7"}`, "invalid_request", "seed"},
		{generations, `{"model":"easel-1","prompt":"x","negative_prompt":"fog"}`, "invalid_request", "negative_prompt"},
		{generations, `{"model":"easel-1","prompt":"x","audio":true}`, "invalid_request", "audio"},
		{videos, `{"model":"reel-1","prompt":"x","audio":false}`, "invalid_request", "audio"},
		{videos, `{"model":"reel-1","prompt":"x","last_frame":"aGk="}`, "invalid_request", "last_frame"},
		{videos, `{"model":"reel-1","prompt":"x","image":{"url":"aGk=","role":"reference"}}`, "invalid_request", "image"},
		{edits, hat, "invalid_request", "image"},
		{videos, `{"model":"reel-1"}`, "missing_prompt", "prompt"},
		{videos, `{"model":"reel-1","prompt":"x","duration":6}`, "invalid_request", "duration"},
		{videos, `{"model":"reel-1","prompt":"x","resolution":"4K"}`, "invalid_request", "resolution"},
		{videos, `{"model":"reel-1","prompt":"x","aspect_ratio":"1:1"}`, "invalid_request", "aspect_ratio"},
		{videos, `{"model":"reel-1","prompt":"x","references":["a","b","c"]}`, "invalid_request", "references"},
		{generations, `{"model":"easel-1","prompt":"x","callback_url":""}`, "invalid_callback_url", "callback_url"},
		{generations, `{"model":"easel-1","prompt":"x","callback_url":"ftp://example.com"}`, "invalid_callback_url", "callback_url"},
		{generations, `{"model":"easel-1","prompt":"x","callback_url":"http://[::ffff:10.0.0.1]/x"}`, "invalid_callback_url", "callback_url"},
		{generations, `{"model":"easel-1","prompt":"x","callback_url":"http://2130706434/x"}`, "invalid_callback_url", "callback_url"},
		{videos, `{"model":"reel-1","prompt":"x","callBackUrl":"` + long + `"}`, "invalid_callback_url", "callBackUrl"},
		{videos, `{"model":"reel-1","prompt":"x","callBackUrl":["https://example.com"]}`, "invalid_callback_url", "callBackUrl"},
	} {
		if param := d.send("POST", c.path, c.body, as(secret)...).refused(t, 400, c.code); param != c.param {
			t.Errorf("%s: param %q, want %q", c.body, param, c.param)
		}
	}
	if state := accountState(t, d); state.Held != 0 {
		t.Errorf("rejections hold money: %+v", state)
	}
	if got := d.send("POST", generations, `{"model":"easel-1","prompt":"x","callback_url":"https://no-such-host.example.com/x?y=1"}`,
		as(secret)...); got.status != 202 {
		t.Errorf("a host that does not resolve now: %d %s", got.status, got.body)
	}
}

func TestFreeImagesHaveADailyQuota(t *testing.T) {
	t.Parallel()
	d := newServer(t, onSQLite(t), nil)
	secret := d.poorKey()
	d.send("POST", generations, `{"model":"gift-1","prompt":"x"}`, as(secret)...).accepted(t)
	got := d.send("POST", generations, `{"model":"gift-1","prompt":"x"}`, as(secret)...)
	got.refused(t, 429, "rate_limit_exceeded")
	if got.header.Get("x-should-retry") != "false" {
		t.Error("no x-should-retry although a retry cannot succeed")
	}
	got = d.send("POST", generations, hat, as(secret)...)
	got.refused(t, 402, "insufficient_quota")
}

// requests returns the request log.
func (s *server) requests() (rows []requestlog.Receipt) {
	s.t.Helper()
	err := s.db.View(s.t.Context(), func(tx *store.Tx) error {
		page, err := requestlog.ListTx(tx, requestlog.Selection{Limit: 100})
		rows = page.Receipts
		return err
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return rows
}

func TestIdempotencyKeys(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		d := newServer(t, db, nil)
		key, secret := d.key(account.KeySettings{})
		with := func(once string) []string { return append(as(secret), "Idempotency-Key", once) }
		d.send("POST", generations, `{"model":"easel-1"}`, with("a")...).refused(t, 400, "missing_prompt") // does not use up the Idempotency-Key
		first := d.send("POST", generations, hat, with("a")...)
		again := d.send("POST", generations, hat, with("a")...)
		if first.status != 202 || string(first.body) != string(again.body) || again.status != 202 ||
			first.header.Get("Idempotent-Replayed") != "" || again.header.Get("Idempotent-Replayed") != "true" {
			t.Errorf("first %s, again %d %s %v", first.body, again.status, again.body, again.header)
		}
		if held := accountState(t, d).Held.String(); held != "0.03" {
			t.Errorf("held %s USD", held)
		}
		d.send("POST", generations, hat+" ", with("a")...).refused(t, 400, "invalid_request")
		d.send("POST", edits, hat, with("a")...).refused(t, 400, "invalid_request")
		if param := d.send("POST", generations, `{"model":"easel-1","prompt":"x","n":9}`, with("a")...).refused(t, 400,
			"invalid_request"); param != "n" {
			t.Errorf("param %q, want a fault of the fields first", param)
		}
		for _, bad := range []string{"", strings.Repeat("x", 256), "a b", "ä"} {
			if param := d.send("POST", generations, hat, with(bad)...).refused(t, 400, "invalid_request"); param != "Idempotency-Key" {
				t.Errorf("%q: param %q", bad, param)
			}
		}
		d.send("POST", generations, hat, append(with("b"), "Idempotency-Key", "c")...).refused(t, 400, "invalid_request")
		if other := d.send("POST", generations, hat, with(strings.Repeat("x", 255))...).accepted(t); other.ID == again.accepted(t).ID {
			t.Error("another Idempotency-Key gets the same job")
		}

		// The first submission was accepted, so its repetition gets the response whatever happens
		// to the model, but not with a key that is no longer valid.
		d.apply(strings.Replace(models, "id: easel-1, kind: image", "id: easel-1, kind: image, state: retired", 1))
		d.send("POST", generations, hat, as(secret)...).refused(t, 400, "model_disabled")
		if late := d.send("POST", generations, hat, with("a")...); string(late.body) != string(first.body) {
			t.Errorf("after the model was retired: %d %s", late.status, late.body)
		}
		d.changeKey(key, func(s *account.KeySettings) { s.AllowedModels = []string{"reel-1"} })
		d.send("POST", generations, hat, with("a")...).refused(t, 403, "permission_denied")
		d.changeKey(key, func(s *account.KeySettings) { s.Disabled = true })
		d.send("POST", generations, hat, with("a")...).refused(t, 401, "invalid_api_key")
	})
}

// TestImagesObeyTheRatio submits an image with its ratio in a separate field.
func TestImagesObeyTheRatio(t *testing.T) {
	t.Parallel()
	d := newServer(t, onSQLite(t), nil)
	_, secret := d.key(account.KeySettings{})
	ask := func(more string) response {
		return d.send("POST", generations, `{"model":"easel-1","prompt":"a hat"`+more+`}`, as(secret)...)
	}
	if param := ask(`,"aspect_ratio":"7:5"`).refused(t, 400, "invalid_request"); param != "aspect_ratio" {
		t.Errorf("param %q", param)
	}
	if param := ask(`,"ratio":169`).refused(t, 400, "invalid_request"); param != "ratio" {
		t.Errorf("param %q", param)
	}
	if param := ask(`,"size":"1:1","ratio":"16:9"`).refused(t, 400, "invalid_request"); param != "ratio" {
		t.Errorf("param %q", param)
	}
	ask(`,"ratio":"16:9","aspect_ratio":"16:9"`).accepted(t)
}

// apply applies a catalog document.
func (s *server) apply(document string) {
	s.t.Helper()
	doc, _, err := catalog.Parse([]byte(document), providers())
	if err == nil {
		err = s.db.Update(s.t.Context(), func(tx *store.Tx) error {
			_, err := catalog.ApplyTx(tx, doc)
			return err
		})
	}
	if err == nil {
		err = s.watcher.Refresh(s.t.Context())
	}
	if err != nil {
		s.t.Fatal(err)
	}
}

// TestConcurrentRepetitionsGetOneJob sends the same submission many times concurrently.
func TestConcurrentRepetitionsGetOneJob(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		d := newServer(t, db, nil)
		_, secret := d.key(account.KeySettings{})
		answers := make([]response, 12)
		var all sync.WaitGroup
		for i := range answers {
			all.Go(func() {
				answers[i] = d.send("POST", generations, hat, append(as(secret), "Idempotency-Key", "twin")...)
			})
		}
		all.Wait()
		for _, a := range answers {
			if a.accepted(t).ID != answers[0].accepted(t).ID {
				t.Errorf("%s and %s", a.body, answers[0].body)
			}
		}
		if held := accountState(t, d).Held.String(); held != "0.03" {
			t.Errorf("held %s USD", held)
		}
	})
}

// TestKeyChangesBetweenSubmissions is TestKeyChangesBetweenRequests for
// submissions.
func TestKeyChangesBetweenSubmissions(t *testing.T) {
	t.Parallel()
	d := newServer(t, onSQLite(t), nil)
	key, secret := d.key(account.KeySettings{})
	d.send("POST", generations, hat, as(secret)...).accepted(t)
	rpm := int64(100)
	d.changeKey(key, func(s *account.KeySettings) { s.RPM = &rpm })
	d.send("POST", generations, hat, as(secret)...).accepted(t)
	d.changeKey(key, func(s *account.KeySettings) { s.AllowedModels = []string{"reel-1"} })
	d.send("POST", generations, hat, as(secret)...).refused(t, 403, "permission_denied")
	d.changeKey(key, func(s *account.KeySettings) { s.Disabled = true })
	d.send("POST", generations, `{"model":`, as(secret)...).refused(t, 401, "invalid_api_key")
}
