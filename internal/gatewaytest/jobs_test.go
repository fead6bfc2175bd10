package gatewaytest_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"tollgate/internal/gatewaytest"
	"tollgate/internal/gatewaytest/fakestudio"
	"tollgate/internal/money"
)

// These tests drive the real process as a user of image and video jobs does,
// against fake providers that make pictures and clips.

// Prices of the tests' models, with a part that only exact sums keep.
const (
	pricePicture = 30_000_001 // nano-dollars for an image of tier 1K
	priceLarge   = 50_000_003 // for one of tier 2K
	priceSecond  = 10_700_009 // for a second of video
	clipSeconds  = 8
	priceClip    = clipSeconds * priceSecond
	creditOfJobs = 100 * money.USD // of each customer
)

// studio is a fake provider of images and video.
type studio interface {
	URL() string
	Expect(how ...fakestudio.Behaviour)
	Always(rule func(body []byte) fakestudio.Behaviour)
	Submissions() []fakestudio.Submission
	Accepted() int
	Polls() int
	Polled() int
}

// maker is a provider as these tests use it.
type maker struct {
	name         string
	open         func(t testing.TB) studio
	image, video string // its name of a model
	// blocks says that it answers the submission of images with the images, and
	// single that each image is a submission of its own.
	blocks, single bool
	// image and video that its review refuses fare so, and the images' code.
	unsafeImage, unsafeVideo fakestudio.Behaviour
	code                     string
}

// makers are all providers of jobs that are reached over HTTP.
func makers() []maker {
	failed := func(said string) fakestudio.Behaviour { return fakestudio.Behaviour{Failed: said} }
	fal := failed(`{"status":422,"header":{"X-Fal-Retryable":"false"},"body":{"detail":[{"loc":["body","prompt"],"msg":"flagged","type":"content_policy_violation"}]}}`)
	replicate := failed(`{"status":"failed","error":"Rejected (E005)"}`)
	ark := failed(`{"code":"InputTextSensitiveContentDetected","message":"flagged"}`)
	dashscope := failed(`{"code":"DataInspectionFailed","message":"Input data may contain inappropriate content."}`)
	return []maker{
		{name: "fal", open: func(t testing.TB) studio { return fakestudio.NewFal(t) }, image: "fal-ai/easel/dev", video: "fal-ai/reel/text",
			unsafeImage: fal, unsafeVideo: fal, code: "content_policy_violation"},
		{name: "openai", open: func(t testing.TB) studio { return fakestudio.NewOpenAI(t) }, image: "gpt-image-2", video: "sora-2", blocks: true,
			unsafeImage: fakestudio.Behaviour{Status: 400, Body: `{"error":{"type":"image_generation_user_error","code":"moderation_blocked","message":"no"}}`},
			unsafeVideo: failed(`{"code":"moderation_blocked","message":"no"}`), code: "moderation_blocked"},
		{name: "replicate", open: func(t testing.TB) studio { return fakestudio.NewReplicate(t) }, image: "owner/easel", video: "owner/reel",
			unsafeImage: replicate, unsafeVideo: replicate, code: "moderation_blocked"},
		{name: "gemini", open: func(t testing.TB) studio { return fakestudio.NewGemini(t) }, image: "gemini-nano-banana-2.1", video: "veo-3.1-generate",
			blocks: true, single: true, unsafeImage: failed(`{"finishReason":"IMAGE_SAFETY"}`),
			unsafeVideo: failed(`{"error":{"code":3,"message":"The prompt could not be submitted. It may violate our policies."}}`), code: "moderation_blocked"},
		{name: "ark", open: func(t testing.TB) studio { return fakestudio.NewArk(t) }, image: "seedream-4-0-250828", video: "dreamina-seedance-2-0-260128",
			blocks: true, single: true, unsafeImage: ark, unsafeVideo: ark, code: "moderation_blocked"},
		{name: "dashscope", open: func(t testing.TB) studio { return fakestudio.NewDashScope(t) }, image: "wan2.7-image", video: "wan3.0-video",
			blocks: true, unsafeImage: dashscope, unsafeVideo: dashscope, code: "moderation_blocked"},
	}
}

// blocking tells whether a job of a kind is done by the call that submits it.
func (m maker) blocking(kind string) bool { return m.blocks && kind == "image" }

// unsafe is how a job fares that the provider's review refuses, and its code.
func (m maker) unsafe(kind string) (fakestudio.Behaviour, string) {
	if kind == "video" {
		return m.unsafeVideo, "content_policy"
	}
	return m.unsafeImage, m.code
}

// makerOf is the provider of a name.
func makerOf(t testing.TB, name string) maker {
	t.Helper()
	all := makers()
	i := slices.IndexFunc(all, func(m maker) bool { return m.name == name })
	if i < 0 {
		t.Fatalf("no provider %s", name)
	}
	return all[i]
}

// vendor is the provider's name of its model of a kind.
func (m maker) vendor(kind string) string {
	if kind == "video" {
		return m.video
	}
	return m.image
}

// imageModel is an image model of the tests' prices, with further members.
func imageModel(id string, more map[string]any) map[string]any {
	return with(map[string]any{"id": id, "kind": "image", "ratios": []string{"1:1", "16:9"}, "max_images": 4, "max_references": 4,
		"price": map[string]any{"1K": usd(pricePicture), "2K": usd(priceLarge)}}, more)
}

// videoModel is a video model of the tests' prices, with further members.
func videoModel(id string, more map[string]any) map[string]any {
	return with(map[string]any{"id": id, "kind": "video", "ratios": []string{"16:9", "9:16"}, "durations": []int{clipSeconds, 12}, "max_references": 2,
		"price": map[string]any{"720p": usd(priceSecond)}}, more)
}

func with(members, more map[string]any) map[string]any {
	for k, v := range more {
		members[k] = v
	}
	return members
}

// usd writes an amount as JSON has it.
func usd(a money.Amount) json.Number { return json.Number(a.String()) }

// jobLine is a line of a provider for models of a kind.
func (m maker) jobLine(id string, s studio, kind string, more map[string]any, models ...string) map[string]any {
	named := map[string]string{}
	for _, model := range models {
		named[model] = m.vendor(kind)
	}
	l := map[string]any{"id": id, "provider": m.name, "base_url": s.URL(), "api_key": "${FAILING_LINE_KEY}", "models": named,
		"timeouts": map[string]any{"total": "60s"}}
	return with(l, more)
}

// plant is a gateway with jobs that may be killed and started again. It keeps
// its database and its media through that.
type plant struct {
	t        testing.TB
	binary   string
	settings map[string]string
	media    string
	client   *http.Client
	*gatewaytest.Process
}

// newPlant starts one on a database, with further settings.
func newPlant(t testing.TB, binary, database string, more map[string]string) *plant {
	t.Helper()
	p := &plant{t: t, binary: binary, media: filepath.Join(t.TempDir(), "media")}
	p.settings = map[string]string{"database": database, "media": "file:" + p.media, "node_lease": "2s", "FAILING_LINE_KEY": credential}
	for k, v := range more {
		p.settings[k] = v
	}
	p.client = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 32}, Timeout: time.Minute}
	t.Cleanup(p.client.CloseIdleConnections)
	p.Process = gatewaytest.Start(t, binary, p.settings)
	return p
}

// second starts another node on the same database and folder.
func (p *plant) second() *plant {
	p.t.Helper()
	other := *p
	other.Process = gatewaytest.Start(p.t, p.binary, p.settings)
	return &other
}

// restart starts the process anew after it has ended.
func (p *plant) restart() {
	p.t.Helper()
	p.Process = gatewaytest.Start(p.t, p.binary, p.settings)
}

// catalog makes a catalog the current one.
func (p *plant) catalog(models, lines []map[string]any) {
	p.t.Helper()
	p.Admin("PUT", "/catalog", map[string]any{"models": models, "lines": lines}, nil)
}

// customer is an account with a key.
type customer struct {
	*plant
	account, key string
}

// customer opens an account with credit.
func (p *plant) customer() *customer {
	p.t.Helper()
	account, key := p.Account(100, nil)
	return &customer{p, account, key}
}

// reply is an answer of the gateway.
type reply struct {
	status int
	header http.Header
	raw    []byte
}

func (r reply) String() string { return fmt.Sprintf("%d %s", r.status, r.raw) }

// told is the error object of the reply.
func (r reply) told(t testing.TB) told {
	t.Helper()
	var b struct {
		Error told `json:"error"`
	}
	if err := json.Unmarshal(r.raw, &b); err != nil {
		t.Errorf("no error object in %s: %v", r, err)
	}
	return b.Error
}

// call sends a request with the customer's key. pairs are header names and
// values.
func (c *customer) call(t testing.TB, method, path string, body []byte, pairs ...string) reply {
	t.Helper()
	r, err := c.try(method, path, body, pairs...)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// try is call for when the gateway may be dead.
func (c *customer) try(method, path string, body []byte, pairs ...string) (reply, error) {
	address := path
	if strings.HasPrefix(path, "/") {
		address = c.URL + path
	}
	req, err := http.NewRequest(method, address, bytes.NewReader(body))
	if err != nil {
		return reply{}, err
	}
	if !strings.Contains(address, "/media/") { // links need no key
		req.Header.Set("Authorization", "Bearer "+c.key)
	}
	req.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(pairs); i += 2 {
		req.Header.Set(pairs[i], pairs[i+1])
	}
	res, err := c.client.Do(req)
	if err != nil {
		return reply{}, err
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	return reply{res.StatusCode, res.Header, raw}, err
}

// The paths of submissions.
const (
	pathGenerate = "/v1/images/generations"
	pathEdit     = "/v1/images/edits"
	pathVideo    = "/v1/videos/generations"
)

// pathOf is where a kind is submitted.
func pathOf(kind string) string {
	if kind == "video" {
		return pathVideo
	}
	return pathGenerate
}

// order is the body of a submission, with further members.
func order(model, prompt string, more map[string]any) []byte {
	raw, _ := json.Marshal(with(map[string]any{"model": model, "prompt": prompt}, more)) // plain values: cannot fail
	return raw
}

// submit submits a job and returns its id. The 202 has to be as interface.md
// says, its members in that order.
func (c *customer) submit(t testing.TB, kind string, body []byte, pairs ...string) string {
	t.Helper()
	return c.accepted(t, kind, c.call(t, "POST", pathOf(kind), body, pairs...))
}

// accepted checks the answer to a good submission and returns the job's id.
func (c *customer) accepted(t testing.TB, kind string, r reply) string {
	t.Helper()
	j := readJob(t, r)
	if r.status != http.StatusAccepted || !slices.Equal(j.members, []string{"id", "object", "status", "model"}) ||
		j.Object != kind+".generation.job" || j.Status != "queued" || j.ID == "" || r.header.Get("x-request-id") == "" {
		t.Fatalf("the submission was answered %s", r)
	}
	return j.ID
}

// shownJob is a job's body.
type shownJob struct {
	ID, Object, Status, Model string
	Created                   int64
	Position                  *int64 `json:"queue_position"`
	ETA                       *int64 `json:"eta_seconds"`
	Data                      []struct{ URL string }
	Usage                     json.RawMessage
	Error                     *told

	raw     string
	members []string // in their order
}

// final tells whether the job has ended.
func (j shownJob) final() bool { return j.Status == "succeeded" || j.Status == "failed" }

// readJob reads a job's body.
func readJob(t testing.TB, r reply) shownJob {
	t.Helper()
	var j shownJob
	if err := json.Unmarshal(r.raw, &j); err != nil {
		t.Fatalf("%v in %s", err, r)
	}
	j.raw = string(r.raw)
	dec := json.NewDecoder(bytes.NewReader(r.raw))
	_, err := dec.Token()
	for err == nil && dec.More() {
		var name json.Token
		if name, err = dec.Token(); err == nil {
			j.members = append(j.members, fmt.Sprint(name))
			var value json.RawMessage
			err = dec.Decode(&value)
		}
	}
	if err != nil {
		t.Fatalf("%v in %s", err, r)
	}
	return j
}

// poll asks for a job and checks that it looks as its state demands
// (interface.md, States and transitions).
func (c *customer) poll(t testing.TB, kind, id string) shownJob {
	t.Helper()
	r := c.call(t, "GET", "/v1/"+kind+"s/jobs/"+id, nil)
	if r.status != http.StatusOK || r.header.Get("Content-Type") != "application/json" {
		t.Fatalf("poll of %s: %s", id, r)
	}
	j := readJob(t, r)
	checkShown(t, kind, id, j)
	return j
}

// checkShown checks a job's body against its state.
func checkShown(t testing.TB, kind, id string, j shownJob) {
	t.Helper()
	members := []string{"id", "object", "status", "created", "model"}
	switch j.Status {
	case "queued":
		members = append(members, "queue_position", "eta_seconds")
		if j.Position == nil || *j.Position < 0 || j.ETA == nil || *j.ETA < 1 {
			t.Errorf("queued job %s", j.raw)
		}
	case "processing":
	case "succeeded":
		members = append(members, "data", "usage")
		for _, d := range j.Data {
			if !strings.HasPrefix(d.URL, "http://") || len(d.URL) == 0 {
				t.Errorf("link %q", d.URL)
			}
		}
		if len(j.Data) == 0 {
			t.Errorf("succeeded job %s", j.raw)
		}
	case "failed":
		members = append(members, "error")
		if j.Error == nil || j.Error.Message == "" || j.Error.Code == "" || j.Error.Type == "" || j.Error.param() == "absent" {
			t.Errorf("failed job %s", j.raw)
		}
	default:
		t.Errorf("status %q in %s", j.Status, j.raw)
	}
	if !slices.Equal(j.members, members) {
		t.Errorf("members %v, want %v in %s", j.members, members, j.raw)
	}
	if age := time.Since(time.Unix(j.Created, 0)); j.ID != id || j.Object != kind+".generation.job" || age < -time.Minute || age > 10*time.Minute {
		t.Errorf("job %s of kind %s is shown as %s", id, kind, j.raw)
	}
}

// becomes polls a job until it is in a state. It fails at once when the job has
// ended otherwise, or went back from processing to queued.
func (c *customer) becomes(t testing.TB, kind, id, state string) shownJob {
	t.Helper()
	var j shownJob
	started := false
	eventually(t, "job "+id+" is "+state, func() bool {
		j = c.poll(t, kind, id)
		if started && j.Status == "queued" {
			t.Errorf("job %s was processing and is queued again", id)
		}
		started = started || j.Status == "processing"
		if j.final() && j.Status != state {
			t.Fatalf("job %s should be %s; it is %s\nsteps: %s", id, state, j.raw, c.operated(t, id))
		}
		return j.Status == state
	})
	return j
}

// operated is a job as the operator sees it.
type operated struct {
	shownJob
	Account, Line, Node string
	Held                money.Amount `json:"held_usd"`
	Cost                money.Amount `json:"cost_usd"`
	Attempts            []struct {
		Line, Code, Next string
		Lost             bool
		Ticket           string
	}
	Steps []struct {
		Name string
		At   int64 `json:"at_ms"`
	}
}

func (o operated) String() string {
	raw, _ := json.Marshal([]any{o.Steps, o.Attempts})
	return string(raw)
}

// has tells whether the job has made a step.
func (o operated) has(step string) bool {
	for _, s := range o.Steps {
		if s.Name == step {
			return true
		}
	}
	return false
}

// operated asks the operator's API for a job.
func (p *plant) operated(t testing.TB, id string) operated {
	t.Helper()
	var o operated
	p.Admin("GET", "/jobs/"+id, nil, &o)
	return o
}

// reaches waits until a job has made a step.
func (p *plant) reaches(t testing.TB, id, step string) {
	t.Helper()
	var o operated
	eventually(t, "job "+id+" reaches "+step, func() bool {
		if o = p.operated(t, id); o.final() && !o.has(step) {
			t.Fatalf("job %s has ended: %s, %s", id, o.raw, o)
		}
		return o.has(step)
	})
}

// jobsOf lists the jobs of an account as the operator sees them.
func (p *plant) jobsOf(t testing.TB, account string) []operated {
	t.Helper()
	var all []operated
	for after := ""; ; {
		var page struct {
			Data    []operated
			HasMore bool `json:"has_more"`
		}
		p.Admin("GET", "/jobs?limit=100&account="+account+"&after="+after, nil, &page)
		for _, o := range page.Data {
			all = append(all, o)
			after = o.ID
		}
		if !page.HasMore {
			return all
		}
	}
}

// purse is what an account has.
type purse struct {
	Balance money.Amount `json:"balance_usd"`
	Held    money.Amount `json:"held_usd"`
}

func (c *customer) purse(t testing.TB) purse {
	t.Helper()
	var p purse
	c.Admin("GET", "/accounts/"+c.account, nil, &p)
	return p
}

// owns checks the balance and what is held.
func (c *customer) owns(t testing.TB, spent, held money.Amount) {
	t.Helper()
	if p := c.purse(t); p.Balance != creditOfJobs-spent || p.Held != held {
		t.Errorf("balance %s and %s held; want %s and %s", p.Balance, p.Held, creditOfJobs-spent, held)
	}
}

// charges returns what each job was charged by the account's movements.
func (c *customer) charges(t testing.TB) map[string]money.Amount {
	t.Helper()
	charged := map[string]money.Amount{}
	for after := ""; ; {
		var page struct {
			Data []struct {
				ID, Kind string
				USD      money.Amount
				Job      string `json:"job_id"`
				Request  string `json:"request_id"`
			}
			HasMore bool `json:"has_more"`
		}
		c.Admin("GET", "/accounts/"+c.account+"/entries?limit=200&after="+after, nil, &page)
		for _, e := range page.Data {
			after = e.ID
			if e.Kind != "charge" {
				continue
			}
			if _, twice := charged[e.Job]; twice {
				t.Errorf("job %s was charged twice", e.Job)
			}
			if e.Job == "" || e.Request == "" {
				t.Errorf("a charge without job or request: %+v", e)
			}
			charged[e.Job] = -e.USD
		}
		if !page.HasMore {
			return charged
		}
	}
}

// audited proves the books.
func (p *plant) audited(t testing.TB) {
	t.Helper()
	var report struct {
		OK          bool            `json:"ok"`
		Differences json.RawMessage `json:"differences"`
	}
	p.Admin("GET", "/audit", nil, &report)
	if !report.OK {
		t.Errorf("audit: %s", report.Differences)
	}
}

// opens checks that a link leads to the whole file, to parts of it, and to
// nothing that a browser would run.
func (c *customer) opens(t testing.TB, link, contentType string, want []byte) {
	t.Helper()
	whole := c.call(t, "GET", c.here(link), nil)
	if whole.status != 200 || !bytes.Equal(whole.raw, want) {
		t.Errorf("%s: %d with %d bytes; want %d", link, whole.status, len(whole.raw), len(want))
		return
	}
	part := c.call(t, "GET", c.here(link), nil, "Range", "bytes=4-11")
	if part.status != http.StatusPartialContent || !bytes.Equal(part.raw, want[4:12]) ||
		part.header.Get("Content-Range") != fmt.Sprintf("bytes 4-11/%d", len(want)) {
		t.Errorf("%s, bytes 4 to 11: %d %v %q", link, part.status, part.header, part.raw)
	}
	for _, r := range []reply{whole, part} {
		if r.header.Get("Content-Type") != contentType || r.header.Get("X-Content-Type-Options") != "nosniff" ||
			!strings.Contains(r.header.Get("Content-Security-Policy"), "sandbox") {
			t.Errorf("%s: headers %v; want %s", link, r.header, contentType)
		}
	}
}

// here is a link on the node as it runs now: a restart changes the port.
func (c *customer) here(link string) string {
	_, path, _ := strings.Cut(link, "/media/")
	return c.URL + "/media/" + path
}

// dataURI is a picture as the address that holds it.
func dataURI(picture []byte) string {
	return "data:image/png;base64," + base64.StdEncoding.EncodeToString(picture)
}
