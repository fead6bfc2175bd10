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

// dial connects to a server. The connection times out after ten seconds.
func dial(t *testing.T, s *server.Server) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", s.Address())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	_ = c.SetDeadline(time.Now().Add(10 * time.Second))
	return c
}

// rawResponse is the response to a request written byte by byte.
type rawResponse struct {
	status   int
	header   http.Header
	body     string
	keptOpen bool // the server did not close the connection after the response
}

// sendRaw writes a request and reads the response.
func sendRaw(t *testing.T, s *server.Server, request string) rawResponse {
	t.Helper()
	c := dial(t, s)
	go func() { _, _ = io.WriteString(c, request) }() // the server may not read all of a long request
	from := bufio.NewReader(c)
	response, err := http.ReadResponse(from, nil)
	if err != nil {
		t.Errorf("%.60q: no response: %v", request, err)
		return rawResponse{}
	}
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Errorf("%.60q: %v", request, err)
	}
	response.Body.Close()
	_, err = from.ReadByte()
	return rawResponse{response.StatusCode, response.Header, string(body), err == nil || errors.Is(err, os.ErrDeadlineExceeded)}
}

// checkShape checks that a response has the error shape of its path.
func (r rawResponse) checkShape(t *testing.T, name string, native bool) {
	t.Helper()
	var parsed struct {
		Type  string
		Error struct {
			Message, Type, Code string
			Param               *string
		}
	}
	if err := json.Unmarshal([]byte(r.body), &parsed); err != nil || parsed.Error.Message == "" || parsed.Error.Type == "" {
		t.Errorf("%s: %d %q has no error with a message and a type", name, r.status, r.body)
	}
	if native != (parsed.Type == "error") || native != (parsed.Error.Code == "") {
		t.Errorf("%s: the error has the shape of the other API, native %t: %s", name, native, r.body)
	}
	id := r.header.Get("X-Request-Id")
	if !strings.HasPrefix(id, "req_") || r.header.Get("Request-Id") != id || r.header.Get("Content-Type") != "application/json" {
		t.Errorf("%s: wrong id or content type in headers %v", name, r.header)
	}
}

// TestUnreadableRequests checks requests that net/http rejects before calling a handler. They must
// also get an error of the gateway's shape and an id, and the server must close the connection.
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
		"no request line":         {"\r\n\r\n", 400},
		"two words":               {"GET /v1/models\r\n\r\n", 400},
		"HTTP/0.9":                {"GET /\r\n", 400},
		"four words":              {"GET / v1 HTTP/1.1\r\nHost: x\r\n\r\n", 400},
		"TLS":                     {"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", 400},
		"method with a bracket":   {"G(T / HTTP/1.1\r\nHost: x\r\n\r\n", 400},
		"NUL in the path":         {"GET /\x00 HTTP/1.1\r\nHost: x\r\n\r\n", 400},
		"NUL in a header":         {"GET / HTTP/1.1\r\nHost: x\r\nX: a\x00b\r\n\r\n", 400},
		"bad escape":              {"GET /%zz HTTP/1.1\r\nHost: x\r\n\r\n", 400},
		"path of the native form": {"GET /native/%zz HTTP/1.1\r\nHost: x\r\n\r\n", 400},
		"HTTP/3.0":                {"GET / HTTP/3.0\r\nHost: x\r\n\r\n", 505},
		"HTTP/2.0":                {"GET / HTTP/2.0\r\nHost: x\r\n\r\n", 505},
		"HTTP/1.1x":               {"GET / HTTP/1.1x\r\nHost: x\r\n\r\n", 400},
		"preface of HTTP/2":       {"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 404},
		"bad header name":         {"GET / HTTP/1.1\r\nHost: x\r\nX(: a\r\n\r\n", 400},
		"no header name":          {"GET / HTTP/1.1\r\nHost: x\r\n: a\r\n\r\n", 400},
		"space before the colon":  {"GET / HTTP/1.1\r\nHost: x\r\nX : a\r\n\r\n", 400},
		"no colon":                {"GET / HTTP/1.1\r\nHost: x\r\nX\r\n\r\n", 400},
		"folded first header":     {"GET / HTTP/1.1\r\n Host: x\r\n\r\n", 400},
		"control in a value":      {"GET / HTTP/1.1\r\nHost: x\r\nX: a\x7fb\r\n\r\n", 400},
		"no Host":                 {"GET / HTTP/1.1\r\n\r\n", 400},
		"two Hosts":               {"GET / HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n", 400},
		"bad Host":                {"GET / HTTP/1.1\r\nHost: x/y z\r\n\r\n", 400},
		"different lengths":       {chat + "Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}", 400},
		"list of lengths":         {chat + "Content-Length: 2, 2\r\n\r\n{}", 400},
		"negative length":         {chat + "Content-Length: -1\r\n\r\n{}", 400},
		"signed length":           {chat + "Content-Length: +2\r\n\r\n{}", 400},
		"empty length":            {chat + "Content-Length:\r\n\r\n{}", 400},
		"length above int64":      {chat + "Content-Length: 99999999999999999999\r\n\r\n{}", 400},
		"gzip":                    {chat + "Transfer-Encoding: gzip\r\n\r\n{}", 501},
		"gzip, chunked":           {chat + "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", 501},
		"chunked twice":           {chat + "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 501},
		"huge header":             {"GET / HTTP/1.1\r\nHost: x\r\nX: " + strings.Repeat("a", 200<<10) + "\r\n\r\n", 431},
		"many headers":            {"GET / HTTP/1.1\r\nHost: x\r\n" + strings.Repeat("X: a\r\n", 40<<10) + "\r\n", 431},
		"huge path":               {"GET /" + strings.Repeat("a", 200<<10) + " HTTP/1.1\r\nHost: x\r\n\r\n", 431},
		"strange expectation":     {keyed + "Expect: a cake\r\nContent-Length: 2\r\n\r\n{}", 417},
		"length and chunks":       {keyed + "Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n", 400},
		"chunks and length":       {keyed + "transfer-encoding: chunked\r\ncontent-length: 2\r\n\r\n2\r\n{}\r\n0\r\n\r\n", 400},
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
			for _, s := range map[string]*server.Server{"listen": p.server, "metrics_listen": p.metricsServer} {
				got := sendRaw(t, s, test.request)
				if s == p.server && got.status != test.status || got.keptOpen {
					t.Errorf("%s: %d %s; want %d; connection left open: %t", name, got.status, got.body, test.status, got.keptOpen)
				}
				got.checkShape(t, name, native)
			}
		})
	}
}

// TestOddRequests checks that unusual requests get a response from the gateway's own routes, even
// if net/http would answer them by default.
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
		got := sendRaw(t, test.server, test.request)
		if got.status != test.status || got.keptOpen {
			t.Errorf("%s: %d %s; want %d; connection left open: %t", name, got.status, got.body, test.status, got.keptOpen)
		}
		got.checkShape(t, name, false)
	}
}

// TestRefusalOfALongBodyArrives checks that the server reads a refused body to its end. A client
// may read the response only after sending its whole body, as a proxy does under load. If the
// server closed the connection with unread bytes, the client's write would fail, and a proxy would
// answer 502.
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
				t.Errorf("sending the body failed: %v", err)
			}
			answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err != nil {
				t.Fatal(err)
			}
			defer answer.Body.Close()
			if answer.StatusCode != c.status {
				t.Errorf("status %d, want %d", answer.StatusCode, c.status)
			}
		})
	}
}
