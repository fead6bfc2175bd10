package soak

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"tollgate/internal/gatewaytest/scene"
	"tollgate/internal/money"
)

// clientFrom returns a client with the given local address.
func clientFrom(ip string, timeout time.Duration) *http.Client {
	dialer := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(ip)}, Timeout: 10 * time.Second}
	return &http.Client{Timeout: timeout, Transport: &http.Transport{DialContext: dialer.DialContext, MaxIdleConnsPerHost: 16}}
}

// goodClient is a well-behaved client with its results.
type goodClient struct {
	url, account, key string
	client            *http.Client

	mu        sync.Mutex
	attempts  int
	answers   int             // complete answers
	exact     []string        // ids of answers from the healthy line
	statuses  map[string]int  // by request id
	overloads int             // requests rejected because of overload
	broken    int             // streams that a hostile line broke after the beginning
	long      int             // answers of hostile lines above max_answer
	hasImage  atomic.Bool     // at least one image is complete
	images    int             // number of images among the answers
	failed    []string        // ids of failed jobs, checked at the end
	wrong     []string        // errors that the healthy line should have prevented
	took      []time.Duration // durations of complete chat answers
}

// answer is an answer at the client.
type answer struct {
	status     int
	id, line   string
	retryAfter string
	body       []byte
	err        error // not nil if the answer is incomplete
}

func (a answer) String() string {
	return fmt.Sprintf("%d from line %q, %v: %.300q", a.status, a.line, a.err, a.body)
}

// ask sends one request and reads its answer to the end.
func (g *goodClient) ask(ctx context.Context, method, path, body string) answer {
	res, err := scene.Do(ctx, g.client, method, g.url+path, body, "Authorization", "Bearer "+g.key, "Content-Type", "application/json")
	if err != nil {
		return answer{err: err}
	}
	defer res.Body.Close()
	s := answer{status: res.StatusCode, id: res.Header.Get("X-Request-Id"), line: res.Header.Get("X-Tollgate-Line"),
		retryAfter: res.Header.Get("Retry-After")}
	s.body, s.err = io.ReadAll(res.Body)
	return s
}

// work sends requests at a steady pace until ctx ends. Running requests are completed.
func (g *goodClient) work(ctx context.Context, random *rand.Rand, pace time.Duration) {
	ticker := time.NewTicker(pace)
	defer ticker.Stop()
	for n := 0; ; n++ {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		if n%20 == 19 {
			g.image(context.WithoutCancel(ctx), n)
			continue
		}
		g.talk(context.WithoutCancel(ctx), random.IntN(5), n)
	}
}

// talk sends one chat request in one of the three forms.
func (g *goodClient) talk(ctx context.Context, kind, n int) {
	path, stream, end := "/v1/chat/completions", kind%2 == 1, "data: [DONE]"
	prompt := fmt.Sprintf("is all well, %d?", n)
	body := fmt.Sprintf(`{"model":"talk","messages":[{"role":"user","content":%q}],"max_tokens":600,"stream":%t}`, prompt, stream)
	switch kind {
	case 2, 3:
		path, end = "/v1/responses", "event: response.completed"
		body = fmt.Sprintf(`{"model":"talk","input":%q,"max_output_tokens":600,"stream":%t}`, prompt, stream)
	case 4:
		path, end = "/native/v1/messages", "event: message_stop"
		body = fmt.Sprintf(`{"model":"talk","messages":[{"role":"user","content":%q}],"max_tokens":600}`, prompt)
	}
	begin := time.Now()
	s := g.ask(ctx, "POST", path, body)
	complete := s.err == nil && s.status == http.StatusOK && bytes.Contains(s.body,
		[]byte("well")) && (!stream || bytes.Contains(s.body, []byte(end)))
	g.mu.Lock()
	defer g.mu.Unlock()
	g.attempts++
	if s.id != "" {
		g.statuses[s.id] = s.status
	}
	switch {
	case complete:
		g.answers++
		g.took = append(g.took, time.Since(begin))
		if s.line == healthyLine {
			g.exact = append(g.exact, s.id)
		}
	case isOverloaded(s):
		g.overloads++
	case stream && s.status == http.StatusOK && s.line != healthyLine:
		g.broken++ // interface.md, Errors in a stream: there is no failover
	case s.status == http.StatusBadGateway && s.line != healthyLine && bytes.Contains(s.body, []byte("The answer is longer than")):
		g.long++ // an error of the request, without failover
	default:
		g.recordError(fmt.Sprintf("%s %d, stream %t, after %s: %s", path, n, stream, time.Since(begin), s))
	}
}

// isOverloaded reports whether the gateway rejected the request because of overload (interface.md,
// 503). A healthy line cannot prevent such rejections, so check limits their number.
func isOverloaded(s answer) bool {
	return s.status == http.StatusServiceUnavailable && (s.retryAfter != "" || bytes.Contains(s.body, []byte("temporary problem")))
}

// recordError records an error. The caller must hold mu.
func (g *goodClient) recordError(what string) {
	if g.wrong = append(g.wrong, what); len(g.wrong) > 5 {
		g.wrong = g.wrong[:5]
	}
}

// image submits an image job, polls it as interface.md recommends, and reads the result.
func (g *goodClient) image(ctx context.Context, n int) {
	var job struct {
		ID     string `json:"id"`
		Status string `json:"status"`
		Data   []struct {
			URL string `json:"url"`
		} `json:"data"`
	}
	s := g.ask(ctx, "POST", "/v1/images/generations", fmt.Sprintf(`{"model":"easel","prompt":"a lake, %d"}`, n))
	g.mu.Lock()
	g.attempts++
	if isOverloaded(s) {
		g.overloads++
	}
	g.mu.Unlock()
	if isOverloaded(s) {
		return
	}
	ok := s.status == http.StatusAccepted && json.Unmarshal(s.body, &job) == nil
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	for tries := 0; ok && job.Status != "succeeded" && job.Status != "failed" && tries < 120; tries++ {
		<-ticker.C
		if s = g.ask(ctx, "GET", "/v1/images/jobs/"+job.ID, ""); !isOverloaded(s) {
			ok = s.status == http.StatusOK && json.Unmarshal(s.body, &job) == nil
		}
	}
	if ok = ok && job.Status == "succeeded" && len(job.Data) == 1; ok {
		_, path, _ := strings.Cut(job.Data[0].URL, g.url)
		s = g.ask(ctx, "GET", path, "")
		ok = s.status == http.StatusOK && bytes.HasPrefix(s.body, []byte("\x89PNG"))
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if job.Status == "failed" {
		g.failed = append(g.failed, job.ID)
		return
	}
	if !ok {
		g.recordError(fmt.Sprintf("image %d, job %s is %q: %s", n, job.ID, job.Status, s))
		return
	}
	g.answers++
	g.images++
	g.hasImage.Store(true)
}

// pricePerImage is the price of an image. chatCost is the cost of an answer from the healthy line:
// 1000 tokens at 1 USD and 500 tokens at 2 USD per million.
const (
	pricePerImage = 3 * money.USD / 100
	chatCost      = 2 * money.USD / 1000
)

// quantile returns the q-quantile of all.
func quantile(all []time.Duration, q float64) time.Duration {
	if len(all) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(all))
	return sorted[int(float64(len(sorted)-1)*q)].Round(time.Millisecond)
}
