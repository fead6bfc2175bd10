package lines

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"tollgate/internal/gatewaytest/fakeprovider"
	"tollgate/internal/gatewaytest/fakestudio"
	"tollgate/internal/gatewaytest/scene"
	"tollgate/internal/money"
	"tollgate/internal/store/storetest"
)

// The values of the variables OLD_LINE_KEY and NEW_LINE_KEY.
const (
	oldLineKey = "sk-old-0123456789abcdef-OLDD"
	newLineKey = "sk-new-0123456789abcdef-NEWW"
)

// keyCheck accepts requests with certain keys and counts requests.
type keyCheck struct {
	mu      sync.Mutex
	accepts []string
	calls   map[string]int // accepted requests by key
	refused int            // number of rejected requests
}

func newKeyCheck() *keyCheck { return &keyCheck{calls: map[string]int{}} }

// check counts a request. It returns the key of the request and whether the key is accepted.
func (c *keyCheck) check(h http.Header) (key string, accepted bool) {
	key = strings.TrimPrefix(h.Get("Authorization"), "Bearer ")
	c.mu.Lock()
	defer c.mu.Unlock()
	if !slices.Contains(c.accepts, key) {
		c.refused++
		return key, false
	}
	c.calls[key]++
	return key, true
}

// refusal returns a provider's message about an unknown key. The message repeats the key.
func refusal(key string) string { return "Incorrect API key provided: " + key }

// newProxy starts a server that checks the keys and forwards requests to a provider.
func (c *keyCheck) newProxy(t *testing.T, provider string) *httptest.Server {
	t.Helper()
	to, err := url.Parse(provider)
	if err != nil {
		t.Fatal(err)
	}
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.Out.URL.Scheme, r.Out.URL.Host = to.Scheme, to.Host
		r.Out.Header.Set("Authorization", "Bearer "+scene.Credential)
	}}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		key, accepted := c.check(r.Header)
		if accepted {
			proxy.ServeHTTP(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = w.Write([]byte(`{"error":{"message":"` + refusal(key) + `","type":"invalid_request_error","code":"invalid_api_key"}}`))
	}))
	t.Cleanup(s.Close)
	return s
}

// accept sets the accepted keys.
func (c *keyCheck) accept(keys ...string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.accepts = keys
}

// count returns the number of accepted requests with a key, and of all rejected requests.
func (c *keyCheck) count(key string) (calls, refused int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.calls[key], c.refused
}

// rotation is a gateway whose lines change their keys.
type rotation struct {
	node        *scene.Node
	chat, media *keyCheck
	provider    fakestudio.Provider
	studio      fakestudio.Fake
	chatURL     string
	mediaURL    string
	render      func() // finishes the job

	mu     sync.Mutex
	alerts []string
}

func newRotation(t *testing.T, binary, database string) *rotation {
	t.Helper()
	r := &rotation{chat: newKeyCheck(), media: newKeyCheck()}
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, q *http.Request) {
		alert, _ := io.ReadAll(q.Body)
		r.mu.Lock()
		defer r.mu.Unlock()
		r.alerts = append(r.alerts, string(alert))
	}))
	t.Cleanup(receiver.Close)
	r.node = scene.NewNode(t, binary, database, map[string]string{"OLD_LINE_KEY": oldLineKey, "NEW_LINE_KEY": newLineKey,
		"alert_url": receiver.URL})
	provider := fakeprovider.New(t)
	provider.Always(func(q fakeprovider.Request) fakeprovider.Reply {
		key, accepted := r.chat.check(q.Header)
		switch {
		case !accepted:
			return fakeprovider.Error(401, "invalid_request_error", "invalid_api_key", refusal(key))
		case q.IsStream():
			return fakeprovider.Stream(1000, 500, "hel", "lo")
		}
		return fakeprovider.Answer("hello", 1000, 500)
	})
	rendered := make(chan struct{})
	r.render = sync.OnceFunc(func() { close(rendered) })
	t.Cleanup(r.render)
	r.provider = fakestudio.ProviderOf(t, "openai")
	r.studio = r.provider.Open(t)
	r.studio.Always(func([]byte) fakestudio.Behaviour { return fakestudio.Behaviour{Until: rendered} })
	r.chatURL, r.mediaURL = provider.URL(), r.media.newProxy(t, r.studio.URL()).URL+"/v1"
	return r
}

// apply sets the keys of both lines. keys are names of variables.
func (r *rotation) apply(keys ...string) {
	var list []string
	for _, k := range keys {
		list = append(list, "${"+k+"}")
	}
	more := func(base string) map[string]any { return map[string]any{"base_url": base, "api_keys": list} }
	chat := scene.ChatLine("chat", "", more(r.chatURL), "swift")
	media := r.provider.JobLine("media", r.studio, "video", more(r.mediaURL), "reel")
	delete(chat, "api_key")
	delete(media, "api_key")
	r.node.SetCatalog([]map[string]any{scene.ChatModel("swift", nil), scene.VideoModel("reel", nil)}, []map[string]any{chat, media})
}

// alerted returns the number of alerts that contain all texts.
func (r *rotation) alerted(texts ...string) (n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, alert := range r.alerts {
		if !slices.ContainsFunc(texts, func(text string) bool { return !strings.Contains(alert, text) }) {
			n++
		}
	}
	return n
}

// keys returns the states of a line's keys, separated by spaces.
func (r *rotation) keys(line string) string {
	var list struct {
		Data []struct {
			ID   string
			Keys []struct{ State string }
		}
	}
	r.node.Admin("GET", "/lines", nil, &list)
	var words []string
	for _, l := range list.Data {
		for _, k := range l.Keys {
			if l.ID == line {
				words = append(words, k.State)
			}
		}
	}
	return strings.Join(words, " ")
}

// flow is a load of concurrent requests, half of them streamed, until stop.
type flow struct {
	all      sync.WaitGroup
	stopped  atomic.Bool
	answered atomic.Int64
	failed   atomic.Int64
}

func (r *rotation) flow(t *testing.T, c *scene.Customer) *flow {
	f := &flow{}
	for i := range 4 {
		f.all.Go(func() {
			for !f.stopped.Load() {
				a, err := scene.SendChat(t.Context(), c.Client, r.node.URL+scene.Chat.Path(), c.Key, scene.Request(scene.Chat, "swift", i%2 == 0, nil))
				if err == nil && a.Status == 503 && a.Err.Code == "service_unavailable" {
					continue // the machine is busy and the request reached no line
				}
				if err != nil || a.Status != 200 || !a.Complete {
					f.failed.Add(1)
					t.Errorf("a request failed: %+v, %v", a, err)
					return
				}
				f.answered.Add(1)
			}
		})
	}
	return f
}

// waitForAnswers waits for forty further answers.
func (f *flow) waitForAnswers(t *testing.T) {
	t.Helper()
	from := f.answered.Load()
	scene.Eventually(t, "requests are answered", func() bool { return f.answered.Load() >= from+40 || f.failed.Load() > 0 })
}

// stop ends the requests and returns the number of answers.
func (f *flow) stop() int64 {
	f.stopped.Store(true)
	f.all.Wait()
	return f.answered.Load()
}

// TestKeyRotation replaces a provider's key during requests, streams and a job. None of them may
// fail. The job is polled with the key of its submission as long as the provider accepts the key.
// Each answer is charged once. Then the provider rejects the new key, and the gateway returns to
// the old key.
func TestKeyRotation(t *testing.T) {
	t.Parallel()
	binary := scene.Binary(t)
	storetest.EachURL(t, func(t *testing.T, database string) {
		r := newRotation(t, binary, database)
		c := r.node.Customer()
		acceptKeys := func(keys ...string) {
			r.chat.accept(keys...)
			r.media.accept(keys...)
		}
		acceptKeys(oldLineKey)
		r.apply("OLD_LINE_KEY")
		job := c.Submit(t, "video", scene.JobRequest("reel", "a boat", nil))
		r.node.WaitForStep(t, job, "ticket")
		f := r.flow(t, c)
		f.waitForAnswers(t)

		acceptKeys(oldLineKey, newLineKey)
		r.apply("NEW_LINE_KEY", "OLD_LINE_KEY")
		scene.Eventually(t, "the new key is used", func() bool { calls, _ := r.chat.count(newLineKey); return calls > 0 })
		f.waitForAnswers(t)
		wantPoll := func(key string) {
			t.Helper()
			before, _ := r.media.count(key)
			scene.Eventually(t, "the job is polled", func() bool { now, _ := r.media.count(key); return now > before })
		}
		wantPoll(oldLineKey)
		if calls, _ := r.media.count(newLineKey); calls > 0 {
			t.Error("the job was polled with the new key, but the old key submitted it")
		}

		acceptKeys(newLineKey) // the provider withdraws the old key before the operator removes it
		f.waitForAnswers(t)
		wantPoll(newLineKey)
		r.apply("NEW_LINE_KEY")
		f.waitForAnswers(t)
		wantPoll(newLineKey)
		if _, refused := r.chat.count(newLineKey); refused > 8 { // requests that began with the old key
			t.Errorf("the chat provider rejected %d requests; want at most 8", refused)
		}

		acceptKeys(oldLineKey, newLineKey)
		r.apply("NEW_LINE_KEY", "OLD_LINE_KEY")
		f.waitForAnswers(t)
		// Until the old key is ready again, a rejection of the new key would count for the line.
		scene.Eventually(t, "both keys are usable", func() bool { return r.keys("chat") == "in_use ready" })
		acceptKeys(oldLineKey)
		f.waitForAnswers(t)
		scene.Eventually(t, "the new key is refused", func() bool { return r.keys("chat") == "refused in_use" })
		wantPoll(oldLineKey)
		refused := []string{`"line":"chat"`, `"state":"key_refused"`, `"key":"key 1 (…NEWW), ${NEW_LINE_KEY}"`}
		scene.Eventually(t, "the alert is sent", func() bool { return r.alerted(refused...) > 0 })
		r.render()
		c.Becomes(t, "video", job, "succeeded")
		answered := f.stop()
		c.CheckFunds(t, money.Amount(answered)*scene.AnswerCost+scene.PriceClip, 0)
		r.node.Audit(t)
		if n := r.alerted(refused...); n != 1 || r.alerted(oldLineKey) > 0 || r.alerted(newLineKey) > 0 {
			t.Errorf("%d alerts: %q", n, r.alerts)
		}
		if out := r.node.Output(); strings.Contains(out, oldLineKey) || strings.Contains(out, newLineKey) {
			t.Errorf("a key is in the log: %s", out)
		}
	})
}
