package malformed

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

func oddType(r *rand.Rand, _ *generator, q *request) {
	kind := pick(r, []string{
		"", "text/plain", "application/xml", "application/x-www-form-urlencoded", "multipart/form-data",
		"multipart/form-data; boundary=", "multipart/form-data; boundary=other",
		"multipart/form-data; boundary=\"boundary0123456789", "multipart/mixed; boundary=boundary0123456789",
		"multipart/form-data; boundary=" + strings.Repeat("b", 200),
		"multipart/form-data; boundary=boundary0123456789", "application/json; charset=utf-16", "application/json;;;",
		"application/yaml", "\"", "a/b/c", ";", strings.Repeat("x", 5000), "application/json, text/html",
	})
	if r.IntN(6) == 0 {
		q.add("Content-Type", kind)
		return
	}
	if r.IntN(6) == 0 {
		q.drop("Content-Type")
		return
	}
	q.set("Content-Type", kind)
}

func oddQuery(r *rand.Rand, _ *generator, q *request) {
	q.target += "?" + pick(r, []string{
		"", "%zz", "%", "a;b", "limit=-1", "limit=0", "limit=1", "limit=99999999999999999999", "limit=1&limit=2", "limit=1.5",
		"after=%00", "after=%ff", "after=x", "after=" + strings.Repeat("a", 300),
		"beta=true", "status=0", "status=200", "status=queued", "status=x", "account=%27%20OR%201=1--", "model=", "node=all",
		"node=x", "unknown=1", "=", "&&&", strings.Repeat("a=b&", 2000), "\u00e9=\u00e9",
		"limit=%31%30", "line[]=x", "x=" + strings.Repeat("%41", 1000), "?", "#",
	})
}

// ids returns texts to insert instead of an id: invalid ids, and ids of other kinds.
func ids(g *generator) []string {
	odd := []string{
		"", "x", "..", ".", "%2e%2e", "%2e%2e%2f%2e%2e", "%00", "%0a", "%ff", "%c0%ae", "'%20OR%20'1'='1", "{id}", "%7Bid%7D", "-1",
		"0", "1", "99999999999999999999999", "1e9", strings.Repeat("a", 5000),
		"a/b", "a%2fb", "%2f", "*", "acc_", "key_0", "job_00000000000000000000000000", "\u00e9", "%F0%9F%98%80", "a;b=c", "a?b",
		"a#b", "a b", "+", "null", "%25", "NaN",
	}
	for _, before := range []string{"/v1/images/jobs/", "/v1/videos/jobs/", "/admin/v1/accounts/", "/admin/v1/keys/",
		"/admin/v1/users/", "/admin/v1/deliveries/", "/admin/v1/lines/", "/admin/v1/secrets/", "/media/"} {
		odd = append(odd, g.ids[before]...)
	}
	return odd
}

func oddID(r *rand.Rand, g *generator, q *request) {
	_, path, _ := strings.Cut(q.route, " ")
	if before, after, ok := strings.Cut(path, "{id}"); ok {
		q.target = before + pick(r, ids(g)) + after
	}
}

func oddPath(r *rand.Rand, g *generator, q *request) {
	path := q.target
	q.target = pick(r, []string{
		"/" + path, path + "/", path + "//", strings.Replace(path, "/v1", "/v1/.", 1), strings.Replace(path, "/v1", "/v1/../v1", 1),
		strings.ToUpper(path), strings.Replace(path, "v1", "%761", 1),
		strings.ReplaceAll(path, "/", "%2f"), strings.ReplaceAll(path, "/", "\\"), path + "%00", path + ";x=1",
		"/v1/../admin/v1/accounts", "/media/../admin/v1/accounts", "/media/../../etc/passwd",
		"/media/%2e%2e/%2e%2e/etc/passwd", "/media/", "/media", "/media//", "/admin/v1", "/admin/v1/", "/admin", "/native",
		"/native/", "/native/v1", "/v1", "/", "/console", "/v1/models/" + strings.Repeat("a", 9000),
		"*", "http://other.example" + path, "http://other.example", "//other.example" + path, "?", path[1:], "/\u00e9", "/%",
		"/%zz", "/" + strings.Repeat("a/", 3000), "/healthz/x", "/metrics/", "/readyz?" + path,
	})
}

func oddMethod(r *rand.Rand, _ *generator, q *request) {
	q.method = pick(r, []string{
		"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT", "PROPFIND", "PRI", "get", "Post", "FOO",
		"G\u00c9T", "GET\t", "", strings.Repeat("M", 300), "GET,POST", "M-SEARCH",
	})
}

// oddKey changes the credentials.
func oddKey(r *rand.Rand, g *generator, q *request) {
	key := pick(r, g.keys)
	odd := pick(r, []string{
		"", "Bearer", "Bearer ", "bearer " + key, "BEARER  " + key, "Basic " + key, key, "Bearer sk-unknown", "Bearer " + key + "x",
		"Bearer " + key[:len(key)-1], "Bearer " + strings.ToUpper(key),
		"Bearer " + strings.Repeat("k", 10_000), "Bearer \u00e9", "Bearer " + key + ", Bearer " + key, "Bearer\t" + key,
		"Bearer " + key + "\x00", "Token " + key, "Bearer " + g.token + "x", "Bearer null",
	})
	switch r.IntN(6) {
	case 0:
		q.drop("Authorization")
		q.drop("x-api-key")
	case 1:
		q.add("Authorization", odd)
	case 2:
		q.add("x-api-key", pick(r, []string{"", key, "sk-unknown", key + " ", strings.Repeat("k", 5000)}))
	case 3:
		q.drop("Authorization")
		q.set("x-api-key", pick(r, []string{"", key, "sk-unknown", "\u00e9"}))
	default:
		q.set("Authorization", odd)
	}
}

func oddHeader(r *rand.Rand, _ *generator, q *request) {
	long := strings.Repeat("a", 300)
	h := pick(r, []header{
		{"Idempotency-Key", long}, {"Idempotency-Key", ""}, {"Idempotency-Key", "same"}, {"Idempotency-Key", "same"},
		{"Idempotency-Key", "\u00e9\u202e"}, {"Idempotency-Key", "a, b"}, {"Idempotency-Key", "'; --"},
		{"Accept-Encoding", "gzip, br, zstd, *;q=0"}, {"Accept-Encoding", "identity;q=0"}, {"Accept-Encoding", ";;;"},
		{"Content-Encoding", "gzip"}, {"Content-Encoding", "identity, , deflate"},
		{"Accept", "text/event-stream"}, {"Accept", "application/yaml"}, {"Accept", ";q=x"}, {"Expect", "100-continue"}, {"Expect",
			"200-ok"}, {"Connection", "close"}, {"Connection", "Upgrade"},
		{"Upgrade", "websocket"}, {"Upgrade", "h2c"}, {"HTTP2-Settings", "AAMAAABkAAQAAP__"}, {"Host", "two.example"},
		{"X-Forwarded-For", "1.2.3.4, x, ::1"}, {"X-Forwarded-For", strings.Repeat("1.1.1.1,", 900)},
		{"Range", "bytes=0-"}, {"Range", "bytes=5-1,-,x"}, {"Range", "bytes=" + strings.Repeat("0-0,", 500) + "1-1"},
		{"If-None-Match", "*"}, {"If-Modified-Since", "yesterday"}, {"If-Range", "\""},
		{"anthropic-version", ""}, {"anthropic-version", "1900-01-01\u00e9"}, {"anthropic-beta", "a,b,,"}, {"anthropic-beta",
			strings.Repeat("beta-2025-01-01,", 500)}, {"x-request-id", "mine"},
		{"Cookie", strings.Repeat("a=b; ", 2000)}, {"X-Http-Method-Override", "DELETE"}, {"Origin", "http://other.example"},
		{"X-" + strings.Repeat("x", 60_000), "1"}, {"X-Long", strings.Repeat("x", 70_000)},
		{"X Y", "1"}, {"X\u00e9", "1"}, {"X-Ctl", "a\x01b"}, {"X-Fold", "a\r\n b"}, {"", "x"}, {"Keep-Alive", "timeout=-1"},
		{"Trailer", "Content-Length"}, {"TE", "trailers"}, {"Via", "1.1 x"}, {"Content-Range", "bytes 0-1/2"},
	})
	switch r.IntN(8) {
	case 0:
		for n := range 300 {
			q.add(fmt.Sprintf("X-Many-%d", n), "x")
		}
	case 1:
		q.drop("Host")
	default:
		q.add(h.name, h.value)
	}
}

// oddFrame makes the framing of the body invalid or ambiguous.
func oddFrame(r *rand.Rand, _ *generator, q *request) {
	size := len(q.body)
	chunked := func(body string) {
		q.add("Transfer-Encoding", "chunked")
		q.length, q.body = none, []byte(body)
	}
	switch r.IntN(14) {
	case 0:
		q.length = fmt.Sprint(size + 1 + r.IntN(1000))
	case 1:
		q.length = fmt.Sprint(size / 2)
	case 2:
		q.length = pick(r, []string{"-1", "x", "1e3", "0x10", "99999999999999999999", "9223372036854775807", "99999999999", "+5",
			"5,5", "5, 6", " "})
	case 3:
		q.add("Content-Length", fmt.Sprint(size))
	case 4:
		q.add("Content-Length", fmt.Sprint(size+1))
	case 5:
		q.add("Transfer-Encoding", "chunked") // in addition to Content-Length
	case 6:
		chunked(fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", size, q.body))
	case 7:
		chunked(fmt.Sprintf("%x;a=b\r\n%s\r\n0\r\nX-Trailer: y\r\n\r\n", size, q.body))
	case 8:
		chunked(fmt.Sprintf("%x\r\n%s\r\n", size, q.body))
	case 9:
		chunked(pick(r, []string{"x\r\n\r\n", "-1\r\n\r\n", "ffffffffffffffffffff\r\n", "5\r\nab\r\n0\r\n\r\n", "0\r\n", "\r\n",
			"1\nx\n0\n\n", "0" + strings.Repeat("0", 5000) + "\r\n\r\n"}))
	case 10:
		q.add("Transfer-Encoding", pick(r, []string{"gzip", "gzip, chunked", "identity", "chunked, chunked", "xchunked", ""}))
	case 11:
		q.length = none
	case 12:
		q.version = pick(r, []string{"HTTP/1.0", "HTTP/0.9", "HTTP/1.2", "HTTP/2.0", "HTTP/3", "http/1.1", "HTTP/1.1 ", "HTTP/1",
			""})
	case 13:
		q.raw = []byte(strings.ReplaceAll(string(q.bytes()), "\r\n", "\n"))
	}
}

// breakOff makes the request incomplete.
func breakOff(r *rand.Rand, _ *generator, q *request) {
	if size := len(q.bytes()); size > 0 {
		q.cut = size - 1 - r.IntN(min(size, 1+len(q.body)))
	}
}

func noHTTP(r *rand.Rand, _ *generator, q *request) {
	junk := make([]byte, 1+r.IntN(300))
	for i := range junk {
		junk[i] = byte(r.Uint32())
	}
	whole := q.bytes()
	at := r.IntN(len(whole))
	q.raw = pick(r, [][]byte{
		junk, append(junk, "\r\n\r\n"...), []byte("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"),
		[]byte("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), []byte("\r\n\r\n\r\n"), []byte("GET\r\n\r\n"), []byte("GET / \r\n\r\n"),
		[]byte("SSH-2.0-x\r\n"), []byte("GET /" + strings.Repeat("a", 100_000) + " HTTP/1.1\r\nHost: x\r\n\r\n"),
		[]byte("\x00\x00\x00\x00"), append(append([]byte{}, whole[:at]...), junk...),
		append(append(append([]byte{}, whole[:at]...), 0), whole[at:]...), append(append([]byte{}, whole...), whole...),
	})
}
