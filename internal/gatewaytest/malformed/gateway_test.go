package malformed

import (
	"bytes"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"tollgate/internal/contract/contracttest"
	"tollgate/internal/gatewaytest/fakestudio"
	"tollgate/internal/gatewaytest/inprocess"
	"tollgate/internal/gatewaytest/scene"
	"tollgate/internal/money"
)

// credit is the credit of every account.
const credit = 100_000 * money.USD

// gateway is a gateway in this process, for the race detector and for measurements of goroutines and
// memory.
type gateway struct {
	t        *testing.T
	process  *scene.Process
	log      *logWatch
	provider *provider
	make     *generator
	accounts []string // the accounts of the keys in requests
	client   *http.Client
	contract *contracttest.Checker
	stop     func()
}

// start starts a gateway on a database, with the models and other objects that the requests name.
func start(t *testing.T, database string, seed uint64) *gateway {
	g := &gateway{t: t, log: &logWatch{busy: map[string]bool{}}, provider: newProvider(t), client: &http.Client{Timeout: time.Minute}}
	world := newWorld(t)
	var err error
	if g.contract, err = contracttest.New(); err != nil {
		t.Fatal(err)
	}
	g.process, g.stop = inprocess.Serve(t, map[string]string{"database": database, "media": "file:" + t.TempDir(),
		"private_networks": worldHost + "/32", "max_body": "256KiB", "log_level": "debug"}, g.log)
	studio := fakestudio.NewOpenAI(t)
	g.process.Admin("PUT", "/catalog", catalog(g.provider.URL, studio.URL()), nil)
	g.make = &generator{seed: seed, address: world, routes: weightedRoutes(), samples: samples(world), token: scene.AdminToken,
		ids: map[string][]string{}}
	for range 3 {
		account, key := g.process.Account(0, nil)
		g.process.Admin("POST", "/accounts/"+account+"/credits", map[string]any{"usd": credit}, nil)
		g.accounts, g.make.keys = append(g.accounts, account), append(g.make.keys, key)
	}
	g.createObjects()
	return g
}

// catalog returns a catalog with a model for each kind of requests.
func catalog(provider, studio string) map[string]any {
	model := func(id, state string, forms ...string) map[string]any {
		return map[string]any{"id": id, "kind": "chat", "state": state, "forms": forms, "context_window": 100_000,
			"max_output_tokens": 1000,
			"price":             map[string]any{"input": 1, "output": 2}, "max_image_tokens": 100}
	}
	line := func(id, provider, base string, models ...string) map[string]any {
		l := map[string]any{"id": id, "provider": provider, "models": map[string]any{}}
		for _, m := range models {
			l["models"].(map[string]any)[m] = "vendor-model"
		}
		if base != "" {
			l["base_url"], l["api_key"] = base, "${FAILING_LINE_KEY}"
		}
		if provider == "openai" {
			l["forms"] = []string{"chat"}
		}
		return l
	}
	return map[string]any{
		"models": []any{
			model("own", "open", "chat", "responses", "gemini"), model("chat-line", "open", "chat", "responses", "gemini"),
			model("messages-line", "open", "chat", "responses", "gemini"), model("gemini-line", "open", "chat", "responses", "gemini"),
			model("family", "open", "messages", "chat"), model("family-chat",
				"open", "messages"), model("family-gemini", "open", "messages"),
			model("maintained", "maintenance", "chat", "messages"), model("retired", "retired", "chat"), model("coming",
				"coming_soon", "chat", "responses"),
			map[string]any{"id": "meaning", "kind": "embedding", "price": map[string]any{"input": 1}, "max_inputs": 4, "dimensions": 64},
			map[string]any{"id": "order", "kind": "rerank", "price": map[string]any{"searches": 1}, "max_documents": 4},
			map[string]any{"id": "judge", "kind": "moderation", "price": map[string]any{"input": 1}, "max_inputs": 4},
			map[string]any{"id": "voice", "kind": "speech", "price": map[string]any{"characters": 1}},
			map[string]any{"id": "scribe", "kind": "transcription", "price": map[string]any{"minutes": 1}, "translations": true},
			map[string]any{"id": "easel", "kind": "image", "price": map[string]any{"1K": 0.03, "2K": 0.05},
				"ratios": []string{"1:1", "16:9"}, "max_images": 4, "max_references": 4, "params": []string{"seed", "style"}},
			map[string]any{"id": "reel", "kind": "video", "price": map[string]any{"720p": 0.05}, "durations": []int{5, 10},
				"ratios": []string{"16:9"}, "max_references": 2,
				"roles": []string{"first_frame", "last_frame"}, "audio": "optional", "params": []string{"seed", "negative_prompt"}},
		},
		"lines": []any{
			line("sandbox", "sandbox", "", "own", "family", "meaning", "order", "judge", "voice", "scribe"), line("spare", "sandbox", "", "own"),
			line("chat", "openai", provider+"/v1", "chat-line", "family-chat"), line("messages", "anthropic", provider+"/native/v1",
				"messages-line"),
			map[string]any{"id": "studio", "provider": "openai", "base_url": studio, "api_key": "${FAILING_LINE_KEY}",
				"models": map[string]any{"easel": "gpt-image-2", "reel": "sora-2"}},
			line("gemini", "gemini", provider+"/v1beta", "gemini-line", "family-gemini"),
		},
	}
}

// createObjects creates the objects that paths name: accounts, keys, users, jobs, a file and deliveries.
func (g *gateway) createObjects() {
	type resource struct {
		ID string `json:"id"`
	}
	ids := g.make.ids
	for range 4 {
		account, _ := g.process.Account(5, nil)
		var user, key resource
		g.process.Admin("POST", "/accounts/"+account+"/users", map[string]any{"email": account + "@example.com",
			"password": "long enough password"}, &user)
		g.process.Admin("POST", "/accounts/"+account+"/keys", map[string]any{}, &key)
		g.process.Admin("PUT", "/accounts/"+account+"/webhook", map[string]any{"url": g.make.address + "/callback",
			"events": []string{"image.completed"}}, nil)
		g.process.Admin("POST", "/accounts/"+account+"/webhook/test", map[string]any{}, nil)
		var log struct{ Data []resource }
		g.process.Admin("GET", "/accounts/"+account+"/deliveries", nil, &log)
		for _, d := range log.Data {
			ids["/admin/v1/deliveries/"] = append(ids["/admin/v1/deliveries/"], d.ID)
		}
		ids["/admin/v1/accounts/"], ids["/admin/v1/users/"], ids["/admin/v1/keys/"] =
			append(ids["/admin/v1/accounts/"], account), append(ids["/admin/v1/users/"], user.ID), append(ids["/admin/v1/keys/"],
				key.ID)
	}
	for _, kind := range []string{"images", "videos"} {
		for range 3 {
			var job resource
			body := g.make.samples["POST /v1/"+kind+"/generations"][0].body
			g.ask("POST", "/v1/"+kind+"/generations", body, &job)
			path := "/v1/" + kind + "/jobs/"
			ids[path], ids["/admin/v1/jobs/"] = append(ids[path], job.ID), append(ids["/admin/v1/jobs/"], job.ID)
		}
	}
	g.waitForJobs()
	var done struct{ Data []struct{ URL string } }
	g.ask("GET", "/v1/images/jobs/"+ids["/v1/images/jobs/"][0], "", &done)
	for _, d := range done.Data {
		_, file, _ := strings.Cut(d.URL, "/media/")
		ids["/media/"] = append(ids["/media/"], file)
	}
	ids["/v1/models/"] = []string{"own", "chat-line", "messages-line", "gemini-line"}
	ids["/v1beta/models/"] = ids["/v1/models/"]
	ids["/admin/v1/lines/"], ids["/admin/v1/catalog/revisions/"] = []string{"spare"}, []string{"1"}
	ids["/admin/v1/catalog/changes/"] = []string{"chg_01m84x8k5ye9nm422fe2y6fm98"} // an unknown change
	ids["/admin/v1/secrets/"] = []string{"vendor"}
	var news resource
	g.process.Admin("POST", "/announcements", map[string]any{"title": "News"}, &news)
	ids["/admin/v1/announcements/"] = []string{news.ID}
	ids["/admin/v1/mails/"] = []string{"mail_01m84x8k5ye9nm422fe2y6fm98"} // an unknown mail: mail is off
	ids["/admin/v1/statements/"], ids["/admin/v1/entries/"] = []string{"2026-11"}, []string{"ent_01m84x8k5ye9nm422fe2y6fm98"}
	ids["/admin/v1/top-ups/"] = []string{"topup_01m84x8k5ye9nm422fe2y6fm98"}
	ids["/admin/v1/top-ups/problems/"] = []string{"problem_01m84x8k5ye9nm422fe2y6fm98"}
	ids["/admin/v1/invoices/"] = []string{"invoice_01m84x8k5ye9nm422fe2y6fm98"} // no invoice exists, because no customer has paid
}

// ask sends a valid request.
func (g *gateway) ask(method, path, body string, into any) {
	g.t.Helper()
	q := &request{method: method, target: path, version: "HTTP/1.1", body: []byte(body), cut: -1}
	q.add("Host", "gateway.example")
	q.add("Authorization", "Bearer "+g.make.keys[0])
	a := g.send(q)
	if a.status >= 300 {
		g.t.Fatalf("%s: %s", q, a)
	}
	decode(g.t, a.body, into)
}

// send sends one request on a new connection.
func (g *gateway) send(q *request) *reply {
	g.t.Helper()
	c := &caller{address: strings.TrimPrefix(g.process.URL, "http://")}
	defer c.close()
	a, err := c.ask(q)
	if err != nil {
		g.t.Fatalf("%s: %v", q, err)
	}
	return a
}

// waitForJobs waits until all jobs have ended.
func (g *gateway) waitForJobs() {
	g.t.Helper()
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for deadline := time.Now().Add(2 * time.Minute); ; <-ticker.C {
		running := 0
		for _, status := range []string{"queued", "processing"} {
			var list struct{ Data []struct{ ID string } }
			g.process.Admin("GET", "/jobs?status="+status, nil, &list)
			running += len(list.Data)
		}
		if running == 0 {
			return
		}
		if time.Now().After(deadline) {
			g.t.Fatalf("%d jobs are still running", running)
		}
	}
}

// logWatch is a log that records unexpected lines.
type logWatch struct {
	mu      sync.Mutex
	bad     []string        // the first unexpected lines
	busy    map[string]bool // requests rejected by an overloaded gateway
	leftOut int             // number of lines that sampling left out of the log
	last    []string        // the last lines
	rest    []byte
}

// overload matches the log line of a request rejected because of overload. interface.md allows a
// 503 for every request.
var overload = regexp.MustCompile(`(cause|class)="(no batch has taken the admission|the database has not answered the admission) within` +
	`|(cause|class)="look up keys: (begin: |timeout: |before the commit: |commit: )?(context deadline exceeded|sql: transaction has already)`)

// leftOut matches the log line with the number of lines that sampling left out.
var leftOut = regexp.MustCompile(`msg="more lines of a kind were left out" .*times=(\d+)`)

var requestPattern = regexp.MustCompile(`request=(req_\w+)`)

// Write implements io.Writer. p has whole lines.
func (w *logWatch) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.rest = append(w.rest, p...)
	for {
		line, rest, ok := bytes.Cut(w.rest, []byte("\n"))
		if !ok {
			return len(p), nil
		}
		w.rest = rest
		w.note(string(line))
	}
}

func (w *logWatch) note(line string) {
	w.last = append(w.last, line)
	w.last = w.last[max(0, len(w.last)-20):]
	if overload.MatchString(line) {
		if id := requestPattern.FindStringSubmatch(line); id != nil {
			w.busy[id[1]] = true
			return
		}
		if times := leftOut.FindStringSubmatch(line); times != nil {
			n, _ := strconv.Atoi(times[1]) // digits
			w.leftOut += n
			return
		}
	}
	if wrong := strings.Contains(line, "level=ERROR") || strings.Contains(line, "panic"); wrong && len(w.bad) < 10 {
		w.bad = append(w.bad, line)
	}
}

// overloaded reports whether the log shows that a request was rejected because of overload. The
// gateway writes the log line before the answer.
func (w *logWatch) overloaded(request string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.busy[request]
}
