package soak

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"tollgate/internal/gatewaytest/scene"
)

// attacker is a hostile client with its own address and keys.
type attacker struct {
	url, host string // of the gateway
	slow      string // address of a slow server for references
	ip        string
	rich      string // a key with a balance
	poor      string // a key without a balance

	mu    sync.Mutex
	done  map[string]int // number of attacks by name
	wrong []string       // unexpected results
}

// attack is a kind of attack. ctx ends with the test.
type attack struct {
	name string
	play func(a *attacker, ctx context.Context, r *rand.Rand)
}

func attacks() []attack {
	return []attack{
		{"a slow body", (*attacker).slowBody}, {"a missing body", (*attacker).noBody}, {"a slow header",
			(*attacker).slowHeader},
		{"hundreds of connections", (*attacker).crowd}, {"32 MiB of blanks", (*attacker).blanks}, {"a token count of 31 MiB", (*attacker).count},
		{"brackets", (*attacker).brackets},
		{"wrong keys", (*attacker).wrongKeys}, {"an unread stream", (*attacker).unread}, {"a huge form", (*attacker).hugeForm},
		{"slow references", (*attacker).slowReference},
		{"references of 29 MiB", (*attacker).largeReference},
		{"twenty concurrent submissions", (*attacker).twins}, {"no balance", (*attacker).noBalance}, {"early disconnects", (*attacker).leave},
	}
}

// work repeats random attacks until ctx ends.
func (a *attacker) work(ctx context.Context, r *rand.Rand) {
	ticker := time.NewTicker(100 * time.Millisecond)
	defer ticker.Stop()
	for all := attacks(); ctx.Err() == nil; <-ticker.C {
		kind := all[r.IntN(len(all))]
		a.mu.Lock()
		a.done[kind.name]++
		a.mu.Unlock()
		kind.play(a, ctx, r)
	}
}

// dial connects to the gateway. It returns nil if the gateway refuses the connection.
func (a *attacker) dial(ctx context.Context) net.Conn {
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(a.ip)}, Timeout: 5 * time.Second}
	conn, err := dialer.DialContext(ctx, "tcp", a.host)
	if err != nil {
		return nil
	}
	_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
	return conn
}

// raw sends a head on a new connection, calls play, and closes the connection. The connection has a
// deadline.
func (a *attacker) raw(ctx context.Context, head string, play func(conn net.Conn)) {
	conn := a.dial(ctx)
	if conn == nil {
		return
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	if _, err := io.WriteString(conn, head); err == nil {
		play(conn)
	}
}

func head(method, path, key string, length int) string {
	return fmt.Sprintf("%s %s HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\n"+
		"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n", method, path, key, length)
}

const chatPath = "/v1/chat/completions"

// dripTo sends single bytes of text for some seconds.
func dripTo(ctx context.Context, conn net.Conn, text string) {
	ticker := time.NewTicker(200 * time.Millisecond)
	defer ticker.Stop()
	for n := range 40 {
		if _, err := conn.Write([]byte{text[n%len(text)]}); err != nil {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

func (a *attacker) slowBody(ctx context.Context, _ *rand.Rand) {
	a.raw(ctx, head("POST", chatPath, a.rich, 1<<20), func(conn net.Conn) { dripTo(ctx, conn, `{"model":"talk",`) })
}

func (a *attacker) noBody(ctx context.Context, r *rand.Rand) {
	key := []string{a.rich, a.poor, "sk-unknown"}[r.IntN(3)]
	a.raw(ctx, head("POST", chatPath, key, 1000), func(conn net.Conn) {
		_ = conn.SetDeadline(time.Now().Add(8 * time.Second))
		_, _ = io.Copy(io.Discard, conn)
	})
}

func (a *attacker) slowHeader(ctx context.Context, _ *rand.Rand) {
	a.raw(ctx, "POST "+chatPath+" HTTP/1.1\r\nHost: x\r\nX-Slow: ", func(conn net.Conn) { dripTo(ctx, conn, "a") })
}

// crowd opens many connections without sending anything.
func (a *attacker) crowd(ctx context.Context, _ *rand.Rand) {
	var all []net.Conn
	for n := 0; n < 300 && ctx.Err() == nil; n++ {
		if conn := a.dial(ctx); conn != nil {
			all = append(all, conn)
		}
	}
	for until, n := time.Now().Add(time.Second), 0; n < len(all); n++ {
		conn := all[n]
		_ = conn.SetDeadline(until)
		_, _ = conn.Read(make([]byte, 1))
		_ = conn.Close()
	}
}

// post sends a complete request and reads the answer.
func (a *attacker) post(ctx context.Context, path, key, contentType string, body io.Reader, size int64) (status int, answer []byte) {
	client := clientFrom(a.ip, 20*time.Second)
	defer client.CloseIdleConnections()
	r, err := http.NewRequestWithContext(ctx, "POST", a.url+path, body)
	if err != nil {
		return 0, nil
	}
	r.ContentLength = size
	r.Header.Set("Authorization", "Bearer "+key)
	r.Header.Set("Content-Type", contentType)
	res, err := client.Do(r)
	if err != nil {
		return 0, nil
	}
	defer res.Body.Close()
	answer, _ = io.ReadAll(io.LimitReader(res.Body, 1<<20))
	return res.StatusCode, answer
}

// filled returns a body of about size bytes: begin, then filling many times, then end.
func filled(begin, filling, end string, size int) (io.Reader, int64) {
	n := (size - len(begin) - len(end)) / len(filling)
	return io.MultiReader(strings.NewReader(begin), &repeatReader{text: []byte(filling), left: n}, strings.NewReader(end)),
		int64(len(begin) + n*len(filling) + len(end))
}

// repeatReader is a reader that returns a short text left times.
type repeatReader struct {
	text []byte
	at   int
	left int
}

func (r *repeatReader) Read(p []byte) (n int, err error) {
	for n < len(p) && r.left > 0 {
		m := copy(p[n:], r.text[r.at:])
		n += m
		if r.at += m; r.at == len(r.text) {
			r.at = 0
			r.left--
		}
	}
	if n == 0 && r.left == 0 {
		return 0, io.EOF
	}
	return n, nil
}

const (
	blanks = "                                                                " // 64 blanks
	words  = "word and word and word and word and word and word and word and\n"
)

func (a *attacker) blanks(ctx context.Context, r *rand.Rand) {
	body, size := filled(`{"model":"talk","messages":[{"role":"user","content":"x"}],"max_tokens":1`, blanks, "}", 32<<20-100)
	a.post(ctx, chatPath, []string{a.rich, a.poor}[r.IntN(2)], "application/json", body, size)
}

func (a *attacker) count(ctx context.Context, r *rand.Rand) {
	filling := []string{blanks, strings.ReplaceAll(words, "\n", " "), `x\u0041`}[r.IntN(3)]
	body, size := filled(`{"model":"sandbox","max_tokens":1,"messages":[{"role":"user","content":"`, filling, `"}]}`, 31<<20)
	a.post(ctx, "/native/v1/messages/count_tokens", []string{a.rich, a.poor}[r.IntN(2)], "application/json", body, size)
}

func (a *attacker) brackets(ctx context.Context, r *rand.Rand) {
	begin := []string{"", `{"model":"talk","messages":`, `{"model":"easel","prompt":`}[r.IntN(3)]
	body, size := filled(begin, []string{"[[[[[[[[", `{"a":`}[r.IntN(2)], "", 8<<20)
	a.post(ctx, []string{chatPath, "/v1/responses", "/native/v1/messages", "/v1/images/generations"}[r.IntN(4)], a.rich,
		"application/json", body, size)
}

func (a *attacker) wrongKeys(ctx context.Context, r *rand.Rand) {
	for n := 0; n < 100 && ctx.Err() == nil; n++ {
		a.post(ctx, chatPath, fmt.Sprintf("sk-%d", r.Uint64()), "application/json", strings.NewReader("{}"), 2)
	}
}

// unread requests a long stream and does not read it.
func (a *attacker) unread(ctx context.Context, _ *rand.Rand) {
	body := `{"model":"sandbox","messages":[{"role":"user","content":"say much"}],"stream":true}`
	a.raw(ctx, head("POST", chatPath, a.rich, len(body))+body, func(conn net.Conn) {
		_ = conn.(*net.TCPConn).SetReadBuffer(1 << 10)
		timer := time.NewTimer(5 * time.Second)
		defer timer.Stop()
		select {
		case <-ctx.Done():
		case <-timer.C:
		}
	})
}

func (a *attacker) hugeForm(ctx context.Context, _ *rand.Rand) {
	body,
		size := filled("--b\r\nContent-Disposition: form-data; name=\"model\"\r\n\r\neasel\r\n--b\r\n"+
		"Content-Disposition: form-data; name=\"image\"; filename=\"p.png\"\r\n\r\n\x89PNG",
		words, "\r\n--b--\r\n", 30<<20)
	a.post(ctx, "/v1/images/edits", a.rich, "multipart/form-data; boundary=b", body, size)
}

func (a *attacker) slowReference(ctx context.Context, _ *rand.Rand) {
	body := fmt.Sprintf(`{"model":"easel","prompt":"x","image":[%q,%q,%q]}`, a.slow+"/a.png", a.slow+"/b.png", a.slow+"/c.png")
	a.post(ctx, "/v1/images/generations", a.rich, "application/json", strings.NewReader(body), int64(len(body)))
}

// largeReference sends references of the maximum size.
func (a *attacker) largeReference(ctx context.Context, _ *rand.Rand) {
	link := fmt.Sprintf("%q", a.slow+"/large.png")
	body := `{"model":"easel","prompt":"x","image":[` + strings.Join([]string{link, link, link, link}, ",") + `]}`
	a.post(ctx, "/v1/images/generations", a.rich, "application/json", strings.NewReader(body), int64(len(body)))
}

// twins sends twenty concurrent submissions with the same Idempotency-Key and expects one job.
func (a *attacker) twins(ctx context.Context, r *rand.Rand) {
	client := clientFrom(a.ip, 20*time.Second)
	defer client.CloseIdleConnections()
	key := fmt.Sprintf("twin-%d", r.Uint64())
	ids := make(chan string, 20)
	var group sync.WaitGroup
	for range cap(ids) {
		group.Go(func() {
			res, err := scene.Do(ctx, client, "POST", a.url+"/v1/images/generations", `{"model":"easel","prompt":"twins"}`,
				"Authorization", "Bearer "+a.rich, "Idempotency-Key", key)
			if err != nil {
				return
			}
			defer res.Body.Close()
			var job struct {
				ID string `json:"id"`
			}
			if res.StatusCode == http.StatusAccepted && json.NewDecoder(res.Body).Decode(&job) == nil {
				ids <- job.ID
			}
		})
	}
	group.Wait()
	close(ids)
	different := map[string]bool{}
	for id := range ids {
		different[id] = true
	}
	if len(different) > 1 {
		a.mu.Lock()
		a.wrong = append(a.wrong, fmt.Sprintf("twenty submissions with one Idempotency-Key created %d jobs", len(different)))
		a.mu.Unlock()
	}
}

func (a *attacker) noBalance(ctx context.Context, _ *rand.Rand) {
	for n := 0; n < 30 && ctx.Err() == nil; n++ {
		body := []byte(`{"model":"talk","messages":[{"role":"user","content":"x"}]}`)
		a.post(ctx, chatPath, a.poor, "application/json", bytes.NewReader(body), int64(len(body)))
	}
}

// leave disconnects immediately, or after the first bytes of the answer.
func (a *attacker) leave(ctx context.Context, r *rand.Rand) {
	body := fmt.Sprintf(`{"model":%q,"messages":[{"role":"user","content":"x"}],"stream":true}`, []string{"talk",
		"sandbox"}[r.IntN(2)])
	a.raw(ctx, head("POST", chatPath, a.rich, len(body))+body, func(conn net.Conn) {
		_ = conn.SetDeadline(time.Now().Add(time.Duration(r.IntN(300)) * time.Millisecond))
		_, _ = bufio.NewReader(conn).ReadString('}')
	})
}
