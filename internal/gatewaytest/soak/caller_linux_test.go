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

// attacker is a hostile client with one address and its own keys.
type attacker struct {
	url, host string // of the gateway
	slow      string // a slow host of references
	ip        string
	rich      string // a key with a balance
	poor      string // a key without

	mu    sync.Mutex
	done  map[string]int // attacks by name
	wrong []string
}

// attack is one attack. ctx is the end of the test.
type attack struct {
	name string
	play func(f *attacker, ctx context.Context, r *rand.Rand)
}

func attacks() []attack {
	return []attack{
		{"a body that comes slowly", (*attacker).slowBody}, {"a body that never comes", (*attacker).noBody}, {"a header that comes slowly",
			(*attacker).slowHeader},
		{"hundreds of connections", (*attacker).crowd}, {"32 MiB of blanks", (*attacker).blanks}, {"a count of 31 MiB", (*attacker).count},
		{"brackets", (*attacker).brackets},
		{"wrong keys", (*attacker).wrongKeys}, {"a stream that nobody reads", (*attacker).unread}, {"a huge form", (*attacker).hugeForm},
		{"references that come slowly", (*attacker).slowReference},
		{"references of 29 MiB", (*attacker).largeReference},
		{"twenty submissions at once", (*attacker).twins}, {"no balance", (*attacker).noBalance}, {"leaving early", (*attacker).leave},
	}
}

// work repeats random attacks until ctx ends.
func (f *attacker) work(ctx context.Context, r *rand.Rand) {
	ticker := time.NewTicker(100 * time.Millisecond)
	defer ticker.Stop()
	for all := attacks(); ctx.Err() == nil; <-ticker.C {
		one := all[r.IntN(len(all))]
		f.mu.Lock()
		f.done[one.name]++
		f.mu.Unlock()
		one.play(f, ctx, r)
	}
}

// dial connects. It returns nil if the connection is refused.
func (f *attacker) dial(ctx context.Context) net.Conn {
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(f.ip)}, Timeout: 5 * time.Second}
	conn, err := dialer.DialContext(ctx, "tcp", f.host)
	if err != nil {
		return nil
	}
	_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
	return conn
}

// raw sends a head, runs play, and waits for the end of the connection, at most for some seconds.
func (f *attacker) raw(ctx context.Context, head string, play func(conn net.Conn)) {
	conn := f.dial(ctx)
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

// dripTo sends a byte at a time for some seconds.
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

func (f *attacker) slowBody(ctx context.Context, _ *rand.Rand) {
	f.raw(ctx, head("POST", chatPath, f.rich, 1<<20), func(conn net.Conn) { dripTo(ctx, conn, `{"model":"talk",`) })
}

func (f *attacker) noBody(ctx context.Context, r *rand.Rand) {
	key := []string{f.rich, f.poor, "sk-unknown"}[r.IntN(3)]
	f.raw(ctx, head("POST", chatPath, key, 1000), func(conn net.Conn) {
		_ = conn.SetDeadline(time.Now().Add(8 * time.Second))
		_, _ = io.Copy(io.Discard, conn)
	})
}

func (f *attacker) slowHeader(ctx context.Context, _ *rand.Rand) {
	f.raw(ctx, "POST "+chatPath+" HTTP/1.1\r\nHost: x\r\nX-Slow: ", func(conn net.Conn) { dripTo(ctx, conn, "a") })
}

// crowd opens many connections and sends nothing.
func (f *attacker) crowd(ctx context.Context, _ *rand.Rand) {
	var all []net.Conn
	for n := 0; n < 300 && ctx.Err() == nil; n++ {
		if conn := f.dial(ctx); conn != nil {
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

// post sends a whole request and reads the answer.
func (f *attacker) post(ctx context.Context, path, key, contentType string, body io.Reader, size int64) (status int, answer []byte) {
	client := clientFrom(f.ip, 20*time.Second)
	defer client.CloseIdleConnections()
	r, err := http.NewRequestWithContext(ctx, "POST", f.url+path, body)
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

// filled returns a body of a size: begin, filling repeatedly, and end.
func filled(begin, filling, end string, size int) (io.Reader, int64) {
	n := (size - len(begin) - len(end)) / len(filling)
	return io.MultiReader(strings.NewReader(begin), &repeated{text: []byte(filling), left: n}, strings.NewReader(end)),
		int64(len(begin) + n*len(filling) + len(end))
}

// repeated reads a short text repeatedly.
type repeated struct {
	text []byte
	at   int
	left int
}

func (r *repeated) Read(p []byte) (n int, err error) {
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

func (f *attacker) blanks(ctx context.Context, r *rand.Rand) {
	body, size := filled(`{"model":"talk","messages":[{"role":"user","content":"x"}],"max_tokens":1`, blanks, "}", 32<<20-100)
	f.post(ctx, chatPath, []string{f.rich, f.poor}[r.IntN(2)], "application/json", body, size)
}

func (f *attacker) count(ctx context.Context, r *rand.Rand) {
	filling := []string{blanks, strings.ReplaceAll(words, "\n", " "), `x\u0041`}[r.IntN(3)]
	body, size := filled(`{"model":"sandbox","max_tokens":1,"messages":[{"role":"user","content":"`, filling, `"}]}`, 31<<20)
	f.post(ctx, "/native/v1/messages/count_tokens", []string{f.rich, f.poor}[r.IntN(2)], "application/json", body, size)
}

func (f *attacker) brackets(ctx context.Context, r *rand.Rand) {
	begin := []string{"", `{"model":"talk","messages":`, `{"model":"easel","prompt":`}[r.IntN(3)]
	body, size := filled(begin, []string{"[[[[[[[[", `{"a":`}[r.IntN(2)], "", 8<<20)
	f.post(ctx, []string{chatPath, "/v1/responses", "/native/v1/messages", "/v1/images/generations"}[r.IntN(4)], f.rich,
		"application/json", body, size)
}

func (f *attacker) wrongKeys(ctx context.Context, r *rand.Rand) {
	for n := 0; n < 100 && ctx.Err() == nil; n++ {
		f.post(ctx, chatPath, fmt.Sprintf("sk-%d", r.Uint64()), "application/json", strings.NewReader("{}"), 2)
	}
}

// unread requests a long stream and does not read it.
func (f *attacker) unread(ctx context.Context, _ *rand.Rand) {
	body := `{"model":"sandbox","messages":[{"role":"user","content":"say much"}],"stream":true}`
	f.raw(ctx, head("POST", chatPath, f.rich, len(body))+body, func(conn net.Conn) {
		_ = conn.(*net.TCPConn).SetReadBuffer(1 << 10)
		timer := time.NewTimer(5 * time.Second)
		defer timer.Stop()
		select {
		case <-ctx.Done():
		case <-timer.C:
		}
	})
}

func (f *attacker) hugeForm(ctx context.Context, _ *rand.Rand) {
	body,
		size := filled("--b\r\nContent-Disposition: form-data; name=\"model\"\r\n\r\neasel\r\n--b\r\n"+
		"Content-Disposition: form-data; name=\"image\"; filename=\"p.png\"\r\n\r\n\x89PNG",
		words, "\r\n--b--\r\n", 30<<20)
	f.post(ctx, "/v1/images/edits", f.rich, "multipart/form-data; boundary=b", body, size)
}

func (f *attacker) slowReference(ctx context.Context, _ *rand.Rand) {
	body := fmt.Sprintf(`{"model":"easel","prompt":"x","image":[%q,%q,%q]}`, f.slow+"/a.png", f.slow+"/b.png", f.slow+"/c.png")
	f.post(ctx, "/v1/images/generations", f.rich, "application/json", strings.NewReader(body), int64(len(body)))
}

// largeReference sends references of the maximum size.
func (f *attacker) largeReference(ctx context.Context, _ *rand.Rand) {
	one := fmt.Sprintf("%q", f.slow+"/large.png")
	body := `{"model":"easel","prompt":"x","image":[` + strings.Join([]string{one, one, one, one}, ",") + `]}`
	f.post(ctx, "/v1/images/generations", f.rich, "application/json", strings.NewReader(body), int64(len(body)))
}

// twins submits the same job twenty times at once and expects one job.
func (f *attacker) twins(ctx context.Context, r *rand.Rand) {
	client := clientFrom(f.ip, 20*time.Second)
	defer client.CloseIdleConnections()
	key := fmt.Sprintf("twin-%d", r.Uint64())
	ids := make(chan string, 20)
	var group sync.WaitGroup
	for range cap(ids) {
		group.Go(func() {
			res, err := scene.Do(ctx, client, "POST", f.url+"/v1/images/generations", `{"model":"easel","prompt":"twins"}`,
				"Authorization", "Bearer "+f.rich, "Idempotency-Key", key)
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
		f.mu.Lock()
		f.wrong = append(f.wrong, fmt.Sprintf("twenty submissions with one Idempotency-Key created %d jobs", len(different)))
		f.mu.Unlock()
	}
}

func (f *attacker) noBalance(ctx context.Context, _ *rand.Rand) {
	for n := 0; n < 30 && ctx.Err() == nil; n++ {
		body := []byte(`{"model":"talk","messages":[{"role":"user","content":"x"}]}`)
		f.post(ctx, chatPath, f.poor, "application/json", bytes.NewReader(body), int64(len(body)))
	}
}

// leave disconnects at once, or after the first bytes of the answer.
func (f *attacker) leave(ctx context.Context, r *rand.Rand) {
	body := fmt.Sprintf(`{"model":%q,"messages":[{"role":"user","content":"x"}],"stream":true}`, []string{"talk",
		"sandbox"}[r.IntN(2)])
	f.raw(ctx, head("POST", chatPath, f.rich, len(body))+body, func(conn net.Conn) {
		_ = conn.SetDeadline(time.Now().Add(time.Duration(r.IntN(300)) * time.Millisecond))
		_, _ = bufio.NewReader(conn).ReadString('}')
	})
}
