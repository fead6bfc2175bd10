package app

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"tollgate/internal/app/server"
	"tollgate/internal/store/storetest"
)

// dial connects to a server for at most ten seconds.
func dial(t *testing.T, d *server.Server) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", d.Address())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	_ = c.SetDeadline(time.Now().Add(10 * time.Second))
	return c
}

// heard is the response on a connection.
type heard struct {
	status int
	header http.Header
	body   string
	kept   bool // the connection was not closed after the answer
}

// hear writes a request and reads its answer, and whether the connection ends.
func hear(t *testing.T, d *server.Server, request string) heard {
	t.Helper()
	c := dial(t, d)
	go func() { _, _ = io.WriteString(c, request) }() // a long one may not be read to its end
	from := bufio.NewReader(c)
	answer, err := http.ReadResponse(from, nil)
	if err != nil {
		t.Errorf("%.60q: no answer: %v", request, err)
		return heard{}
	}
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Errorf("%.60q: %v", request, err)
	}
	answer.Body.Close()
	_, err = from.ReadByte()
	return heard{answer.StatusCode, answer.Header, string(body), err == nil || errors.Is(err, os.ErrDeadlineExceeded)}
}

// ours checks that an answer has the error shape of its path.
func (h heard) ours(t *testing.T, name string, native bool) {
	t.Helper()
	var said struct {
		Type  string
		Error struct {
			Message, Type, Code string
			Param               *string
		}
	}
	if err := json.Unmarshal([]byte(h.body), &said); err != nil || said.Error.Message == "" || said.Error.Type == "" {
		t.Errorf("%s: %d %q", name, h.status, h.body)
	}
	if native != (said.Type == "error") || native != (said.Error.Code == "") {
		t.Errorf("%s: the shape is another surface's: %s", name, h.body)
	}
	id := h.header.Get("X-Request-Id")
	if !strings.HasPrefix(id, "req_") || h.header.Get("Request-Id") != id || h.header.Get("Content-Type") != "application/json" {
		t.Errorf("%s: headers %v", name, h.header)
	}
}

// TestUnreadableRequests checks that requests refused by net/http before any handler also get our
// shape, an id, and the end of the connection.
func TestUnreadableRequests(t *testing.T) {
	t.Parallel()
	p := serve(t, testSettings(t, storetest.SQLite(t), "admin_token: sixteen-letters-\nmetrics_listen: 127.0.0.1:0"))
	t.Cleanup(func() { p.stop(t) })
	key := regexp.MustCompile(`sk-[A-Za-z0-9_-]+`).FindString(p.out.String())
	const chat = "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\n"
	keyed := chat + "Authorization: Bearer " + key + "\r\n"
	for name, test := range map[string]struct {
		request string
		status  int
	}{
		"no request line":           {"\r\n\r\n", 400},
		"two words":                 {"GET /v1/models\r\n\r\n", 400},
		"HTTP/0.9":                  {"GET /\r\n", 400},
		"four words":                {"GET / v1 HTTP/1.1\r\nHost: x\r\n\r\n", 400},
		"TLS":                       {"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", 400},
		"method with a bracket":     {"G(T / HTTP/1.1\r\nHost: x\r\n\r\n", 400},
		"NUL in the path":           {"GET /\x00 HTTP/1.1\r\nHost: x\r\n\r\n", 400},
		"NUL in a header":           {"GET / HTTP/1.1\r\nHost: x\r\nX: a\x00b\r\n\r\n", 400},
		"bad escape":                {"GET /%zz HTTP/1.1\r\nHost: x\r\n\r\n", 400},
		"path of the native form":   {"GET /native/%zz HTTP/1.1\r\nHost: x\r\n\r\n", 400},
		"HTTP/3.0":                  {"GET / HTTP/3.0\r\nHost: x\r\n\r\n", 505},
		"HTTP/2.0":                  {"GET / HTTP/2.0\r\nHost: x\r\n\r\n", 505},
		"HTTP/1.1x":                 {"GET / HTTP/1.1x\r\nHost: x\r\n\r\n", 400},
		"preface of HTTP/2":         {"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 404},
		"bad header name":           {"GET / HTTP/1.1\r\nHost: x\r\nX(: a\r\n\r\n", 400},
		"no header name":            {"GET / HTTP/1.1\r\nHost: x\r\n: a\r\n\r\n", 400},
		"space before the colon":    {"GET / HTTP/1.1\r\nHost: x\r\nX : a\r\n\r\n", 400},
		"no colon":                  {"GET / HTTP/1.1\r\nHost: x\r\nX\r\n\r\n", 400},
		"folded first header":       {"GET / HTTP/1.1\r\n Host: x\r\n\r\n", 400},
		"control in a value":        {"GET / HTTP/1.1\r\nHost: x\r\nX: a\x7fb\r\n\r\n", 400},
		"no Host":                   {"GET / HTTP/1.1\r\n\r\n", 400},
		"two Hosts":                 {"GET / HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n", 400},
		"bad Host":                  {"GET / HTTP/1.1\r\nHost: x/y z\r\n\r\n", 400},
		"lengths that differ":       {chat + "Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}", 400},
		"list of lengths":           {chat + "Content-Length: 2, 2\r\n\r\n{}", 400},
		"negative length":           {chat + "Content-Length: -1\r\n\r\n{}", 400},
		"signed length":             {chat + "Content-Length: +2\r\n\r\n{}", 400},
		"empty length":              {chat + "Content-Length:\r\n\r\n{}", 400},
		"length beyond the numbers": {chat + "Content-Length: 99999999999999999999\r\n\r\n{}", 400},
		"gzip":                      {chat + "Transfer-Encoding: gzip\r\n\r\n{}", 501},
		"gzip, chunked":             {chat + "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", 501},
		"chunked twice":             {chat + "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 501},
		"huge header":               {"GET / HTTP/1.1\r\nHost: x\r\nX: " + strings.Repeat("a", 200<<10) + "\r\n\r\n", 431},
		"many headers":              {"GET / HTTP/1.1\r\nHost: x\r\n" + strings.Repeat("X: a\r\n", 40<<10) + "\r\n", 431},
		"huge path":                 {"GET /" + strings.Repeat("a", 200<<10) + " HTTP/1.1\r\nHost: x\r\n\r\n", 431},
		"strange expectation":       {keyed + "Expect: a cake\r\nContent-Length: 2\r\n\r\n{}", 417},
		"length and chunks":         {keyed + "Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n", 400},
		"chunks and length":         {keyed + "transfer-encoding: chunked\r\ncontent-length: 2\r\n\r\n2\r\n{}\r\n0\r\n\r\n", 400},
		"native, length and chunks": {
			"POST /native/v1/messages HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 401},
		"chunks in HTTP/1.0": {
			"POST /v1/chat/completions HTTP/1.0\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked\r\nContent-Length: 2\r\n\r\n{}", 401},
		"chunks, no close":     {chat + "Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n", 401},
		"bad size of a chunk":  {keyed + "Transfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n0\r\n\r\n", 400},
		"chunks, no key":       {chat + "Connection: close\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n", 401},
		"chunked":              {keyed + "Connection: close\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n", 400},
		"chunks with trailers": {keyed + "Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\nX: y\r\n\r\n", 400},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			native := strings.Contains(test.request, " /native/")
			for _, d := range map[string]*server.Server{"listen": p.server, "metrics_listen": p.metricsServer} {
				got := hear(t, d, test.request)
				if d == p.server && got.status != test.status || got.kept {
					t.Errorf("%s: %d %s; want %d, connection kept: %t", name, got.status, got.body, test.status, got.kept)
				}
				got.ours(t, name, native)
			}
		})
	}
}

// TestOddRequests checks that unusual but readable requests, including those net/http would answer
// by itself, reach our own list of paths.
func TestOddRequests(t *testing.T) {
	t.Parallel()
	p := serve(t, testSettings(t, storetest.SQLite(t), "metrics_listen: 127.0.0.1:0"))
	defer p.stop(t)
	const tail = " HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
	for name, test := range map[string]struct {
		server  *server.Server
		request string
		status  int
	}{
		"OPTIONS *":         {p.server, "OPTIONS *" + tail, 404},
		"GET *":             {p.server, "GET *" + tail, 404},
		"OPTIONS":           {p.server, "OPTIONS /v1/models" + tail, 405},
		"absolute":          {p.server, "GET http://elsewhere.example/v1/models" + tail, 401},
		"absolute, unknown": {p.server, "GET http://elsewhere.example" + tail, 404},
		"CONNECT":           {p.server, "CONNECT elsewhere.example:443" + tail, 404},
		"CONNECT, path":     {p.server, "CONNECT /v1/models" + tail, 405},
		"two slashes":       {p.server, "GET //v1/models" + tail, 404},
		"dots":              {p.server, "GET /v1/../v1/models" + tail, 404},
		"slash at the end":  {p.server, "GET /v1/models/" + tail, 404},
		"unknown method":    {p.server, "BREW /v1/models" + tail, 405},
		"upgrade":           {p.server, "GET /v1/models HTTP/1.1\r\nHost: x\r\nConnection: Upgrade, close\r\nUpgrade: h2c\r\n\r\n", 401},
		"HTTP/1.0":          {p.server, "GET /v1/models HTTP/1.0\r\n\r\n", 401},
		"equal lengths": {p.server,
			"POST /v1/models HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\n{}", 405},
		"metrics, unknown": {p.metricsServer, "GET /v1/models" + tail, 404},
		"metrics, POST":    {p.metricsServer, "POST /metrics" + tail, 405},
		"metrics, slashes": {p.metricsServer, "GET //metrics" + tail, 404},
		"metrics, *":       {p.metricsServer, "OPTIONS *" + tail, 404},
	} {
		got := hear(t, test.server, test.request)
		if got.status != test.status || got.kept {
			t.Errorf("%s: %d %s; want %d, kept: %t", name, got.status, got.body, test.status, got.kept)
		}
		got.ours(t, name, false)
	}
}

// TestRefusalOfALongBodyArrives checks that a client that reads the answer only after sending its
// whole body, as a proxy may under load, can send it all. Closing a connection with unread bytes
// fails the client's write, and a proxy answers 502 then.
func TestRefusalOfALongBodyArrives(t *testing.T) {
	t.Parallel()
	p := serve(t, testSettings(t, storetest.SQLite(t), "max_body: 1MiB"))
	t.Cleanup(func() { p.stop(t) })
	key := regexp.MustCompile(`sk-[A-Za-z0-9_-]+`).FindString(p.out.String())
	const long = 24 << 20 // more than the kernel's buffers of both sides
	body := make([]byte, long)
	for name, c := range map[string]struct {
		path, head string
		status     int
	}{
		"length":  {"/v1/chat/completions", fmt.Sprintf("Authorization: Bearer %s\r\nContent-Length: %d", key, long), 413},
		"chunked": {"/v1/chat/completions", fmt.Sprintf("Authorization: Bearer %s\r\nTransfer-Encoding: chunked", key), 413},
		"no key":  {"/v1/chat/completions", fmt.Sprintf("Content-Length: %d", long), 401},
		"no path": {"/v9", "Transfer-Encoding: chunked", 404},
		"no HTTP": {"/%zz", fmt.Sprintf("Content-Length: %d", long), 400},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conn := dial(t, p.server)
			_, err := fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: x\r\n%s\r\n\r\n", c.path, c.head)
			if err == nil && strings.Contains(c.head, "chunked") {
				_, err = fmt.Fprintf(conn, "%x\r\n", long)
			}
			if err == nil {
				_, err = conn.Write(body)
			}
			if err != nil {
				t.Errorf("the body cannot be sent: %v", err)
			}
			answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err != nil {
				t.Fatal(err)
			}
			defer answer.Body.Close()
			if answer.StatusCode != c.status {
				t.Errorf("answered %d, want %d", answer.StatusCode, c.status)
			}
		})
	}
}
